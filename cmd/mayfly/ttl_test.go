// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
)

// post creates a resource on a server.
func (p *process) post(t *testing.T, path, kind, link, body string) {
	t.Helper()
	r, err := http.NewRequest("POST", "http://"+p.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	sign(t, r, mayfly.WellKnownKey, kind, link)
	if status, answer, err := do(r); err != nil || status != 201 {
		t.Fatalf("POST %s: status %d, %v: %s", path, status, err, answer)
	}
}

// startCarts starts a server with a frozen clock and purge paused, and three items:
// "1" inherits an hour, "2" has a minute of its own, "3" never expires.
func startCarts(t *testing.T, b binary) (p *process, at string) {
	t.Helper()
	p = b.start(t, nil, "serve", "--memory", "--test-clock", anyPort)
	at = "--endpoint=http://" + p.addr
	for _, args := range [][]string{{"clock", "freeze", at}, {"ttl", "pause", at}} {
		if o := b.run(t, nil, args...); o.code != 0 {
			t.Fatalf("mayfly %q: %+v", args, o)
		}
	}
	p.post(t, "/dbs", "dbs", "", `{"id":"shop"}`)
	p.post(t, "/dbs/shop/colls", "colls", "dbs/shop", `{"id":"carts","defaultTtl":3600,"partitionKey":{"paths":["/pk"]}}`)
	for _, body := range []string{`{"id":"1","pk":"ada"}`, `{"id":"2","pk":"ada","ttl":60}`, `{"id":"3","pk":"ada","ttl":-1}`} {
		p.post(t, "/dbs/shop/colls/carts/docs", "docs", "dbs/shop/colls/carts", body)
	}
	if o := b.run(t, nil, "clock", "advance", "90s", at); o.code != 0 {
		t.Fatalf("advance: %+v", o)
	}
	return p, at
}

func testTTL(t *testing.T, b binary) {
	p, at := startCarts(t, b)
	for _, c := range []struct {
		args  string
		wants []string
	}{
		{"ttl", []string{"DATABASE  CONTAINER  TTL  LIVE", "shop      carts       1h     2", "30s  paused\n"}},
		{"ttl status", []string{"shop      carts"}},
		{"ttl status shop", []string{"DATABASE  CONTAINER  TTL  LIVE", "shop      carts"}},
		{"ttl status shop carts", []string{"Container               carts of shop\n", "2 items, ", "1 item, ", "Lag                     30s\n", "PARTITION", "(report)"}},
		{"ttl whatif shop carts --ttl=60", []string{"were 1m (it is 1h)", "would be gone at once      1"}},
		{"ttl whatif shop carts --ttl=2d", []string{"were 2d (it is 1h)", "would be gone at once      0"}},
		{"ttl whatif shop carts --ttl=-1", []string{"were never", "of these never expire      2", "The last would expire: never"}},
		{"ttl whatif shop carts --ttl=off", []string{"were off", "would come back            1"}},
		{"ttl forecast shop carts --interval=30m --count=2", []string{"UNTIL", "\nlater                         0", "\nnever                         1"}},
		{"ttl forecast shop carts --count=12", []string{"UNTIL", "\nlater                         0", "\nnever                         1"}},
		{"ttl explain shop carts 1 ada", []string{"in 58m 30s", "Its own ttl   none", "defaultTtl is 3600 s"}},
		{`ttl explain shop carts 2 ["ada"]`, []string{"30s ago", "still takes space"}},
		{"ttl explain shop carts 3 ada", []string{"Expires       never\n"}},
		{"ttl history shop carts", []string{"carts of shop", "live          2", "expired       1", "lag         30s", "SINCE "}},
		{"ttl undelete shop carts", []string{"ID  PARTITION KEY  EXPIRED", `2   ["ada"]`}},
		{"ttl events shop carts", []string{`  2  ["ada"]  by its own ttl of 1m`}},
		{"ttl limit shop carts 500", []string{"at most 500 items/s in carts of shop"}},
		{"ttl status shop carts", []string{"Limit                   500 items/s"}},
		{"ttl limit shop carts 0", []string{"no limit"}},
		{"ttl pause shop carts", []string{"Purge is paused in carts of shop."}},
		{"ttl resume shop carts", []string{"paused everywhere: mayfly ttl resume"}},
		{"ttl purge shop carts", []string{"Purged in carts of shop: 1 item, "}},
		{"ttl explain shop carts 2 ada", []string{"Expired       ", "30s ago", "by its own ttl of 60 s, and was purged."}},
		{"ttl undelete shop carts", []string{"There is no expired item that can come back."}},
		{"ttl purge", []string{"Purged everywhere: 0 items, 0 B."}},
		{"ttl resume", []string{"Purge goes on everywhere."}},
		{"ttl --help", []string{"Examples:", "mayfly ttl whatif shop carts --ttl=1h", "--json"}},
	} {
		o := b.run(t, nil, append(strings.Fields(c.args), at)...)
		for _, want := range c.wants {
			if o.code != 0 || !strings.Contains(o.stdout, want) {
				t.Errorf("mayfly %s: exit %d, want %q:\n%s%s", c.args, o.code, want, o.stdout, o.stderr)
			}
		}
	}
	testTTLJSON(t, b, at)
	testTTLFails(t, b, at)
	testTTLFollow(t, b, p, at)
}

// With --json every command prints only JSON.
func testTTLJSON(t *testing.T, b binary, at string) {
	for _, args := range []string{
		"status", "status shop carts", "whatif shop carts --ttl=60", "forecast shop carts", "explain shop carts 1 ada", "history shop carts", "undelete shop carts", "events shop carts",
		"pause", "resume", "limit shop carts 5", "limit shop carts 0", "purge",
	} {
		o := b.run(t, nil, append(append([]string{"ttl"}, strings.Fields(args)...), "--json", at)...)
		if o.code != 0 || o.stdout == "" || o.stderr != "" {
			t.Errorf("mayfly ttl %s --json: %+v", args, o)
		}
		for l := range strings.Lines(o.stdout) {
			if !json.Valid([]byte(l)) {
				t.Errorf("mayfly ttl %s --json prints %q", args, l)
			}
		}
	}
}

// Errors say what to do.
func testTTLFails(t *testing.T, b binary, at string) {
	for args, text := range map[string]string{
		"pause shop":                           "both database and container",
		"status nosuch":                        "There is no database 'nosuch'",
		"status shop nosuch":                   "mayfly ttl status",
		"whatif shop carts --ttl=0":            "from 1 to 2147483647",
		"whatif shop carts":                    "--ttl",
		"explain shop carts 9 ada":             "There is no item '9'",
		"explain shop carts 9":                 "<partition-key>",
		"undelete shop carts 9":                "with --ttl",
		"undelete shop carts 1 ada":            "with --ttl",
		"undelete shop carts 9 ada --ttl=1h":   "There is no item '9'",
		"undelete shop carts 1 ada --ttl=1h":   "is live",
		"forecast shop carts --interval=x":     "a duration such as",
		"events shop carts --from=then":        "--from",
		"events shop carts --cursor=x":         "Omit it to start over",
		"limit shop carts many":                "must be a number",
		"status --key=" + ownKey:               "--key or MAYFLY_KEY",
		"status --endpoint=http://127.0.0.1:1": "is it running?",
		"purge shop nosuch":                    "There is no container 'nosuch'",
	} {
		all := append([]string{"ttl"}, strings.Fields(args)...)
		if !strings.Contains(args, "--endpoint") {
			all = append(all, at)
		}
		o := b.run(t, nil, all...)
		if o.code == 0 || !strings.Contains(o.stderr, text) || strings.Contains(o.stderr, "goroutine ") {
			t.Errorf("mayfly ttl %s: exit %d, want %q:\n%s%s", args, o.code, text, o.stdout, o.stderr)
		}
	}
}

// A follower gets events at once, and does not hold up a stop of the server.
func testTTLFollow(t *testing.T, b binary, p *process, at string) {
	c := b.command(t, nil, "ttl", "events", "shop", "carts", "--follow", "--from=now", "--json", at)
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	// A follower that hangs is killed, so that the test ends.
	watch := time.AfterFunc(waitLimit, func() { _ = c.Process.Kill() })
	defer watch.Stop()
	lines := bufio.NewScanner(stdout)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Fatalf("the follower prints %q, want %s: %s", lines.Text(), want, &stderr)
		}
	}
	next(`"type":"cursor"`)
	if o := b.run(t, nil, "clock", "advance", "2h", at); o.code != 0 {
		t.Fatalf("advance: %+v", o)
	}
	next(`"type":"expired","id":"1"`)
	next(`"type":"cursor"`)
	p.stop(t, syscall.SIGTERM)
	if err := c.Wait(); err == nil || !strings.Contains(stderr.String(), "continue with --cursor=") {
		t.Errorf("the follower ends with %v and prints %q", err, &stderr)
	}
}
