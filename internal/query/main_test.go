// SPDX-License-Identifier: MIT

package query

import (
	"os"
	"testing"

	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

func TestMain(m *testing.M) {
	kvtest.FewerChecks()
	os.Exit(m.Run())
}
