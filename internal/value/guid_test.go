// SPDX-License-Identifier: MIT

package value

import (
	"regexp"
	"testing"
)

func TestGUIDs(t *testing.T) {
	var text [GUIDChars]byte
	PutGUID(text[:], 0x0123456789abcdef, 0xfedcba9876543210)
	if got, want := string(text[:]), "01234567-89ab-cdef-fedc-ba9876543210"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 1000 {
		id := NewGUID()
		if !form.MatchString(id) || seen[id] {
			t.Fatalf("%s is no new GUID of version 4", id)
		}
		seen[id] = true
	}
}
