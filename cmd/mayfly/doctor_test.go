// SPDX-License-Identifier: MIT

package main

import (
	"strings"
	"testing"
)

// doctor finds nothing to mend in a server that works, and says what to do about one that
// does not.
func testDoctor(t *testing.T, b binary) {
	dir := t.TempDir()
	p := b.start(t, nil, "serve", anyPort, "--data="+dir)
	said := b.ok(t, nil, "doctor", "--endpoint=http://"+p.addr, "--data="+dir)
	for _, want := range []string{"ok    port ", "ok    key ", "ok    clock ", "ok    time ", " certificate ", "valid until", "ok    disk ", "for a server on this machine"} {
		if !strings.Contains(said, want) {
			t.Errorf("doctor lacks %q:\n%s", want, said)
		}
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"Give the server's key", []string{"--endpoint=http://" + p.addr, "--key=" + ownKey}},
		{"Trust the server's certificate", []string{"--endpoint=https://" + p.addr}},
		{"Start a server", []string{"--endpoint=http://127.0.0.1:1"}},
		{"in base64", []string{"--endpoint=http://" + p.addr, "--key=&"}},
	} {
		o := b.fails(t, nil, "have to be mended", append([]string{"doctor"}, c.args...)...)
		if !strings.Contains(o.stdout, c.want) || !strings.Contains(o.stdout, "BAD") {
			t.Errorf("doctor %q lacks %q:\n%s", c.args, c.want, o.stdout)
		}
	}
	b.ok(t, nil, "doctor", "--endpoint=https://"+p.addr, "--ca="+dir, "--data="+dir)
}

// bench leaves nothing behind.
func testBench(t *testing.T, b binary) {
	env := []string{"MAYFLY_CONNECTION=" + b.start(t, nil, "serve", "--memory", anyPort).connection}
	for _, wrong := range []string{"--ttl=1.5s", "--ttl=0", "--ttl=soon", "--seconds=10ms"} {
		b.fails(t, env, "", "bench", wrong)
	}
	said := b.ok(t, env, "bench", "--seconds=100ms", "--connections=2", "--ttl=1h")
	for _, what := range []string{"create", "read", "replace", "query", "delete"} {
		if !strings.Contains(said, "\n"+what+" ") || !strings.Contains(said, " ms ") {
			t.Errorf("bench lacks %s:\n%s", what, said)
		}
	}
	if got := b.ok(t, env, "ls"); got != "" {
		t.Errorf("bench leaves behind:\n%s", got)
	}
}
