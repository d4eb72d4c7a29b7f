// SPDX-License-Identifier: MIT

package value

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What is quoted back is a whole, short beginning of what was sent.
func TestClip(t *testing.T) {
	for _, s := range []string{"", "short", strings.Repeat("x", maxClipped), strings.Repeat("x", maxClipped+1), strings.Repeat("ü", maxClipped), "x" + strings.Repeat("日", maxClipped)} {
		got := Clip(s)
		if !utf8.ValidString(got) || len(got) > maxClipped+len("…") || (len(s) <= maxClipped) != (got == s) || !strings.HasPrefix(s, strings.TrimSuffix(got, "…")) {
			t.Errorf("%q becomes %q", s, got)
		}
	}
}
