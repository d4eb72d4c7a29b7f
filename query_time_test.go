// SPDX-License-Identifier: MIT

package mayfly

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// sendQuery sends a query of one partition key.
func (s *testServer) sendQuery(t *testing.T, text string) reply {
	t.Helper()
	headers := pk("p")
	headers["x-ms-documentdb-isquery"], headers["content-type"] = "true", "application/query+json"
	return s.send(t, "POST", items, fmt.Sprintf(`{"query":%q}`, text), headers)
}

// A query that takes too long is refused with a status that no SDK retries, and with a
// message that says what to do. Joins make a billion rows of one item.
func TestQueryTakesTooLong(t *testing.T) {
	s := serveTest(t, Options{Memory: true, QueryTime: time.Nanosecond})
	s.makeContainer(t)
	s.must(t, 201, "POST", items, `{"id":"wide","pk":"p","x":[`+strings.TrimSuffix(strings.Repeat("1,", 1000), ",")+`]}`, pk("p"))
	for _, text := range []string{
		"SELECT VALUE COUNT(1) FROM c JOIN a IN c.x JOIN b IN c.x JOIN d IN c.x",
		"SELECT VALUE 1 FROM c JOIN a IN c.x JOIN b IN c.x JOIN d IN c.x WHERE a + b + d = 0",
	} {
		a := s.sendQuery(t, text)
		if a.status != 400 || !strings.Contains(a.message(t), "--query-time") || !strings.Contains(a.message(t), "index") {
			t.Errorf("%s: got %d: %s", text, a.status, a.body)
		}
	}
	if a := s.sendQuery(t, "SELECT VALUE COUNT(1) FROM c"); a.status != 200 {
		t.Errorf("a short query got %d: %s", a.status, a.body)
	}
	s.serving(t, "queries that took too long")
	if _, err := Open(Options{Memory: true, QueryTime: -1}); err == nil || !strings.Contains(err.Error(), "query time") {
		t.Errorf("a negative time: got %v", err)
	}
}
