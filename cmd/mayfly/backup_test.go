// SPDX-License-Identifier: MIT

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/client"
	"github.com/mayflydb/mayfly/internal/value"
)

// backUp backs up a server and returns the directory of the backup.
func (b binary) backUp(t *testing.T, env []string, dir string) (name, said string) {
	t.Helper()
	said = b.ok(t, env, "backup", "--to="+dir)
	name, _, _ = strings.Cut(said, ": ")
	return name, said
}

// A backup of a server under load has every write that was acknowledged before it began, and
// its rows agree. The next one links what has not changed. A restored server begins a new
// history.
func testBackup(t *testing.T, b binary) {
	dir := t.TempDir()
	p := b.start(t, nil, "serve", anyPort, "--data="+filepath.Join(dir, "data"))
	env := []string{"MAYFLY_CONNECTION=" + p.connection}
	b.ok(t, env, "put", "shop", "carts", "--key-path=/id", "--ttl=1h")
	carts := client.Name{Database: "shop", Container: "carts"}
	var acknowledged atomic.Int64 // all items up to this number of each writer are
	var stop, resting atomic.Bool
	var wait sync.WaitGroup
	const writers = 4
	var counts [writers]atomic.Int64
	for w := range writers {
		c, err := client.New(client.Options{Endpoint: "http://" + p.addr, Key: mayfly.WellKnownKey})
		if err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			for i := int64(1); !stop.Load(); i++ {
				for resting.Load() && !stop.Load() {
					time.Sleep(time.Millisecond)
				}
				id := fmt.Sprintf("%d-%d", w, i)
				item := fmt.Appendf(nil, `{"id":%q,"pad":%q}`, id, strings.Repeat("x", 500))
				if _, err := c.WriteItem(t.Context(), carts, item, value.PartitionKey{value.String(id)}, client.Create); err != nil {
					t.Errorf("write %s: %v", id, err)
					return
				}
				counts[w].Store(i)
				acknowledged.Add(1)
			}
		})
	}
	defer func() { stop.Store(true); wait.Wait() }()
	await := func(n int64) {
		for began := time.Now(); acknowledged.Load() < n && !t.Failed(); time.Sleep(time.Millisecond) {
			if time.Since(began) > waitLimit {
				t.Fatalf("only %d writes", acknowledged.Load())
			}
		}
	}
	var backups []string
	var had [][writers]int64
	for i := range 3 {
		await(int64(i+1) * 300)
		var at [writers]int64
		for w := range writers {
			at[w] = counts[w].Load()
		}
		name, said := b.backUp(t, env, filepath.Join(dir, "backups"))
		if _, err := os.Stat(filepath.Join(name, "backup.json")); err != nil {
			t.Fatalf("backup says %q: %v", said, err)
		}
		backups, had = append(backups, name), append(had, at)
		resting.Store(true)                                             // the writers leave the processors to other tests
		for before := time.Now(); time.Now().Unix() == before.Unix(); { // names have seconds
			time.Sleep(10 * time.Millisecond)
		}
		resting.Store(false)
	}
	stop.Store(true)
	wait.Wait()
	b.ok(t, env, "clock")
	p.stop(t, syscall.SIGTERM)
	if _, err := os.Stat(filepath.Join(dir, "data", "db.checkpoint")); err == nil {
		t.Error("a checkpoint is left in the data")
	}
	for i, backup := range backups {
		data := filepath.Join(dir, fmt.Sprint("restored", i))
		b.ok(t, nil, "restore", "--from="+backup, "--data="+data)
		if o := b.run(t, nil, "check", "--data="+data); o.code != 0 {
			t.Fatalf("check of backup %d: %+v", i, o)
		}
		b.fails(t, nil, "there is data in", "restore", "--from="+backup, "--data="+data)
		p := b.start(t, nil, "serve", anyPort, "--data="+data)
		c, err := client.New(client.Options{Endpoint: "http://" + p.addr, Key: mayfly.WellKnownKey})
		if err != nil {
			t.Fatal(err)
		}
		for w := range writers {
			for n := int64(1); n <= had[i][w]; n++ {
				id := fmt.Sprintf("%d-%d", w, n)
				if _, err := c.ReadItem(t.Context(), carts, id, value.PartitionKey{value.String(id)}); err != nil {
					t.Fatalf("backup %d has lost %s: %v", i, id, err)
				}
			}
		}
		newHistory(t, c, carts)
		p.stop(t, syscall.SIGTERM)
		if o := b.run(t, nil, "check", "--data="+data); o.code != 0 {
			t.Fatalf("check after writes to backup %d: %+v", i, o)
		}
	}
	// After a stop everything is in tables, which two backups share.
	p = b.start(t, nil, "serve", anyPort, "--data="+filepath.Join(dir, "data"))
	env = []string{"MAYFLY_CONNECTION=" + p.connection}
	first, _ := b.backUp(t, env, filepath.Join(dir, "linked"))
	for before := time.Now(); time.Now().Unix() == before.Unix(); {
		time.Sleep(10 * time.Millisecond)
	}
	second, said := b.backUp(t, env, filepath.Join(dir, "linked"))
	tables, err := filepath.Glob(filepath.Join(first, "db", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("the backup has no tables: %v", err)
	}
	shared := 0
	for _, name := range tables {
		one, err1 := os.Stat(name)
		two, err2 := os.Stat(filepath.Join(second, "db", filepath.Base(name)))
		if err1 == nil && err2 == nil && os.SameFile(one, two) {
			shared++
		}
	}
	if shared == 0 {
		t.Errorf("two backups share none of %d tables; the second says %q", len(tables), said)
	}
	// A restore that was interrupted keeps the tables that it has copied, and nothing else.
	data := filepath.Join(dir, "resumed")
	under := filepath.Join(data, "restoring", "db")
	if err := os.MkdirAll(under, 0o700); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(under, filepath.Base(tables[0]))
	raw, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, raw []byte) {
		t.Helper()
		if err := os.WriteFile(name, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(under, "MANIFEST-999999"), []byte("of a storage engine that was opened"))
	for what, content := range map[string][]byte{"whole": raw, "damaged": append([]byte{^raw[0]}, raw[1:]...), "cut": raw[:len(raw)/2]} {
		write(copied, content)
		held := filepath.Join(dir, "held "+what) // a link, so that no other file gets its number
		if err := os.Link(copied, held); err != nil {
			t.Fatal(err)
		}
		was, err := os.Stat(held)
		if err != nil {
			t.Fatal(err)
		}
		b.ok(t, nil, "restore", "--from="+first, "--data="+data)
		if now, err := os.Stat(filepath.Join(data, "db", filepath.Base(copied))); err == nil && os.SameFile(was, now) != (what == "whole") {
			t.Errorf("a table that was %s is the same file afterwards: %t", what, what != "whole")
		}
		if o := b.run(t, nil, "check", "--data="+data); o.code != 0 {
			t.Errorf("check after a table that was %s: %+v", what, o)
		}
		if err := errors.Join(os.RemoveAll(filepath.Join(data, "db")), os.MkdirAll(under, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	// A damaged backup is refused.
	if err := os.Truncate(tables[0], 10); err != nil {
		t.Fatal(err)
	}
	b.fails(t, nil, "is damaged", "restore", "--from="+first, "--data="+filepath.Join(dir, "damaged"))
	if o := b.fails(t, nil, "there is no backup", "restore", "--from="+dir, "--data="+filepath.Join(dir, "none")); strings.Contains(o.stderr, "the last is") {
		t.Errorf("a directory without backups has a last one: %s", o.stderr)
	}
	b.fails(t, nil, "the last is "+backups[len(backups)-1], "restore", "--from="+filepath.Dir(backups[len(backups)-1]), "--data="+filepath.Join(dir, "none"))
}

// newHistory checks that a restored server answers a session token of a later time, which is
// of the lost history, and that a change feed goes on from such a position with what is new.
func newHistory(t *testing.T, c *client.Client, n client.Name) {
	t.Helper()
	const lostLSN = 1_000_000 // far beyond the writes of this test
	key := value.PartitionKey{value.String("new")}
	if _, err := c.WriteItem(t.Context(), n, []byte(`{"id":"new"}`), key, client.Create); err != nil {
		t.Fatal(err)
	}
	read := &client.Request{Method: http.MethodGet, Path: "/dbs/shop/colls/carts/docs/new", Kind: "docs", Link: "dbs/shop/colls/carts/docs/new", Header: map[string]string{
		"X-Ms-Documentdb-Partitionkey": `["new"]`, "X-Ms-Session-Token": fmt.Sprintf("0:-1#%d", lostLSN),
	}}
	if _, err := c.Do(t.Context(), read); err != nil {
		t.Errorf("with a session token of the lost history: %v", err)
	}
	a, err := c.Changes(t.Context(), n, client.Latest, "0", fmt.Sprintf("%q", fmt.Sprint(lostLSN)), 10)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := a.Rows(client.Items)
	if err != nil || len(rows) != 1 || client.ID(rows[0]) != "new" {
		t.Errorf("after a position of the lost history there are %d changes, %v, want the new one", len(rows), err)
	}
}

// Items come back that would be dead by now; those that were dead at the backup do not.
func testRestoreWithoutTTL(t *testing.T, b binary) {
	dir := t.TempDir()
	p := b.start(t, nil, "serve", anyPort, "--test-clock", "--data="+filepath.Join(dir, "data"))
	env := []string{"MAYFLY_CONNECTION=" + p.connection}
	b.ok(t, env, "put", "shop", "carts", "--key-path=/id", "--ttl=1h")
	b.ok(t, env, "ttl", "pause")
	b.ok(t, env, "put", "shop", "carts", `{"id":"short","ttl":60}`)
	b.ok(t, env, "put", "shop", "carts", `{"id":"long"}`)
	b.ok(t, env, "clock", "advance", "40m") // twice of which would be the end of long
	b.ok(t, env, "clock", "freeze")
	first, _ := b.backUp(t, env, filepath.Join(dir, "backups"))
	backup, _ := b.backUp(t, env, filepath.Join(dir, "backups"))
	if first >= backup {
		t.Errorf("two backups of one moment are %s and %s", first, backup)
	}
	b.ok(t, env, "clock", "release")
	p.stop(t, syscall.SIGTERM)
	for flag, want := range map[string]string{"": "", "--without-ttl": "\"long\"\n"} {
		data := filepath.Join(dir, "restored"+flag)
		b.ok(t, nil, strings.Fields("restore --from="+backup+" --data="+data+" "+flag)...)
		p := b.start(t, nil, "serve", anyPort, "--test-clock", "--data="+data)
		env := []string{"MAYFLY_CONNECTION=" + p.connection}
		b.ok(t, env, "clock", "advance", "2h")
		if got := b.ok(t, env, "query", "shop", "carts", "SELECT VALUE c.id FROM c", "--json"); got != want {
			t.Errorf("restored with %q, there are %q after two hours, want %q", flag, got, want)
		}
		p.stop(t, syscall.SIGTERM)
		if o := b.run(t, nil, "check", "--data="+data); o.code != 0 {
			t.Errorf("check: %+v", o)
		}
	}
}

// A new server is filled from a file or an export. One that has data is left alone.
func testInit(t *testing.T, b binary) {
	dir := t.TempDir()
	file := filepath.Join(dir, "seed.json")
	seed := `{"databases":[{"id":"shop","containers":[{"id":"carts","partitionKey":{"paths":["/customer"],"kind":"Hash","version":2},"defaultTtl":3600,"throughput":500,
		"items":[{"id":"1","customer":"ada"},{"customer":"bob"}],"userDefinedFunctions":[{"id":"twice","body":"function (x) { return 2 * x; }"}]}]},{"id":"empty"}]}`
	if err := os.WriteFile(file, []byte(seed), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	count := func(p *process) string {
		return b.ok(t, []string{"MAYFLY_CONNECTION=" + p.connection}, "query", "shop", "carts", "SELECT VALUE COUNT(1) FROM c WHERE udf.twice(1) = 2")
	}
	p := b.start(t, nil, "serve", anyPort, "--data="+data, "--init="+file)
	env := []string{"MAYFLY_CONNECTION=" + p.connection}
	if got := count(p); got != "2\n" || !strings.Contains(b.ok(t, env, "ls"), "500 RU/s") {
		t.Errorf("a new server has %s items:\n%s", got, b.ok(t, env, "ls"))
	}
	b.ok(t, env, "export", "--to="+filepath.Join(dir, "all")+"/")
	b.ok(t, env, "rm", "shop", "carts", "1", "ada")
	p.stop(t, syscall.SIGTERM)
	p = b.start(t, nil, "serve", anyPort, "--data="+data, "--init="+file)
	if got := count(p); got != "1\n" {
		t.Errorf("a server with data has %s items", got)
	}
	p.stop(t, syscall.SIGTERM)
	// A start that was interrupted in it goes on.
	if err := os.WriteFile(filepath.Join(data, "seeding"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p = b.start(t, nil, "serve", anyPort, "--data="+data, "--init="+file)
	if got := count(p); got != "2\n" {
		t.Errorf("a server that was interrupted has %s items", got)
	}
	if got := count(b.start(t, nil, "serve", anyPort, "--memory", "--init="+filepath.Join(dir, "all"))); got != "2\n" {
		t.Errorf("from an export there are %s items", got)
	}
	b.fails(t, nil, "--init nosuch", "serve", anyPort, "--memory", "--init=nosuch")
	if err := os.WriteFile(file, []byte(`{"databases":[{"id":"shop","container":[]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b.fails(t, nil, "unknown field", "serve", anyPort, "--memory", "--init="+file)
}

// A server that is still being filled is alive, and not ready.
func testInitUnready(t *testing.T, b binary) {
	addr := "127.0.0.1:" + freePort(t)
	// The file comes from a pipe, so the server is being filled until that ends.
	c := b.command(t, nil, "serve", "--listen="+addr, "--memory", "--init=/dev/stdin")
	stderr := &journal{}
	c.Stderr = stderr
	seed, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	page := func(path string) (status int, body string) {
		t.Helper()
		for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			r, err := http.NewRequest("GET", "http://"+addr+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			status, body, err := do(r)
			if err == nil {
				return status, string(body)
			}
			if time.Since(began) > waitLimit {
				t.Fatalf("the server does not answer: %v\n%s", err, stderr)
			}
		}
	}
	if status, body := page("/_mayfly/health"); status != http.StatusOK {
		t.Errorf("health while it is being filled: %d %s", status, body)
	}
	if status, body := page("/_mayfly/ready"); status != http.StatusServiceUnavailable || !strings.Contains(body, "--init") {
		t.Errorf("ready while it is being filled: %d %s", status, body)
	}
	b.fails(t, nil, "not ready", "health", "--endpoint="+addr)
	if _, err := io.WriteString(seed, `{"databases":[{"id":"shop"}]}`); err != nil {
		t.Fatal(err)
	}
	if err := seed.Close(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); b.run(t, nil, "health", "--endpoint="+addr).code != 0; {
		if time.Since(began) > waitLimit {
			t.Fatalf("it is never ready:\n%s", stderr)
		}
	}
	if got := b.ok(t, nil, "ls", "--endpoint="+addr); !strings.Contains(got, "shop") {
		t.Errorf("when it is ready there is:\n%s", got)
	}
}
