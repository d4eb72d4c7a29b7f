// SPDX-License-Identifier: MIT

package mayfly

import (
	"strconv"
	"strings"
	"testing"
)

// spend writes items of about 2 MB until one is refused, or a bounded number of them.
// Each costs more than 400 RU/s give in two seconds.
func spend(t *testing.T, s *testServer) (refusal reply, refused bool) {
	t.Helper()
	const attempts = 20
	body := `{"id":"large","pk":"p","pad":"` + strings.Repeat("x", 2_000_000) + `"}`
	headers := pk("p")
	headers["x-ms-documentdb-is-upsert"] = "True"
	for range attempts {
		a := s.send(t, "POST", items, body, headers)
		switch a.status {
		case 200, 201:
		case 429:
			return a, true
		default:
			t.Fatalf("status %d: %.300s", a.status, a.body)
		}
	}
	return reply{}, false
}

func TestThroughputIsEnforced(t *testing.T) {
	s := serveTest(t, Options{Memory: true, Throughput: ThroughputEnforce})
	s.makeContainer(t)
	a, refused := spend(t, s)
	if !refused {
		t.Fatal("nothing is refused")
	}
	wait, err := strconv.Atoi(a.header.Get("x-ms-retry-after-ms"))
	if err != nil || wait < 1 || a.header.Get("x-ms-substatus") != "3200" || !strings.Contains(a.message(t), "Request rate is large") {
		t.Errorf("refused with %v %s", a.header, a.body)
	}
	// The container itself can be read and changed, and with more throughput writes go on.
	s.must(t, 200, "GET", "/dbs/d/colls/c", "", nil)
	s.must(t, 200, "PUT", "/offers/AAAD", `{"id":"AAAD","content":{"offerThroughput":1000000}}`, nil)
	for range wait { // paid back 2,500 times as fast, and a request takes longer than that
		if a := s.send(t, "GET", items+"/large", "", pk("p")); a.status == 200 {
			return
		}
	}
	t.Error("writes do not go on with more throughput")
}

func TestThroughputIsReported(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	s.makeContainer(t)
	if a, refused := spend(t, s); refused {
		t.Errorf("refused with %s", a.body)
	}
}
