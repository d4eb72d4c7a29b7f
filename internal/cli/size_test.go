// SPDX-License-Identifier: MIT

package cli

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]size{
		"1": 1, "100": 100, "100B": 100, "64MiB": 64 << 20, "64mib": 64 << 20, "1.5 KiB": 1536, "2GB": 2e9, "3KB": 3000, "1TiB": 1 << 40,
	} {
		var got size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "0", "0.1", "1e40", "NaN", "Inf", "12 apples", "1 M", "1MiBs", "0x10000TiB"} {
		var got size
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %d, want an error", text, got)
		}
	}
}
