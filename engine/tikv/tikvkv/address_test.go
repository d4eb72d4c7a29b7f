// SPDX-License-Identifier: MIT

package tikvkv

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"tikv://pd":                         "[pd:2379] mayfly",
		"tikv://pd1:2379,pd2:1234/":         "[pd1:2379 pd2:1234] mayfly",
		"tikv://[::1]:2379/shop-1":          "[[::1]:2379] shop-1",
		"tikv://[::1]/x":                    "[[::1]:2379] x",
		"tikv://a,b,c/x?async-commit=true":  "[a:2379 b:2379 c:2379] x async",
		"tikv://a/x?one-phase-commit=1":     "[a:2379] x one-phase",
		"tikv://a/x?ca=c.pem&cert=d&key=/e": "[a:2379] x c.pem d /e",
	} {
		a, err := parseAddress(text)
		got := fmt.Sprint(a.pds, " ", a.name)
		for _, file := range []string{a.ca, a.cert, a.key} {
			if file != "" {
				got += " " + file
			}
		}
		if a.asyncCommit {
			got += " async"
		}
		if a.onePhase {
			got += " one-phase"
		}
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "tikv://", "tikv:///x", "tikv://a,,b/x", "tikv://me:secret@a/x", "http://a/x", "tikv://a/X", "tikv://a/b/c",
		"tikv://a/" + strings.Repeat("x", 33), "tikv://a/x?async-commit=maybe", "tikv://a/x?other=1", "tikv://a/x?a=%zz",
	} {
		if a, err := parseAddress(text); !errors.Is(err, errAddress) {
			t.Errorf("%s: got %+v, %v", text, a, err)
		}
	}
}

// No key of one part of a store, and no bound of a range in it, lies in another.
func TestStoresDoNotOverlap(t *testing.T) {
	var parts []prefix
	for _, name := range []string{"a", "ab", "b", "a-"} {
		a := address{name: name}
		parts = append(parts, a.rows(), a.own())
	}
	for i, p := range parts {
		from, to := p.bounds(nil, nil)
		for j, q := range parts {
			for _, key := range [][]byte{{}, {0}, {0xff, 0xff}} {
				in := string(q.key(key)) >= string(from) && string(q.key(key)) < string(to)
				if in != (i == j) {
					t.Errorf("the key %q is in the range of %q: %v", q.key(key), p, in)
				}
			}
		}
	}
}
