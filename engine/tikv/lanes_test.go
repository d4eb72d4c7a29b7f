// SPDX-License-Identifier: MIT

package tikv_test

// The tests of other packages that engine/tikv/run runs in this module need these libraries,
// whose versions are those of the main module.
import (
	_ "github.com/anishathalye/porcupine"
	_ "github.com/cockroachdb/datadriven"
	_ "go.uber.org/goleak"
	_ "pgregory.net/rapid"
)
