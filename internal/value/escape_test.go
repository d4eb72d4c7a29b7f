// SPDX-License-Identifier: MIT

package value

import "testing"

func TestEscapeSpace(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		if got := string(EscapeSpace([]byte(src))); got != want {
			t.Errorf("EscapeSpace(%q) = %q, want %q", src, got, want)
		}
	}
	f(``, ``)
	f("{\n\t\"a\":\r\n1}", "{\n\t\"a\":\r\n1}")
	f("{\n\"a\tb\": \"\r\n\"}\n", "{\n\"a\\tb\": \"\\r\\n\"}\n")
	f("{\"a\\\"\t\":\t\"\\\\\"\t}", "{\"a\\\"\\t\":\t\"\\\\\"\t}")
	f("\"\\\t\"", "\"\\\t\"") // a backslash before a tab is no escape
	f("\"\x01\"", "\"\x01\"")
	f("\"\t", "\"\\t")
	f("\"\\", "\"\\")
}
