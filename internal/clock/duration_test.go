// SPDX-License-Identifier: MIT

package clock

import (
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"0": 0, "60": time.Minute, "-1": -time.Second, "90s": 90 * time.Second, "1h": time.Hour, "1.5h": 90 * time.Minute,
		"500ms": 500 * time.Millisecond, "3d": 3 * day, "0d": 0, "1d12h": day + 12*time.Hour, "1d1h1m1s": day + time.Hour + time.Minute + time.Second,
		"106751d": 106751 * day, "9223372036": 9223372036 * time.Second,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "d", "h", "-3d", "+1d", "1.5d", "1h3d", "1d-1h", "1d+1h", "1d2", "1 d", "1D", "1d1d", "1y", "soon", "1e3",
		"106752d", "106751d24h", "4294967296d", "9223372037", "-9223372037", "99999999999999999999", "0x10", "1_000",
	} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// Whatever the text is, a duration that is read is one that can be written and read again.
func FuzzParseDuration(f *testing.F) {
	for _, text := range []string{"60", "-1", "1h", "1d12h", "106751d", "d", "1d-1h", "9223372036854775807"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			return
		}
		if again, err := ParseDuration(d.String()); err != nil || again != d {
			t.Errorf("%q is %v, and that is %v, %v", text, d, again, err)
		}
	})
}
