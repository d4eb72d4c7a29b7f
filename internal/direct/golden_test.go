// SPDX-License-Identifier: MIT

// The requests that the Java and .NET SDKs sent are sent again, to a server with the same
// databases and containers.

package direct_test

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/direct/directclient"
	"github.com/mayflydb/mayfly/internal/rntbd"
)

// sent is a request that an SDK sent.
type sent struct {
	name   string
	head   rntbd.RequestHead
	tokens string
	values map[rntbd.Token]string // of its tokens, as bytes
	body   string
	cut    bool // the file has only a part of the body
}

// readSent reads the requests in a file of package rntbd.
func readSent(t *testing.T, file string) (all []*sent) {
	t.Helper()
	text, err := os.ReadFile("../rntbd/testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	name := ""
	for line := range strings.Lines(string(text)) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch kind {
		case "<":
			frame, err := hex.DecodeString(rest)
			if err != nil {
				t.Fatal(err)
			}
			if name != "context" {
				all = append(all, parseSent(t, name, frame))
			}
		case "body":
			r := all[len(all)-1]
			body, err := strconv.Unquote(rest)
			r.body, r.cut = body, err != nil || len(body) >= 295
		case ">", "#", "":
		default:
			name = strings.TrimSpace(line)
		}
	}
	return all
}

func parseSent(t *testing.T, name string, frame []byte) *sent {
	h, err := rntbd.ParseRequestHead(frame)
	if err != nil {
		t.Fatal(err)
	}
	r := &sent{name: name, head: h, tokens: string(frame[rntbd.HeadBytes:]), values: map[rntbd.Token]string{}}
	for s := rntbd.Scan(r.tokens, rntbd.RequestTokens); s.Next(); {
		r.values[s.ID] = s.Text()
	}
	return r
}

// words are the types' names in signatures.
var words = map[rntbd.Resource]string{
	rntbd.Database: "dbs", rntbd.Collection: "colls", rntbd.Document: "docs", rntbd.User: "users", rntbd.Permission: "permissions",
	rntbd.StoredProcedure: "sprocs",
}

// link returns what the SDK signed.
func (r *sent) link() string {
	var link []string
	add := func(word string, id rntbd.Token) {
		if name, ok := r.values[id]; ok {
			link = append(link, word, name)
		}
	}
	add("dbs", rntbd.RequestDatabaseName)
	add("colls", rntbd.RequestCollectionName)
	add("docs", rntbd.RequestDocumentName)
	add("sprocs", rntbd.RequestStoredProcedureName)
	add("users", rntbd.RequestUserName)
	add("permissions", rntbd.RequestPermissionName)
	return strings.Join(link, "/")
}

// request makes the request again, with a signature of now.
func (r *sent) request(key []byte) *directclient.Request {
	b := directclient.AppendSignature(nil, key, r.head.Operation.Method(), words[r.head.Resource], r.link())
	for s := rntbd.Scan(r.tokens, rntbd.RequestTokens); s.Next(); {
		switch s.ID {
		case rntbd.RequestAuthorizationToken, rntbd.RequestDate, rntbd.RequestPayloadPresent, rntbd.RequestTransportRequestID:
			continue
		case rntbd.RequestSessionToken, rntbd.RequestMatch, rntbd.RequestContinuationToken:
			continue // they name states of the server that answered then
		}
		b = appendRaw(b, &s)
	}
	q := &directclient.Request{Resource: r.head.Resource, Operation: r.head.Operation, Activity: r.head.Activity, Tokens: b}
	switch {
	case r.cut && r.head.Operation == rntbd.Batch:
		q.Body = []byte(`[{"operationType":"Upsert","partitionKey":"[\"b\"]","resourceBody":{"id":"b1","pk":"b"}}]`)
		if key := r.values[rntbd.RequestPartitionKey]; key != "" {
			q.Body = []byte(`[{"operationType":"Upsert","resourceBody":{"id":"b1","pk":` + strings.Trim(key, "[]") + `}}]`)
		}
	case r.cut:
		q.Body = []byte(`{"id":"` + r.values[rntbd.RequestDocumentName] + `"}`)
	case r.body != "":
		q.Body = []byte(r.body)
	}
	return q
}

// appendRaw appends a token of any type as it was.
func appendRaw(b []byte, s *rntbd.Scanner) []byte {
	b = append(binary.LittleEndian.AppendUint16(b, uint16(s.ID)), byte(s.Type))
	n := len(s.Text())
	switch s.Type {
	case rntbd.SmallString, rntbd.SmallBytes:
		b = append(b, byte(n))
	case rntbd.String, rntbd.Bytes:
		b = binary.LittleEndian.AppendUint16(b, uint16(n))
	case rntbd.ULongString, rntbd.ULongBytes:
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return append(b, s.Text()...)
}

// goldenServer has what the requests of a file name.
func goldenServer(t *testing.T, all []*sent) *testServer {
	s := serveTest(t, mayfly.Options{})
	databases, containers := map[string]bool{}, map[string]bool{}
	for _, r := range all {
		db, c := r.values[rntbd.RequestDatabaseName], r.values[rntbd.RequestCollectionName]
		if db != "" && !databases[db] && c != "" {
			databases[db] = true
			s.database(db)
			// The numbers of containers are in the frames, so they are created in order.
			for _, at := range []string{"c", "leases", "h"} {
				paths := []string{"/pk"}
				switch at {
				case "leases":
					paths = []string{"/id"}
				case "h":
					paths = []string{"/a", "/b", "/c"}
				}
				containers[db+"/"+at] = true
				s.container(db, at, paths...)
			}
			s.http("POST", "/dbs/"+db+"/colls/c/sprocs", "sprocs", "dbs/"+db+"/colls/c",
				`{"id":"`+procedureOf(all)+`","body":"function(x){getContext().getResponse().setBody({got:x})}"}`, nil, 201)
		}
		if c != "" && !containers[db+"/"+c] {
			t.Fatalf("there is no container %s/%s", db, c)
		}
	}
	return s
}

func procedureOf(all []*sent) string {
	for _, r := range all {
		if name := r.values[rntbd.RequestStoredProcedureName]; name != "" {
			return name
		}
	}
	return "none"
}

func TestRequestsOfJava(t *testing.T) {
	testSent(t, "java.txt", []int{200, 404, 201, 200, 201, 200, 204, 200, 200, 200, 200, 200, 200, 404})
}

func TestRequestsOfDotNet(t *testing.T) {
	testSent(t, "dotnet.txt", []int{200, 201, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 404, 201, 204, 404, 200, 200})
}

// testSent sends the requests of a file, and checks each answer for what its SDK needs.
func testSent(t *testing.T, file string, statuses []int) {
	all := readSent(t, file)
	if len(all) != len(statuses) {
		t.Fatalf("%d requests, %d statuses", len(all), len(statuses))
	}
	s := goldenServer(t, all)
	c := s.dial()
	for i, r := range all {
		a, err := c.Do(r.request(s.key()))
		if err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		if a.Status != statuses[i] {
			t.Errorf("%s: %d %s, want %d", r.name, a.Status, a.Body, statuses[i])
		}
		if a.Activity != r.head.Activity {
			t.Errorf("%s: another activity", r.name)
		}
		checkAnswer(t, r.name, &a)
		r.checkItems(t, &a)
	}
}

// checkItems checks what answers about items need beside.
func (r *sent) checkItems(t *testing.T, a *directclient.Response) {
	t.Helper()
	if r.head.Resource != rntbd.Document && r.head.Resource != rntbd.StoredProcedure {
		return
	}
	if _, ok := a.Token(rntbd.ResponseSessionToken); !ok {
		t.Errorf("%s: the answer %d has no session token: clients lose their session, and ask for seconds after a 404", r.name, a.Status)
	}
	if a.Text(rntbd.ResponseOwnerID) != r.values[rntbd.RequestCollectionRID] || !strings.HasPrefix(a.Text(rntbd.ResponseOwnerFullName), "dbs/") {
		t.Errorf("%s: the owner is %q %q", r.name, a.Text(rntbd.ResponseOwnerID), a.Text(rntbd.ResponseOwnerFullName))
	}
	switch r.head.Operation {
	case rntbd.Create, rntbd.Replace, rntbd.Upsert, rntbd.Patch, rntbd.Read:
		if a.Status < 400 && (a.Text(rntbd.ResponseETag) == "" || a.Number(rntbd.ResponseItemLSN) == 0 || a.Number(rntbd.ResponseItemLocalLSN) == 0) {
			t.Errorf("%s: no etag, or no LSN of the item", r.name)
		}
	case rntbd.Query, rntbd.ReadFeed:
		if _, ok := a.Token(rntbd.ResponseItemCount); !ok {
			t.Errorf("%s: the items are not counted", r.name)
		}
	}
	if r.head.Operation == rntbd.ReadFeed && a.Text(rntbd.ResponseETag) == "" {
		t.Errorf("%s: no position to go on from", r.name)
	}
	minimal := r.values[rntbd.RequestReturnPreference] == "\x01"
	if item := r.head.Operation == rntbd.Create || r.head.Operation == rntbd.Replace; item && a.Status < 400 && minimal != (len(a.Body) == 0) {
		t.Errorf("%s: %d bytes of payload, asked for minimal: %v", r.name, len(a.Body), minimal)
	}
}
