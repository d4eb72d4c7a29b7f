// SPDX-License-Identifier: MIT

package kvtest

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// plainChecks is how many random histories a property has in a plain run.
const plainChecks = "30"

// FewerChecks has TestMain lower the default of -rapid.checks, which is 100, in packages
// whose histories take long. A long run keeps it. Every run draws others.
func FewerChecks() {
	if os.Getenv("MAYFLY_LONG") != "" {
		return
	}
	if err := flag.Set("rapid.checks", plainChecks); err != nil {
		panic(err)
	}
}

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
