// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What one server has goes to files and directories, and from there or directly to another.
func testTransfer(t *testing.T, b binary) {
	one := []string{"MAYFLY_CONNECTION=" + b.start(t, nil, "serve", "--memory", anyPort).connection}
	two := []string{"MAYFLY_CONNECTION=" + b.start(t, nil, "serve", "--memory", anyPort).connection}
	b.ok(t, one, "put", "shop", "carts", "--key-path=/customer", "--ttl=1h")
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	var rows bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&rows, `{"id":"%d","customer":"c%d","total":%d}`+"\n", i, i%13, i)
	}
	rows.WriteString("nonsense\n")
	if err := os.WriteFile(in("in.jsonl"), rows.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	o := b.fails(t, one, "1 row was rejected: "+in("rejected")+" has it", "import", "shop", "carts", "--from="+in("in.jsonl"), "--rejected="+in("rejected"))
	if !strings.Contains(o.stderr, "imported 1,000 items") {
		t.Errorf("import says %q", o.stderr)
	}
	if raw, err := os.ReadFile(in("rejected")); err != nil || !bytes.Contains(raw, []byte("nonsense")) {
		t.Errorf("the rejected rows are %q, %v", raw, err)
	}
	c := b.command(t, one, "import", "shop", "carts", "--from="+in("in.jsonl"))
	c.Dir = dir
	if said, err := c.CombinedOutput(); err == nil || !strings.Contains(string(said), ": shop-carts-rejected.jsonl has it") {
		t.Errorf("import says %q, %v", said, err)
	}
	count := func(env []string) string {
		return b.ok(t, env, "query", "shop", "carts", "SELECT VALUE COUNT(1) FROM c")
	}

	b.ok(t, one, "export", "shop", "carts", "--to="+in("out.csv"))
	b.fails(t, one, "the file exists", "export", "shop", "carts", "--to="+in("out.csv"))
	b.fails(t, one, "slash at its end", "export", "shop")
	if o := b.fails(t, two, "mayfly put shop carts", "import", "shop", "carts", "--from="+in("out.csv")); !strings.Contains(o.stderr, ". To make the container: ") {
		t.Errorf("import into nothing says %q", o.stderr)
	}
	b.fails(t, two, "name the database and the container", "import", "--from="+in("out.csv"))
	b.ok(t, two, "put", "shop", "carts", "--key-path=/customer")
	b.ok(t, two, "import", "shop", "carts", "--from="+in("out.csv"))
	if got := count(two); got != "1000\n" {
		t.Errorf("from csv there are %s", got)
	}
	piped := b.ok(t, one, "export", "shop", "carts")
	c = b.command(t, two, "import", "shop", "carts", "--from=-")
	c.Stdin = strings.NewReader(piped)
	if out, err := c.CombinedOutput(); err != nil || strings.Count(piped, "\n") != 1000 {
		t.Errorf("through a pipe: %v, %d lines\n%s", err, strings.Count(piped, "\n"), out)
	}
	b.ok(t, two, "rm", "shop", "--yes")
	b.ok(t, one, "export", "--to="+in("all")+"/")
	b.ok(t, two, "import", "--from="+in("all"))
	if got := count(two); got != "1000\n" || !strings.Contains(b.ok(t, two, "get", "shop", "carts"), `"defaultTtl": 3600`) {
		t.Errorf("from a directory there are %s", got)
	}
	b.ok(t, two, "rm", "shop", "--yes")

	// From the account itself, with what is written meanwhile.
	b.fails(t, one, "are the same", "import", "--from="+strings.TrimPrefix(one[0], "MAYFLY_CONNECTION="))
	c = b.command(t, append([]string{"MAYFLY_FROM=" + strings.TrimPrefix(one[0], "MAYFLY_CONNECTION=")}, two...), "import", "--follow")
	said := &journal{}
	c.Stderr = said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill() }()
	if text := said.await("the copy is complete"); !strings.Contains(text, "the copy is complete") {
		t.Fatalf("the copy does not end: %s", text)
	}
	b.ok(t, one, "put", "shop", "carts", `{"id":"new","customer":"ada"}`)
	for began := time.Now(); b.run(t, two, "get", "shop", "carts", "new", "ada").code != 0; time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > waitLimit {
			t.Fatalf("what is written does not follow: %s", said)
		}
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil || !strings.Contains(said.String(), "moved 1,00") || !strings.Contains(said.String(), "deletes in shop/carts do not follow") {
		t.Errorf("stopped, the move says %v: %s", err, said)
	}
	if got := count(two); got != "1001\n" {
		t.Errorf("there are %s", got)
	}
}

// An import that is killed goes on when it is run again.
func testKilledImport(t *testing.T, b binary) {
	p := b.start(t, nil, "serve", "--memory", anyPort)
	env := []string{"MAYFLY_CONNECTION=" + p.connection}
	b.ok(t, env, "put", "shop", "carts", "--key-path=/id")
	file := filepath.Join(t.TempDir(), "carts.jsonl")
	const items = 40_000
	var rows bytes.Buffer
	for i := range items {
		fmt.Fprintf(&rows, `{"id":"%d","pad":"%s"}`+"\n", i, strings.Repeat("x", 100))
	}
	if err := os.WriteFile(file, rows.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"import", "shop", "carts", "--from=" + file, "--connections=2", "--create"}
	c := b.command(t, env, args...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(file + ".import.state"); err == nil {
			break
		}
		if time.Since(began) > waitLimit {
			t.Fatal("no state is saved")
		}
	}
	if err := c.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Skip("the import was faster than its end")
	}
	if o := b.run(t, env, args...); o.code != 0 {
		t.Errorf("the second run: %+v", o)
	}
	if got := b.ok(t, env, "query", "shop", "carts", "SELECT VALUE COUNT(1) FROM c"); got != fmt.Sprintln(items) {
		t.Errorf("there are %s items, want %d", got, items)
	}
}
