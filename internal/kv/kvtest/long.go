// SPDX-License-Identifier: MIT

package kvtest

import (
	"os"
	"strconv"
	"testing"
)

// LongFactor returns how many times more runs than usual a random test makes: the value of
// the environment variable MAYFLY_LONG, or one.
func LongFactor(t testing.TB) int {
	t.Helper()
	text := os.Getenv("MAYFLY_LONG")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("MAYFLY_LONG is %q, want a number from 1 on", text)
	}
	return n
}
