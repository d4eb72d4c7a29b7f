// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// An operator splits a partition of a server with its own data, and waits for the end or not.
// What cannot be split is refused, with what there is.
func testSplit(t *testing.T, b binary) {
	p := b.start(t, nil, anyPort, "--data", t.TempDir())
	env := []string{"MAYFLY_CONNECTION=" + p.connection}
	b.ok(t, env, "put", "shop", "carts", "--key-path=/customer")
	for i := range 6 {
		b.ok(t, env, "put", "shop", "carts", fmt.Sprintf(`{"id":"1","customer":"c%d"}`, i))
	}
	split := func(args ...string) string { return b.ok(t, env, append([]string{"cluster", "split"}, args...)...) }
	want := regexp.MustCompile(`^splitting range 0 into 1 and 2: 6 items\nsplit range 0 into 1 and 2: 6 items in \d+\.\d s, in which writes waited for \d+ ms\n$`)
	if got := split("shop", "carts", "0"); !want.MatchString(got) {
		t.Errorf("mayfly cluster split prints %q, want %s", got, want)
	}
	for text, args := range map[string][]string{
		"The container has no range '0'. It has 1, 2.": {"shop", "carts", "0"},
		"The container has no range 'x'. It has 1, 2.": {"shop", "carts", "x"},
		"404":                  {"shop", "nosuch", "0"},
		"expected \"<range>\"": {"shop", "carts"},
	} {
		b.fails(t, env, text, append([]string{"cluster", "split"}, args...)...)
	}
	if got := split("shop", "carts", "2", "--no-wait"); !strings.HasPrefix(got, "splitting range 2 into 3 and 4: ") || strings.Count(got, "\n") > 2 {
		t.Errorf("without waiting it prints %q", got)
	}
	await(t, "the split ends, and another one is done", func() bool {
		o := b.run(t, env, "cluster", "split", "shop", "carts", "3")
		return o.code == 0 && strings.Contains(o.stdout, "split range 3 into 5 and 6: ")
	})
	if got := b.ok(t, env, "query", "shop", "carts", "SELECT VALUE c.customer FROM c", "--json"); strings.Count(got, "\n") != 6 {
		t.Errorf("the items are %q", got)
	}
}
