// SPDX-License-Identifier: MIT

package rest

import (
	"os"
	"testing"

	"github.com/mayflydb/mayfly/internal/script"
)

func TestMain(m *testing.M) {
	script.RunWorker()
	os.Exit(m.Run())
}
