// SPDX-License-Identifier: MIT

package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/value"
)

const testKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

// serve returns a client of a server that answers with the statuses, one after the other. It
// drops the connection for a status of 0. asked counts the requests.
func serve(t *testing.T, statuses ...int) (c *Client, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := statuses[min(int(asked.Add(1)), len(statuses))-1]
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("X-Ms-Retry-After-Ms", "1")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"id":"x","message":"Message: {\"Errors\":[\"No, thanks.\"]}\r\nActivityId: 1"}`)
	}))
	t.Cleanup(s.Close)
	c, err := New(Options{Endpoint: s.URL, Key: testKey})
	if err != nil {
		t.Fatal(err)
	}
	return c, asked
}

// What the server was too busy for is sent again. What may have happened is not, unless that
// does no harm.
func TestRequestsAreRepeated(t *testing.T) {
	for _, c := range []struct {
		name     string
		statuses []int
		once     bool
		asked    int32
		fails    string
	}{
		{"busy", []int{429, 429, 200}, true, 3, ""},
		{"busy with the same thing", []int{449, 200}, false, 2, ""},
		{"stopping", []int{503, 200}, true, 2, ""},
		{"lost answer", []int{0, 200}, false, 2, ""},
		{"lost answer to something that must not happen twice", []int{0, 200}, true, 1, "cannot reach the server"},
		{"refused", []int{400, 200}, false, 1, "400 Bad Request: No, thanks."},
		{"not found", []int{404, 200}, false, 1, "404 Not Found: No, thanks."},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, asked := serve(t, c.statuses...)
			// A pooled connection that breaks is repeated by the transport itself: POST is not.
			a, err := client.Do(t.Context(), &Request{Method: http.MethodPost, Path: "/dbs", Kind: Databases, Once: c.once})
			if c.fails == "" {
				if err != nil || ID(a.Body) != "x" {
					t.Errorf("the answer is %+v, %v", a, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("the error is %v, want %q", err, c.fails)
			}
			if asked.Load() != c.asked {
				t.Errorf("%d requests, want %d", asked.Load(), c.asked)
			}
		})
	}
}

func TestPatienceEnds(t *testing.T) {
	c, asked := serve(t, 429)
	c.patience = 20 * time.Millisecond
	if _, err := c.Do(t.Context(), &Request{Method: http.MethodGet, Path: "/dbs", Kind: Databases}); !Is(err, 429) || asked.Load() < 2 {
		t.Errorf("after %d requests: %v, want 429", asked.Load(), err)
	}
}

// A server that is not there is given up soon, and one that was there is waited for.
func TestServersThatAreNotThere(t *testing.T) {
	for _, met := range []bool{false, true} {
		s := httptest.NewServer(http.NotFoundHandler())
		c, err := New(Options{Endpoint: s.URL, Key: testKey, Patience: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		c.greeting = 10 * time.Millisecond
		get := func() error {
			_, err := c.Do(t.Context(), &Request{Method: http.MethodGet, Path: "/dbs", Kind: Databases})
			return err
		}
		if met {
			if err := get(); !Is(err, 404) {
				t.Errorf("the server says %v", err)
			}
		}
		s.Close()
		began := time.Now()
		var gone *Unreachable
		if err := get(); !errors.As(err, &gone) {
			t.Errorf("without a server the error is %v", err)
		}
		if took := time.Since(began); (took > 300*time.Millisecond) != met {
			t.Errorf("met before: %v, given up after %v", met, took)
		}
	}
}

// A server without bulk requests is told from one that fails.
func TestServersWithoutBulk(t *testing.T) {
	for status, without := range map[int]bool{400: true, 404: true, 405: true, 500: true, 501: true, 401: false, 403: false} {
		c, _ := serve(t, status)
		_, err := c.Bulk(t.Context(), Name{"d", "c"}, "0", []BulkItem{{Body: []byte(`{}`)}}, Upsert)
		if err == nil || errors.Is(err, ErrNoBulk) != without {
			t.Errorf("status %d: %v", status, err)
		}
	}
}

func TestConnectionStrings(t *testing.T) {
	endpoint, key, err := ParseConnection("AccountEndpoint=https://x.example:443/;AccountKey=YWJj==;")
	if err != nil || endpoint != "https://x.example:443/" || key != "YWJj==" {
		t.Errorf("got %q, %q, %v", endpoint, key, err)
	}
	for _, text := range []string{"", "AccountEndpoint=https://x/", "AccountKey=YWJj", "nonsense"} {
		if _, _, err := ParseConnection(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestHeadersAreASCII(t *testing.T) {
	if got := ASCII(`["bö😀"]`); got != `["b\u00f6\ud83d\ude00"]` {
		t.Errorf("got %s", got)
	}
}

// Keys go to the partitions that the server's own hash says (its vectors are in package value).
func TestRangeOfAKey(t *testing.T) {
	of, err := ParseContainer(Name{"d", "c"}, []byte(`{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	boundaries := value.BoundariesV2(4)
	of.Ranges = []Range{{ID: "0"}, {ID: "1", Min: boundaries[0]}, {ID: "2", Min: boundaries[1]}, {ID: "3", Min: boundaries[2]}}
	seen := map[int]int{}
	for i := range 1000 {
		key := value.PartitionKey{value.String(fmt.Sprint("p", i))}
		at := of.RangeOf(key)
		epk := value.AppendEPKV2(nil, key)
		if string(epk) < string(of.Ranges[at].Min) || at < 3 && string(epk) >= string(of.Ranges[at+1].Min) {
			t.Fatalf("key %d is in range %d", i, at)
		}
		seen[at]++
	}
	if len(seen) != 4 {
		t.Errorf("the ranges have %v keys", seen)
	}
}
