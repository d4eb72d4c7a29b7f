// SPDX-License-Identifier: MIT

package api

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
)

// FuzzToken: only signed tokens are accepted, and nothing panics.
func FuzzToken(f *testing.F) {
	secret := func(n byte) string { return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(n), 64))) }
	keys, err := NewKeys([]string{secret('a'), secret('b')}, []string{secret('c')})
	if err != nil {
		f.Fatal(err)
	}
	made := func(ks *Keys, t token) string { return strings.TrimPrefix(ks.token(&t), "type=resource&ver=1&sig=") }
	one := token{expires: time.Unix(4_000_000_000, 0), permission: catalog.PermissionRID{Database: 1, User: 2, Permission: 3}, container: 4}
	other := one
	other.container = 5
	known := []string{made(keys, one), made(keys, other)}
	for _, sig := range known {
		if _, err := keys.parseToken(sig); err != nil {
			f.Fatalf("%q: %v", sig, err)
		}
	}
	if t, err := keys.parseToken(known[0]); err != nil || t != one {
		f.Fatalf("got %+v, %v, want %+v", t, err, one)
	}
	// A key that may only read signs no token.
	reading := &Keys{all: keys.all[2:]}
	f.Add(made(reading, one))
	for _, s := range []string{known[0], known[0][:len(known[0])-1], "", ";", ";;", "AAAA;AAAA;", strings.Repeat("A", 44) + ";" + strings.Repeat("A", 44) + ";"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sig string) {
		if tok, err := keys.parseToken(sig); err == nil && !slices.Contains(known, strings.TrimSuffix(sig, ";")+";") {
			t.Errorf("%q is accepted as %+v", sig, tok)
		}
	})
}
