// SPDX-License-Identifier: MIT

package transfer

import (
	"testing"

	"github.com/mayflydb/mayfly"
)

func TestMain(m *testing.M) {
	mayfly.RunScriptWorker()
	m.Run()
}
