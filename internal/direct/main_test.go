// SPDX-License-Identifier: MIT

package direct_test

import (
	"os"
	"testing"

	"github.com/mayflydb/mayfly"
)

func TestMain(m *testing.M) {
	mayfly.RunScriptWorker()
	runNullServer()
	os.Exit(m.Run())
}
