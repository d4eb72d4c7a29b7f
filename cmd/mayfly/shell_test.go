// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// The shell runs statements of one line and of several.
func testShell(t *testing.T, b binary) {
	env := []string{"MAYFLY_CONNECTION=" + b.start(t, nil, "serve", "--memory", anyPort).connection}
	b.ok(t, env, "put", "shop", "carts", "--key-path=/id")
	script := func(text string, args ...string) (string, error) {
		c := b.command(t, env, append([]string{"shell"}, args...)...)
		var stdout, stderr bytes.Buffer
		c.Stdin, c.Stdout, c.Stderr = strings.NewReader(text), &stdout, &stderr
		err := c.Run()
		return stdout.String() + stderr.String(), err
	}
	said, err := script("ls\nuse shop\nls\nuse shop carts\nput {\"id\":\"1\",\n \"n\":7}\njson on\nSELECT c.n\nFROM c\nWHERE c.id = '1';\nget 1\nrm 1\nSELECT VALUE COUNT(1) FROM c")
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, want := range []string{"shop\ncarts\n", `{"n":7}`, "\"n\": 7", "\n0\n", "created the item 1"} {
		if !strings.Contains(said, want) {
			t.Errorf("the shell lacks %q:\n%s", want, said)
		}
	}
	for text, want := range map[string]string{"SELEC;": "there is no command", "SELECT * FROM;": "unexpected end-of-file", "use nosuch": "404"} {
		if said, err := script(text+"\nls\n", "shop", "carts"); err == nil || !strings.Contains(said, want) {
			t.Errorf("%q: %v, %s", text, err, said)
		}
	}
	if said, err := script("SELECT 1;"); err == nil || !strings.Contains(said, "choose a container first") {
		t.Errorf("without a container: %v, %s", err, said)
	}

	// On a terminal there is a prompt, completion and history.
	tool, err := exec.LookPath("script")
	if err != nil {
		t.Skip("script is not here to make a terminal")
	}
	c := b.command(t, env)
	run := exec.Command(tool, "-qec", string(b)+" shell", "/dev/null")
	run.Dir, run.Env = c.Dir, append(c.Env, "TERM=xterm", "PATH=/usr/bin:/bin", "SHELL=/bin/sh", "XDG_CACHE_HOME="+c.Dir)
	// "use", Tab for the only database, Tab for the only container; then the last statement again.
	run.Stdin = strings.NewReader("use sh\tca\t\rls\r\x1b[A\r\x04")
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "shop/carts> ") || strings.Count(string(out), "0 rows") != 2 {
		t.Errorf("on a terminal: %v\n%q", err, out)
	}
}
