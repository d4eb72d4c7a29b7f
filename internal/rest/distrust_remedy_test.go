// SPDX-License-Identifier: MIT

package rest

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The log tells Java programs without TLS to set what the page about running a server says
// that they need.
func TestTrustRemedyNamesJavaProperty(t *testing.T) {
	page, err := os.ReadFile("../../docs/running.md")
	if err != nil {
		t.Fatal(err)
	}
	property := regexp.MustCompile(`-DCOSMOS\.[A-Z_]+=true`).FindString(string(page))
	if property == "" || !strings.Contains(trustRemedy, property) {
		t.Errorf("the page says %q, and the log %q", property, trustRemedy)
	}
}
