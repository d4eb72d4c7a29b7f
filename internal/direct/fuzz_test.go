// SPDX-License-Identifier: MIT

package direct

import (
	"context"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/rest"
	"github.com/mayflydb/mayfly/internal/rntbd"
	"github.com/mayflydb/mayfly/internal/store"
)

// fuzzServer has a database with the containers of the SDKs' frames, in memory.
func fuzzServer(f *testing.F, database string) *Server {
	f.Helper()
	db, err := pebblekv.OpenMemory(pebblekv.Options{NoSync: true, IsIndexKey: store.IsIndexKey})
	if err != nil {
		f.Fatal(err)
	}
	e, err := engine.Open(engine.Options{DB: db, Explain: api.Explain})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _, _ = e.Close(), db.Close() })
	h, err := rest.New(rest.Options{Engine: e, Keys: []string{"a2V5"}, Account: api.Account{Regions: []string{"here"}, Consistency: "Session"}})
	if err != nil {
		f.Fatal(err)
	}
	s := New(Options{Service: h.Service(), Unauthenticated: func(error) {}, Observe: func(*api.Call, int) {}})
	create := func(r api.Resource, body string) {
		c := api.Call{Context: context.Background(), Row: api.Lookup(r, api.Create)}
		c.Request.Resource, c.Request.Verb, c.Request.Database, c.Request.Body = r, api.Create, database, []byte(body)
		s.Service.Begin(&c)
		if err := c.Handle(); err != nil {
			f.Fatal(err)
		}
	}
	create(api.Databases, `{"id":"`+database+`"}`)
	create(api.Containers, `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`)
	create(api.Containers, `{"id":"leases","partitionKey":{"paths":["/id"],"version":2}}`)
	create(api.Containers, `{"id":"h","partitionKey":{"paths":["/a","/b"],"kind":"MultiHash","version":2}}`)
	return s
}

// FuzzRequest lets foreign frames past the check of credentials: whatever they say, the
// answer is a frame.
func FuzzRequest(f *testing.F) {
	servers := map[bool]*Server{false: fuzzServer(f, "probe4030030167253"), true: fuzzServer(f, "app7cf2dd")}
	for _, file := range []string{"java.txt", "dotnet.txt"} {
		text, err := os.ReadFile("../rntbd/testdata/" + file)
		if err != nil {
			f.Fatal(err)
		}
		body := ""
		for line := range strings.Lines(string(text)) {
			kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			if kind == "body" {
				body = strings.Trim(rest, `"`)
			}
			if kind == "<" {
				frame, err := hex.DecodeString(rest)
				if err != nil {
					f.Fatal(err)
				}
				f.Add(file == "dotnet.txt", frame, []byte(strings.ReplaceAll(body, `\"`, `"`)))
			}
		}
	}
	f.Fuzz(func(t *testing.T, dotnet bool, frame, body []byte) {
		h, err := rntbd.ParseRequestHead(frame)
		if err != nil {
			return
		}
		s := servers[dotnet]
		ch := newChannel(s, nil)
		ch.ctx = context.Background()
		x := s.newExchange(ch)
		defer x.end()
		x.id = h.Activity
		if err := x.fill(&h, string(frame[rntbd.HeadBytes:])); err != nil || x.asked.unknown {
			return
		}
		status := 0
		err = x.Admit(&api.Grant{By: api.ByKey})
		if err == nil {
			err = x.parse()
		}
		if err == nil && len(body) <= x.Row.MaxBody {
			if len(body) > 0 {
				x.Request.Body = body
			}
			err = x.handle()
			status = x.Answer.Status
		}
		if err != nil {
			status = x.Fail(err).Status
			if status == 500 {
				t.Fatalf("%s %s: %v", x.Method, x.Path, err)
			}
		}
		answer := x.appendAnswer(rntbd.BeginResponse(nil, status, x.id), status)
		tokens := rntbd.Scan(string(answer[rntbd.HeadBytes:]), rntbd.ResponseTokens)
		for tokens.Next() {
		}
		if tokens.Err() != nil {
			t.Fatalf("the answer to %s %s is no frame: %x", x.Method, x.Path, answer)
		}
	})
}
