// SPDX-License-Identifier: MIT

package mayfly

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	RunScriptWorker()
	os.Exit(m.Run())
}
