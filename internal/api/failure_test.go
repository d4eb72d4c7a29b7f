// SPDX-License-Identifier: MIT

package api

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

// Every error of the table is found, also when wrapped, and its status has a name.
func TestFailures(t *testing.T) {
	for _, f := range failures {
		for _, err := range []error{f.err, fmt.Errorf("some detail: %w", f.err), errors.Join(io.EOF, f.err)} {
			if got, known := FailureOf(err); got != f.Failure || !known {
				t.Errorf("%v is %+v, want %+v", err, got, f.Failure)
			}
		}
		if statusCodes[f.Status] == "" {
			t.Errorf("the status %d has no name", f.Status)
		}
	}
}
