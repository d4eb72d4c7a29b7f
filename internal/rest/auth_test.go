// SPDX-License-Identifier: MIT

package rest

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
)

// authorizer returns a handler that can only check signatures.
func authorizer(t testing.TB, keys ...string) *Handler {
	t.Helper()
	h, err := New(Options{Keys: keys, Account: api.Account{Regions: []string{"Here"}, Consistency: "Session"}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// The example of "Access control on Azure Cosmos DB resources" in the REST
// documentation, checked as a request of its day.
func TestPublishedSignature(t *testing.T) {
	const (
		key    = "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw=="
		date   = "Thu, 27 Apr 2017 00:51:12 GMT"
		header = "type%3dmaster%26ver%3d1.0%26sig%3dc09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu%2bc%2bc%3d"
	)
	synctest.Test(t, func(t *testing.T) {
		when, err := http.ParseTime(date)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(when)) // of the bubble's clock
		h := authorizer(t, key)
		r := &http.Request{Method: "GET", Header: http.Header{"Authorization": {header}, "X-Ms-Date": {date}}}
		rt, _ := parseRoute("/dbs/ToDoList")
		if _, err := h.authorize(r, &rt, time.Now()); err != nil {
			t.Errorf("the published request is refused: %v", err)
		}
		other, _ := parseRoute("/dbs/ToDoLists")
		if _, err := h.authorize(r, &other, time.Now()); !errors.Is(err, api.ErrBadAuthorization) {
			t.Errorf("for another database: %v, want a refusal", err)
		}
	})
}

func TestSignedDateWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := authorizer(t, testKey)
		rt, _ := parseRoute("/dbs")
		now := time.Now()
		for _, c := range []struct {
			offset time.Duration
			want   error
		}{
			{0, nil},
			{-15 * time.Minute, nil},
			{15 * time.Minute, nil},
			{-15*time.Minute - time.Second, api.ErrDate},
			{15*time.Minute + time.Second, api.ErrDate},
			{-24 * time.Hour, api.ErrDate},
			{24 * 365 * time.Hour, api.ErrDate},
		} {
			date := dateText(now.Add(c.offset))
			r := &http.Request{Method: "GET", Header: http.Header{
				"Authorization": {masterToken(clientSignature(t, testKey, "GET", "dbs", "", date, ""))}, "X-Ms-Date": {date},
			}}
			if _, err := h.authorize(r, &rt, time.Now()); !errors.Is(err, c.want) {
				t.Errorf("a date %v from now: %v, want %v", c.offset, err, c.want)
			}
		}
		// The handler caches a valid date, which must not stay valid.
		date := dateText(now)
		r := &http.Request{Method: "GET", Header: http.Header{
			"Authorization": {masterToken(clientSignature(t, testKey, "GET", "dbs", "", date, ""))}, "X-Ms-Date": {date},
		}}
		for _, step := range []struct {
			wait time.Duration
			want error
		}{{0, nil}, {14 * time.Minute, nil}, {2 * time.Minute, api.ErrDate}} {
			time.Sleep(step.wait)
			if _, err := h.authorize(r, &rt, time.Now()); !errors.Is(err, step.want) {
				t.Errorf("%v later: %v, want %v", step.wait, err, step.want)
			}
		}
	})
}

// TestSignedLinks has one row for each rule on what a signature covers.
func TestSignedLinks(t *testing.T) {
	h := newContainer(t)
	call(t, h, "POST", "/dbs", `{"id":"Mixed Case"}`, nil, 201)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"a b/ü","pk":"p"}`, pk("p"), 201)
	checkSigned(t, h, []signedCase{
		{"GET", "/", "", "", 200},
		{"GET", "", "", "", 200},
		{"GET", "/", "dbs", "", 401},
		{"GET", "/dbs", "dbs", "", 200},
		{"GET", "/dbs", "dbs", "dbs", 401},
		{"GET", "/dbs/d", "dbs", "dbs/d", 200},
		{"GET", "/dbs/d", "dbs", "", 401},
		{"GET", "/dbs/d", "colls", "dbs/d", 401},
		{"GET", "/dbs/d", "DBS", "dbs/d", 200}, // the client lower-cases it

		// A feed is signed for its owner, a resource for itself.
		{"GET", "/dbs/d/colls", "colls", "dbs/d", 200},
		{"GET", "/dbs/d/colls", "colls", "dbs/d/colls", 401},
		{"GET", "/dbs/d/colls/c", "colls", "dbs/d/colls/c", 200},
		{"GET", "/dbs/d/colls/c", "colls", "dbs/d", 401},
		{"GET", "/dbs/d/colls/c/docs", "docs", "dbs/d/colls/c", 200},
		{"GET", "/dbs/d/colls/c/docs", "docs", "dbs/d/colls/c/docs", 401},
		{"GET", "/dbs/d/colls/c/pkranges", "pkranges", "dbs/d/colls/c", 200},
		{"POST", "/dbs/d/colls/c/operations/partitionkeydelete", "operations", "dbs/d/colls/c", 401},
		{"GET", "/offers", "offers", "", 200},
		{"GET", "/offers/AAAD", "offers", "aaad", 200},
		{"GET", "/offers/AAAD/", "offers", "aaad", 200},
		{"GET", "/offers/AAAD", "offers", "aada", 401},

		// Slashes at either end do not count.
		{"GET", "/dbs/", "dbs", "", 200},
		{"GET", "/dbs/d/", "dbs", "dbs/d", 200},
		{"GET", "//dbs/d//", "dbs", "dbs/d", 200},
		{"GET", "/dbs/d/", "dbs", "dbs/d/", 401},
		{"GET", "/dbs/d", "dbs", "/dbs/d", 401},
		{"GET", "/dbs/d/colls/c/docs/", "docs", "dbs/d/colls/c", 200},

		// Names are signed decoded, with their case kept.
		{"GET", "/dbs/Mixed%20Case", "dbs", "dbs/Mixed Case", 200},
		{"GET", "/dbs/Mixed%20Case", "dbs", "dbs/Mixed%20Case", 401},
		{"GET", "/dbs/Mixed%20Case", "dbs", "dbs/mixed case", 401},
		{"GET", "/dbs/d/colls/c/docs/a%20b%2F%C3%BC", "docs", "dbs/d/colls/c/docs/a b/ü", 200},
		{"GET", "/dbs/d/colls/c/docs/a%20b%2f%c3%bc", "docs", "dbs/d/colls/c/docs/a b/ü", 200},
		{"GET", "/dbs/d/colls/c/docs/a%20b%2F%C3%BC", "docs", "dbs/d/colls/c/docs/a%20b%2F%C3%BC", 401},

		// Last of all, since it deletes the item.
		{"POST", "/dbs/d/colls/c/operations/partitionkeydelete", "colls", "dbs/d/colls/c", 200},
	})
}

// TestSignedRIDs: the whole link, or the last rid alone in lower case.
func TestSignedRIDs(t *testing.T) {
	h := newContainer(t)
	db := call(t, h, "GET", "/dbs/d", "", nil, 200).json(t)["_rid"].(string)
	container := call(t, h, "GET", "/dbs/d/colls/c", "", nil, 200).json(t)["_rid"].(string)
	byRID := "/dbs/" + db + "/colls/" + container
	checkSigned(t, h, []signedCase{
		{"GET", "/dbs/" + db, "dbs", "dbs/" + db, 200},
		{"GET", "/dbs/" + db, "dbs", strings.ToLower(db), 200},
		{"GET", byRID, "colls", strings.ToLower(container), 200},
		{"GET", byRID + "/", "colls", strings.ToLower(container), 200},
		{"GET", byRID, "colls", container, 401},
		{"GET", byRID, "colls", strings.ToLower(db), 401},
		{"GET", byRID + "/docs", "docs", strings.ToLower(container), 200},
		{"GET", byRID + "/pkranges/", "pkranges", strings.ToLower(container), 200},
		{"GET", "/dbs/" + db + "/colls", "colls", strings.ToLower(db), 200},
		// A name that is no rid is not signed that way.
		{"GET", "/dbs/d/colls/c", "colls", "c", 401},
	})
}

// signedCase is a request, what its signature covers, and the status that it gets.
type signedCase struct {
	method, path, kind, link string
	want                     int
}

func checkSigned(t *testing.T, h *Handler, cases []signedCase) {
	t.Helper()
	for _, c := range cases {
		r, err := http.NewRequest(c.method, "http://localhost"+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		signRequest(t, r, c.kind, c.link)
		r.Header.Set(headerPartitionKey, `["p"]`)
		if a := serve(h, r); a.status != c.want {
			t.Errorf("%s %s signed for %q %q: status %d, want %d: %s", c.method, c.path, c.kind, c.link, a.status, c.want, a.body)
		}
	}
}

func TestSignedDateHeaders(t *testing.T) {
	h := newTestHandler(t)
	now, other := dateText(time.Now()), dateText(time.Now().Add(-time.Minute))
	utc := time.Now().UTC().Format(time.RFC1123) // the Go SDK's
	for _, c := range []struct {
		name               string
		msDate, date       string // the headers
		signedMs, signDate string // what was signed
		want               int
	}{
		{"x-ms-date", now, "", now, "", 200},
		{"date", "", now, "", now, 200},
		{"both, x-ms-date counts", now, other, now, "", 200},
		{"both, both signed", now, other, now, other, 401},
		{"both, the wrong one signed", now, other, "", other, 401},
		{"date signed in the wrong line", "", now, now, "", 401},
		{"another date signed", now, "", other, "", 401},
		{"none", "", "", "", "", 401},
		{"not a date", "yesterday", "", "yesterday", "", 401},
		{"empty line", " ", "", "", "", 401},
		{"UTC for GMT", utc, "", utc, "", 200},
		{"lower case", strings.ToLower(now), "", now, "", 200},
		{"RFC 3339", time.Now().UTC().Format(time.RFC3339), "", time.Now().UTC().Format(time.RFC3339), "", 401},
		{"year 10000", "Fri, 31 Dec 10000 23:59:59 GMT", "", "Fri, 31 Dec 10000 23:59:59 GMT", "", 401},
		{"long ago", "Thu, 01 Jan 1970 00:00:00 GMT", "", "Thu, 01 Jan 1970 00:00:00 GMT", "", 403},
	} {
		r, err := http.NewRequest("GET", "http://localhost/dbs", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", url.QueryEscape(masterToken(clientSignature(t, testKey, "GET", "dbs", "", c.signedMs, c.signDate))))
		for name, value := range map[string]string{"X-Ms-Date": c.msDate, "Date": c.date} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		if a := serve(h, r); a.status != c.want {
			t.Errorf("%s: status %d, want %d: %s", c.name, a.status, c.want, a.body)
		}
	}
}

// lowerEscapes spells percent-encoding as .NET does.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] == '%' {
			copy(b[i:i+3], bytes.ToLower(b[i:i+3]))
		}
	}
	return string(b)
}

// TestSignatureEncodings signs until the signature holds every character that
// SDKs encode in different ways.
func TestSignatureEncodings(t *testing.T) {
	h := newContainer(t)
	date := dateText(time.Now())
	path, sig := "", ""
	for i := 0; !strings.Contains(sig, "+") || !strings.Contains(sig, "/"); i++ {
		path = fmt.Sprintf("/dbs/d/colls/c/docs/i%d", i)
		sig = clientSignature(t, testKey, "GET", "docs", path[1:], date, "")
	}
	token := masterToken(sig)
	for _, c := range []struct {
		name, header string
		want         int
	}{
		{"%2B", url.QueryEscape(token), 404},
		{"%2b", lowerEscapes(url.QueryEscape(token)), 404},
		{"bare", token, 404},
		{"path escapes, + and = bare", url.PathEscape(token), 404},
		{"only the equals signs", strings.ReplaceAll(token, "=", "%3D"), 404},
		{"other order", "sig=" + sig + "&ver=1.0&type=master", 404},
		{"+ turned into space", strings.ReplaceAll(token, "+", " "), 401},
		{"encoded twice", url.QueryEscape(url.QueryEscape(token)), 401},
		{"bad escape", token + "%zz", 401},
		{"cut escape", token + "%4", 401},
		{"without padding", strings.TrimRight(token, "="), 401},
		{"one character short", token[:len(token)-2] + "=", 401},
		{"something behind", token + "AAAA", 401},
		{"nothing", masterToken(""), 401},
		{"sig twice, the last counts", token + "&sig=AAAA", 401},
	} {
		r, err := http.NewRequest("GET", "http://localhost"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {c.header}, "X-Ms-Date": {date}, headerPartitionKey: {`["p"]`}}
		if a := serve(h, r); a.status != c.want {
			t.Errorf("%s: status %d, want %d (404 is past the signature): %q", c.name, a.status, c.want, c.header)
		}
	}
}

func TestRefusedAuthorization(t *testing.T) {
	const otherKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	h := newTestHandler(t)
	date := dateText(time.Now())
	sig := clientSignature(t, testKey, "GET", "dbs", "", date, "")
	for _, c := range []struct {
		name, header string
		text         string // the message to the client
	}{
		{"missing", "", "Required Header authorization is missing"},
		{"spaces", "   ", "The input authorization token can't serve the request."},
		{"wrong key", masterToken(clientSignature(t, otherKey, "GET", "dbs", "", date, "")), "can't serve the request"},
		{"wrong verb", masterToken(clientSignature(t, testKey, "POST", "dbs", "", date, "")), "can't serve the request"},
		{"resource token", "type=resource&ver=1&sig=" + sig + ";abc;", "can't serve the request"},
		{"resource token, encoded", url.QueryEscape("type=resource&ver=1.0&sig=" + sig), "can't serve the request"},
		{"aad token", "type=aad&ver=1.0&sig=eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJ4In0.AAAA", "can't serve the request"},
		{"sas token", "type=sas&ver=1.0&sig=" + sig, "can't serve the request"},
		{"no type", "ver=1.0&sig=" + sig, "can't serve the request"},
		{"no version", "type=master&sig=" + sig, "can't serve the request"},
		{"other version", "type=master&ver=2.0&sig=" + sig, "can't serve the request"},
		{"upper-case type", "type=Master&ver=1.0&sig=" + sig, "can't serve the request"},
		{"bearer", "Bearer " + testKey, "can't serve the request"},
		{"basic", "Basic dXNlcjpwYXNz", "can't serve the request"},
		{"the key itself", testKey, "can't serve the request"},
		{"garbage", "&&&===%%%", "can't serve the request"},
		{"bytes", "\x80\xff\xfe", "can't serve the request"},
		{"quotes", `type="master"&ver="1.0"&sig="` + sig + `"`, "can't serve the request"},
		{"5 KB", masterToken(strings.Repeat("A", 5000)), "can't serve the request"},
		{"60 KB", masterToken(strings.Repeat("%41", 20000)), "can't serve the request"},
		{"a right one behind 4 KB", "pad=" + strings.Repeat("A", 4096) + "&" + masterToken(sig), "can't serve the request"},
	} {
		for _, path := range []string{"/dbs", "/", "/dbs/nosuch", "/dbs/nosuch/colls/c/docs"} {
			r, err := http.NewRequest("GET", "http://localhost"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header = http.Header{"X-Ms-Date": {date}}
			if c.header != "" {
				r.Header["Authorization"] = []string{c.header}
			}
			a := serve(h, r)
			if a.status != 401 {
				t.Errorf("%s, %s: status %d, want 401", c.name, path, a.status)
				continue
			}
			if text := a.failureText(t, 401, 0); !strings.Contains(text, c.text) {
				t.Errorf("%s, %s: the client is told %q, want %q in it", c.name, path, text, c.text)
			}
			if bytes.Contains(a.body, []byte(testKey[:20])) {
				t.Errorf("%s: the answer holds the key", c.name)
			}
		}
	}
}

func TestOldDateIsForbidden(t *testing.T) {
	h := newTestHandler(t)
	for _, when := range []time.Time{time.Now().Add(-time.Hour), time.Now().Add(time.Hour)} {
		r, err := http.NewRequest("GET", "http://localhost/dbs", nil)
		if err != nil {
			t.Fatal(err)
		}
		date := dateText(when)
		r.Header.Set("Authorization", masterToken(clientSignature(t, testKey, "GET", "dbs", "", date, "")))
		r.Header.Set("X-Ms-Date", date)
		if text := serve(h, r).failureText(t, 403, 0); !strings.Contains(text, "15 minutes") {
			t.Errorf("the client is told %q, not what is wrong with its clock", text)
		}
	}
}

func TestSecondaryKey(t *testing.T) {
	const secondary = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	h := newTestHandlerWith(t, testHandlerOptions{keys: []string{testKey, secondary}})
	for key, want := range map[string]int{testKey: 200, secondary: 200, "AAAA": 401} {
		r, err := http.NewRequest("GET", "http://localhost/dbs", nil)
		if err != nil {
			t.Fatal(err)
		}
		date := dateText(time.Now())
		r.Header.Set("Authorization", masterToken(clientSignature(t, key, "GET", "dbs", "", date, "")))
		r.Header.Set("X-Ms-Date", date)
		if a := serve(h, r); a.status != want {
			t.Errorf("key %s: status %d, want %d", key, a.status, want)
		}
		r, _ = http.NewRequest("GET", "http://localhost/_mayfly/clock", nil)
		r.Header.Set("Authorization", "Bearer "+key)
		if a := serve(h, r); a.status != want {
			t.Errorf("key %s as a bearer: status %d, want %d", key, a.status, want)
		}
	}
}

func TestNewRefusesKeys(t *testing.T) {
	account := api.Account{Regions: []string{"Here"}, Consistency: "Session"}
	for _, keys := range [][]string{nil, {""}, {"not base64!"}, {"AAA"}, {testKey, "?"}} {
		if _, err := New(Options{Keys: keys, Account: account}); err == nil {
			t.Errorf("New accepts the keys %q", keys)
		}
	}
}

// FuzzAuthorization: no request is accepted without the key, and nothing panics.
func FuzzAuthorization(f *testing.F) {
	var raw [64]byte
	if _, err := rand.Read(raw[:]); err != nil {
		f.Fatal(err)
	}
	h := authorizer(f, base64.StdEncoding.EncodeToString(raw[:]))
	date := dateText(time.Now())
	wrong := masterToken(clientSignature(f, testKey, "GET", "dbs", "", date, ""))
	f.Add("GET", "/dbs", wrong, date, "")
	f.Add("GET", "/dbs", url.QueryEscape(wrong), "", date)
	f.Add("POST", "/dbs/AQAAAA==/colls/AQAAAIAAAAA=", "type=master&ver=1.0&sig=", date, "")
	f.Add("GET", "/", "Bearer "+testKey, date, date)
	f.Add("PUT", "/offers/x", "type%3dmaster%26ver%3d1.0%26sig%3d%2b", "x", "y")
	f.Add("GET", "/dbs/d/colls/c", "type=resource&ver=1&sig="+base64.StdEncoding.EncodeToString(raw[:32])+";"+base64.StdEncoding.EncodeToString(raw[:33])+";", date, "")
	f.Add("GET", "/", "type=aad&ver=1.0&sig=e30.eyJleHAiOjk5OTk5OTk5OTl9."+base64.RawURLEncoding.EncodeToString([]byte(testKey)), date, "")
	f.Add("", "%2F", "sig=AAAA&type=master&ver=1.0&type=master", "", "")
	f.Fuzz(func(t *testing.T, method, path, header, msDate, date string) {
		rt, ok := parseRoute(path)
		if !ok {
			return
		}
		r := &http.Request{Method: method, Header: http.Header{
			"Authorization": {header}, "X-Ms-Date": {msDate}, "Date": {date},
		}}
		if _, err := h.authorize(r, &rt, time.Now()); err == nil {
			t.Errorf("%s %s is accepted with %q, dates %q and %q", method, path, header, msDate, date)
		}
		if _, err := h.bearer(r); err == nil {
			t.Errorf("%q is accepted as a bearer", header)
		}
	})
}
