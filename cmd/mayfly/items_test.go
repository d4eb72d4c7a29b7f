// SPDX-License-Identifier: MIT

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ok runs the binary, checks that it ends well, and returns what it prints.
func (b binary) ok(t *testing.T, env []string, args ...string) string {
	t.Helper()
	o := b.run(t, env, args...)
	if o.code != 0 {
		t.Fatalf("mayfly %q: exit %d:\n%s%s", args, o.code, o.stdout, o.stderr)
	}
	return o.stdout
}

// A newcomer makes a container, writes to it and looks into it with the command line alone.
func testItems(t *testing.T, b binary) {
	p := b.start(t, nil, "serve", "--memory", "--test-clock", anyPort)
	env := []string{"MAYFLY_CONNECTION=" + p.connection}
	if o := b.run(t, env, "ls"); o.code != 0 || !strings.Contains(o.stderr, "mayfly put") {
		t.Errorf("ls of a new server: %+v", o)
	}
	b.ok(t, env, "put", "shop", "carts", "--key-path=/customer", "--ttl=1h")
	b.fails(t, env, "there is a container carts already", "put", "shop", "carts", "--key-path=/customer")
	b.fails(t, env, "its default TTL stays 1h and is not 2h", "put", "shop", "carts", "--key-path=/customer", "--ttl=2h")
	b.fails(t, env, "its default TTL stays 1h and is not off", "put", "shop", "carts", `{"id":"1","customer":"ada"}`, "--key-path=/customer", "--ttl=off")
	b.fails(t, env, "404", "get", "shop", "carts", "1", "ada")
	b.ok(t, env, "put", "shop", "carts", `{"id":"1","customer":"ada"}`, "--key-path=/customer", "--ttl=60m")
	b.ok(t, env, "put", "shop", "carts", `{"id":"1","customer":"ada","total":12.5,"goods":["tea"]}`)
	file := filepath.Join(t.TempDir(), "cart.json")
	if err := os.WriteFile(file, []byte(`{"id":"a/b?","customer":"bö","total":3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b.ok(t, env, "put", "shop", "carts", file)
	b.fails(t, env, "409", "put", "shop", "carts", file, "--new")
	b.fails(t, env, "its property ttl", "put", "shop", "carts", `{"id":"short","customer":"ada"}`, "--ttl=5s")
	b.fails(t, env, "--key-path", "put", "shop", "--throughput=400")
	b.fails(t, env, "whole seconds", "put", "none", "carts", "--key-path=/customer", "--ttl=0")
	b.fails(t, env, "no database 'none'", "get", "none")
	for want, args := range map[string][]string{
		"shop      carts      /customer      1h ":     {"ls"},
		"shop      carts      /customer      1h     ": {"ls", "shop"},
		"1     ada       12.5   [\"tea\"]":            {"ls", "shop", "carts"},
		"\n2\n":                                       {"query", "shop", "carts", "SELECT VALUE COUNT(1) FROM c"},
		"\n12.5\n3\n":                                 {"query", "shop", "carts", "SELECT VALUE c.total FROM c ORDER BY c.total DESC"},
		"\n\"bö\"\n":                                  {"query", "shop", "carts", "SELECT VALUE c.customer FROM c WHERE c.total = @t", "--param=@t=3", "--json"},
		"\n[\"tea\"]\n":                               {"query", "shop", "carts", "SELECT VALUE c.goods FROM c", "--pk=ada", "--json"},
		"\"total\": 12.5":                             {"get", "shop", "carts", "1", "ada"},
		`"customer":"bö"`:                             {"get", "shop", "carts", "a/b?", `["bö"]`, "--json"},
		"\"defaultTtl\": 3600":                        {"get", "shop", "carts"},
		"\"id\": \"shop\"":                            {"get", "shop"},
		"\n{\"id\":\"1\",\"cus":                       {"ls", "shop", "carts", "--json", "--max=1"},
	} {
		if got := "\n" + b.ok(t, env, args...); !strings.Contains(got, want) {
			t.Errorf("mayfly %q prints %q, want %q", args, got, want)
		}
	}
	// Several partitions, whose rows the server merges.
	b.ok(t, env, "put", "shop", "orders", "--key-path=/customer", "--throughput=21000")
	for i := range 9 {
		b.ok(t, env, "put", "shop", "orders", fmt.Sprintf(`{"id":"%d","customer":"c%d","total":%d}`, i, i, i%3))
	}
	for query, want := range map[string]string{
		"SELECT VALUE COUNT(1) FROM c":                                           "9\n",
		"SELECT TOP 2 VALUE c.id FROM c ORDER BY c.id DESC":                      "\"8\"\n\"7\"\n",
		"SELECT DISTINCT VALUE c.total FROM c ORDER BY c.total":                  "0\n1\n2\n",
		"SELECT c.total, COUNT(1) AS n FROM c GROUP BY c.total ORDER BY c.total": `{"total":0,"n":3}` + "\n" + `{"total":1,"n":3}` + "\n" + `{"total":2,"n":3}` + "\n",
	} {
		if got := b.ok(t, env, "query", "shop", "orders", query, "--json"); got != want {
			t.Errorf("%s over four partitions: %q, want %q", query, got, want)
		}
	}
	said := b.command(t, env, "shell", "shop", "orders", "--json")
	said.Stdin = strings.NewReader("SELECT VALUE SUM(c.total)\nFROM c;\n")
	if out, err := said.Output(); err != nil || string(out) != "9\n" {
		t.Errorf("the shell over four partitions: %q, %v", out, err)
	}
	b.fails(t, env, "incorrect syntax", "query", "shop", "carts", "SELEC")
	b.fails(t, env, "404", "get", "shop", "carts", "1", "bö")
	for _, key := range []string{"7", "1.5e3", "true", "null"} {
		b.fails(t, env, "write it as '["+key+"]'", "get", "shop", "carts", "1", key)
		b.fails(t, env, "write it as '["+key+"]'", "rm", "shop", "carts", "1", key)
	}
	for _, key := range []string{"ada7", `"7"`, "[7]"} {
		if o := b.fails(t, env, "404", "get", "shop", "carts", "none", key); strings.Contains(o.stderr, "taken as text") {
			t.Errorf("get with the key %s: %s", key, o.stderr)
		}
	}
	b.fails(t, env, "give the item's partition key, which is at /customer", "get", "shop", "carts", "1")
	b.fails(t, env, "has 1 part and not 2", "get", "shop", "carts", "1", `["a","b"]`)
	b.fails(t, env, "no JSON object", "put", "shop", "carts", "{nonsense")
	// Time passes.
	b.ok(t, env, "clock", "advance", "3d")
	if got := b.ok(t, env, "query", "shop", "carts", "SELECT VALUE COUNT(1) FROM c"); got != "0\n" {
		t.Errorf("after three days there are %s items", got)
	}
	b.ok(t, env, "put", "shop", "carts", `{"id":"1","customer":"ada"}`)
	b.ok(t, env, "rm", "shop", "carts", "1", "ada")
	b.fails(t, env, "404", "rm", "shop", "carts", "1", "ada")
	b.fails(t, env, "give --yes if that is meant", "rm", "shop", "carts")
	b.ok(t, env, "rm", "shop", "carts", "--yes")
	b.ok(t, env, "rm", "shop", "--yes")
	b.fails(t, env, "404", "get", "shop")
}

// The tools trust a server's own certificate when they are told to, and those of a server on
// this machine from its data. They say when a key would go to another host in clear.
func testTrust(t *testing.T, b binary) {
	dir := t.TempDir()
	p := b.start(t, nil, "serve", anyPort, "--data="+dir)
	at := "--endpoint=https://" + p.addr
	b.fails(t, nil, "--ca", "ls", at)
	b.ok(t, nil, "ls", at, "--ca="+dir)
	b.ok(t, nil, "clock", at, "--ca="+dir)
	pem := filepath.Join(t.TempDir(), "mayfly.pem")
	if err := os.WriteFile(pem, []byte(b.ok(t, nil, "cert", "--data="+dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	b.ok(t, []string{"MAYFLY_CA=" + pem}, "ls", at)
	b.ok(t, []string{"MAYFLY_CONNECTION=" + p.connection}, "health")
	b.ok(t, []string{"MAYFLY_CONNECTION=" + strings.Replace(p.connection, "http:", "https:", 1)}, "health", "--ca="+pem)
	b.fails(t, nil, "does not answer", "health", at)
	b.ok(t, []string{"MAYFLY_DATA=" + dir}, "ls", at)
	b.fails(t, nil, "no certificate", "ls", at, "--ca="+writeKey(t, "nonsense", 0o600))
	b.fails(t, nil, "401", "ls", at, "--ca="+dir, "--key="+ownKey)
	p.stop(t, syscall.SIGTERM)

	// A server that is reached by a name, as another machine is.
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	defer other.Close()
	env := []string{"HTTP_PROXY=" + other.URL, "MAYFLY_KEY=" + ownKey}
	for command, warned := range map[string]bool{"clock": true, "ls": false} { // ls sends signatures only
		o := b.run(t, env, command, "--endpoint=http://db.example:8081")
		if strings.Contains(o.stderr, "goes to db.example:8081 in clear") != warned {
			t.Errorf("mayfly %s says %q", command, o.stderr)
		}
	}
	if o := b.run(t, env[:1], "clock", "--endpoint=http://db.example:8081"); strings.Contains(o.stderr, "in clear") {
		t.Errorf("with the well-known key it says %q", o.stderr)
	}
}

// What commands print for programs is JSON, a line for each thing, and nothing else.
func testJSON(t *testing.T, b binary) {
	dir := t.TempDir()
	p := b.start(t, nil, "serve", anyPort, "--data="+filepath.Join(dir, "data"))
	env := []string{"MAYFLY_CONNECTION=" + p.connection}
	says := func(code int, want string, args ...string) {
		t.Helper()
		o := b.run(t, env, append(args, "--json")...)
		if o.code != code || !strings.Contains(o.stdout, want) {
			t.Errorf("mayfly %q: exit %d, want %d and %s:\n%s%s", args, o.code, code, want, o.stdout, o.stderr)
		}
		for line := range strings.Lines(o.stdout) {
			if !json.Valid([]byte(line)) {
				t.Errorf("mayfly %q prints %q", args, line)
			}
		}
	}
	says(0, `{"did":"made","resource":"container","id":"carts"}`, "put", "shop", "carts", "--key-path=/customer")
	says(0, `{"did":"created","resource":"item","id":"<1>","requestUnits":`, "put", "shop", "carts", `{"id":"<1>","customer":"ada"}`)
	says(0, `"did":"replaced"`, "put", "shop", "carts", `{"id":"<1>","customer":"ada"}`)
	says(0, `{"did":"deleted","resource":"item","id":"<1>"}`, "rm", "shop", "carts", "<1>", "ada")
	says(0, `"did":"created"`, "put", "shop", "carts", `{"id":"2","customer":"ada"}`)
	says(0, `{"status":"ready"}`, "health")
	says(0, `"what":"port"`, "doctor", "--data="+dir)
	says(0, `"what":"read","perSecond":`, "bench", "--seconds=100ms", "--bytes=200")
	says(0, `"checked":true`, "backup", "--to="+filepath.Join(dir, "backups"))
	says(0, `"state":"done"`, "cluster", "split", "shop", "carts", "0")
	says(0, `{"did":"deleted","resource":"container","id":"carts"}`, "rm", "shop", "carts", "--yes")
	p.stop(t, syscall.SIGTERM)
	says(0, `{"ok":true,"items":0,`, "check", "--data="+filepath.Join(dir, "data"))
	says(1, `"state":"bad"`, "doctor", "--data="+dir)
	says(1, "", "check", "--data="+filepath.Join(dir, "none"))
}
