// SPDX-License-Identifier: MIT

package engine

import (
	"os"
	"testing"

	"github.com/mayflydb/mayfly/internal/script"
)

func TestMain(m *testing.M) {
	script.RunWorker()
	os.Exit(m.Run())
}
