// SPDX-License-Identifier: MIT

package rest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/sql/clientplan"
)

const docsPath = "/dbs/d/colls/c/docs"

// asQuery returns the headers of a query in one partition key, with others added or
// replaced. An empty one is left out.
func asQuery(more map[string]string) map[string]string {
	h := pk("p")
	h["Content-Type"], h["X-Ms-Documentdb-Isquery"] = "application/query+json", "True"
	maps.Copy(h, more)
	maps.DeleteFunc(h, func(_, value string) bool { return value == "" })
	return h
}

// newItems returns a handler with the items 1 to n in the partition "p" of a container.
func newItems(t testing.TB, n int) *Handler {
	t.Helper()
	h := newContainer(t)
	for i := 1; i <= n; i++ {
		call(t, h, "POST", docsPath, fmt.Sprintf(`{"id":"%d","pk":"p","n":%d}`, i, i), pk("p"), 201)
	}
	return h
}

// rowsOf returns the rows of an answer, with commas between.
func rowsOf(t testing.TB, a answer) string {
	t.Helper()
	page := decode[struct {
		RID       string `json:"_rid"`
		Documents []json.RawMessage
		Count     int `json:"_count"`
	}](t, a)
	if page.RID == "" || page.Count != len(page.Documents) || a.header.Get("x-ms-item-count") != fmt.Sprint(page.Count) {
		t.Errorf("a page of %d rows says of itself: %+v, %v", len(page.Documents), page, a.header)
	}
	texts := make([]string, len(page.Documents))
	for i, row := range page.Documents {
		texts[i] = string(row)
	}
	return strings.Join(texts, ",")
}

func TestWhatIsAQuery(t *testing.T) {
	h := newItems(t, 2)
	const body = `{"query":"SELECT VALUE c.n FROM c"}`
	for name, headers := range map[string]map[string]string{
		"by the media type":        {"Content-Type": "application/query+json"},
		"with its parameters":      {"Content-Type": "Application/Query+JSON; charset=utf-8"},
		"by the header":            {"X-Ms-Documentdb-Isquery": "true", "Content-Type": "application/json"},
		"by the header's old name": {"X-Ms-Documentdb-Query": "True"},
	} {
		headers[headerPartitionKey] = `["p"]`
		if got := rowsOf(t, call(t, h, "POST", docsPath, body, headers, 200)); got != "1,2" {
			t.Errorf("%s: got %s", name, got)
		}
	}
	// Anything else is an item, and this one has no id.
	call(t, h, "POST", docsPath, body, pk("p"), 400)
}

func TestQueryBodies(t *testing.T) {
	h := newItems(t, 3)
	for body, want := range map[string]string{
		`{"query":"SELECT VALUE c.n FROM c"}`:                   "1,2,3",
		`{"query":"SELECT VALUE c.n FROM c","parameters":[]}`:   "1,2,3",
		`{"query":"SELECT VALUE c.n FROM c","parameters":null}`: "1,2,3",
		"\n{ \"parameters\" : [ { \"value\" : 2 , \"name\" : \"@n\" } ], \"query\" : \"SELECT VALUE c.n FROM c WHERE c.n=@n\" }": "2",
		`{"query":"SELECT VALUE c.n FROM c WHERE c.n = @n","parameters":[{"name":"@n","value":3}],"more":{}}`:                    "3",
		`{"query":"SELECT VALUE @o","parameters":[{"name":"@o","value":{"a":[1, null]}}]}`:                                       `{"a":[1,null]}`,
		`{"query":"SELECT VALUE [@u, 1]","parameters":[{"name":"@u"}]}`:                                                          `[1]`,
		`{"query":"SELECT VALUE \u0027\u00e9\ud83d\ude00\u0027"}`:                                                                `"é😀"`,
	} {
		if got := rowsOf(t, call(t, h, "POST", docsPath, body, asQuery(nil), 200)); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
	for _, body := range []string{
		``, `{`, `[]`, `"SELECT 1"`, `SELECT * FROM c`, `{}`, `{"query":null}`, `{"query":1}`, `{"query":["SELECT 1"]}`,
		`{"query":"SELECT 1","parameters":{}}`, `{"query":"SELECT 1","parameters":[1]}`, `{"query":"SELECT 1","parameters":[{}]}`,
		`{"query":"SELECT 1","parameters":[{"name":1,"value":1}]}`, `{"query":"SELECT 1","parameters":[{"name":"n","value":1}]}`,
		`{"query":"SELECT 1","query":"SELECT 2"}`, `{"query":"\ud800"}`,
		`{"query":"SELECT 1","parameters":[` + strings.Repeat(`{"name":"@x","value":1},`, 10_000) + `{"name":"@x","value":1}]}`,
	} {
		for name, headers := range map[string]map[string]string{
			"query": asQuery(nil), "plan": asQuery(map[string]string{"X-Ms-Cosmos-Is-Query-Plan-Request": "True"}),
		} {
			a := call(t, h, "POST", docsPath, body, headers, 400)
			if text := a.failureText(t, 400, 0); !strings.Contains(text, "The input content is invalid") {
				t.Errorf("%s %.80s: refused with %q", name, body, text)
			}
		}
	}
}

func TestQueryTextIsBounded(t *testing.T) {
	h := newItems(t, 1)
	long := func(bytes int) string {
		text := "SELECT VALUE 1"
		return `{"query":"` + text + strings.Repeat(" ", bytes-len(text)) + `"}`
	}
	const most = 512 << 10
	if got := rowsOf(t, call(t, h, "POST", docsPath, long(most), asQuery(nil), 200)); got != "1" {
		t.Errorf("a query of %d bytes: %s", most, got)
	}
	a := call(t, h, "POST", docsPath, long(most+1), asQuery(nil), 400)
	if text := a.failureText(t, 400, 0); !strings.Contains(text, "exceeded the maximum limit") {
		t.Errorf("refused with %q", text)
	}
}

// queryFailure is the body of a refused query.
type queryFailure struct {
	Severity string
	Location struct{ Start, End int }
	Code     any
	Message  string
}

func readQueryFailure(t *testing.T, a answer) queryFailure {
	t.Helper()
	var body struct{ Code, Message string }
	var inner struct{ Errors []queryFailure }
	if err := json.Unmarshal(a.body, &body); err != nil || body.Code != "BadRequest" {
		t.Fatalf("not a refusal: %v: %s", err, a.body)
	}
	text, ok := strings.CutPrefix(body.Message, "Message: ")
	text, trailer, ok2 := strings.Cut(text, "\r\n")
	if !ok || !ok2 || !strings.HasPrefix(trailer, "ActivityId: "+a.header.Get("x-ms-activity-id")) {
		t.Fatalf("the message is not in the service's form: %q", body.Message)
	}
	if err := json.Unmarshal([]byte(text), &inner); err != nil || len(inner.Errors) != 1 || !strings.HasPrefix(text, `{"errors":[{"severity":`) {
		t.Fatalf("the message does not hold one error: %v: %s", err, text)
	}
	return inner.Errors[0]
}

func TestRefusedQueriesTellWhere(t *testing.T) {
	h := newItems(t, 1)
	for text, want := range map[string]queryFailure{
		"SELEC 1":                       {Location: struct{ Start, End int }{0, 5}, Code: "SC1001", Message: "Syntax error, incorrect syntax near 'SELEC'."},
		"SELECT * FROM c WHERE":         {Location: struct{ Start, End int }{21, 21}, Code: "SC1002", Message: "Syntax error, unexpected end-of-file."},
		"SELECT 'ü😀', x FROM c":         {Location: struct{ Start, End int }{14, 15}, Code: "SC2001", Message: "Identifier 'x' could not be resolved."},
		`SELECT NO_SUCH("\"") FROM c`:   {Location: struct{ Start, End int }{7, 14}, Code: "SC2005", Message: "'NO_SUCH' is not a recognized built-in function name."},
		"SELECT * FROM c ORDER BY -c.n": {Code: 2206.0, Message: "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path."},
	} {
		want.Severity = "Error"
		for name, more := range map[string]map[string]string{"query": nil, "plan": {"X-Ms-Cosmos-Is-Query-Plan-Request": "True"}} {
			a := call(t, h, "POST", docsPath, `{"query":`+quoted(text)+`}`, asQuery(more), 400)
			if got := readQueryFailure(t, a); got != want {
				t.Errorf("%s %s: refused with %+v, want %+v", name, text, got, want)
			}
			if plan := strings.Contains(string(a.body), "Gateway Failed to Retrieve Query Plan"); plan != (name == "plan") {
				t.Errorf("%s %s: %s", name, text, a.body)
			}
			if sub := a.header.Get("x-ms-substatus"); sub != "" {
				t.Errorf("%s %s: sub-status %s", name, text, sub)
			}
		}
	}
}

// A plan that a client does not support is refused with the sub-status that SDKs check,
// and in plain text, which Data Explorer shows unchanged.
func TestPlansThatAreNotServable(t *testing.T) {
	h := newItems(t, 1)
	for _, c := range []struct{ query, features, missing string }{
		{"SELECT DISTINCT c.n FROM c", "OffsetAndLimit,Top", "Distinct"},
		{"SELECT VALUE COUNT(1) FROM c", "OffsetAndLimit,Top", "Aggregate"},
		{"SELECT c.n, COUNT(1) AS m FROM c GROUP BY c.n", "Aggregate, Top", "GroupBy"},
		{"SELECT * FROM c ORDER BY c.n", "", "OrderBy"},
	} {
		a := call(t, h, "POST", docsPath, `{"query":`+quoted(c.query)+`}`, asQuery(map[string]string{
			headerPartitionKey: "", "X-Ms-Cosmos-Is-Query-Plan-Request": "True", "X-Ms-Cosmos-Supported-Query-Features": c.features,
		}), 400)
		message := decode[struct{ Message string }](t, a).Message
		if sub := a.header.Get("x-ms-substatus"); sub != "1004" {
			t.Errorf("%s: sub-status %q", c.query, sub)
		}
		if !strings.HasPrefix(message, "Query contains 1 or more unsupported features. Upgrade your SDK") || !strings.Contains(message, "does not support: "+c.missing) {
			t.Errorf("%s: refused with %q", c.query, message)
		}
	}
}

func TestQueriesThatAreNotAboutOneKey(t *testing.T) {
	h := newItems(t, 3)
	query := func(text string, more map[string]string, want int) answer {
		t.Helper()
		h2 := asQuery(map[string]string{headerPartitionKey: ""})
		maps.Copy(h2, more)
		return call(t, h, "POST", docsPath, `{"query":`+quoted(text)+`}`, h2, want)
	}
	const disabled = "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, " +
		"specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception."
	for _, leave := range []map[string]string{nil, {"X-Ms-Documentdb-Query-Enablecrosspartition": "False"}} {
		for _, text := range []string{"SELECT VALUE c.n FROM c", "SELECT VALUE COUNT(1) FROM c"} {
			if got := query(text, leave, 400).failureText(t, 400, 0); got != disabled {
				t.Errorf("%s with %v: refused with %q", text, leave, got)
			}
		}
		if got := rowsOf(t, query("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'p'", leave, 200)); got != "3" {
			t.Errorf("a filter that names the key: %s", got)
		}
	}
	leave := map[string]string{"X-Ms-Documentdb-Query-Enablecrosspartition": "True"}
	if got := rowsOf(t, query("SELECT VALUE c.n FROM c WHERE c.n > 1", leave, 200)); got != "2,3" {
		t.Errorf("with leave: %s", got)
	}
	a := query("SELECT VALUE c.n FROM c ORDER BY c.n DESC", leave, 400)
	if got := a.failureText(t, 400, 1004); !strings.Contains(got, "can not be directly served by the gateway") {
		t.Errorf("refused with %q", got)
	}
	info := decode[struct{ AdditionalErrorInfo string }](t, a).AdditionalErrorInfo
	plan := query("SELECT VALUE c.n FROM c ORDER BY c.n DESC", map[string]string{
		"X-Ms-Cosmos-Is-Query-Plan-Request": "True", "X-Ms-Cosmos-Supported-Query-Features": (^clientplan.FeatureSet(0)).String(),
	}, 200)
	if info != string(plan.body) {
		t.Errorf("the refusal tells the plan\n%s\nand asked for it is\n%s", info, plan.body)
	}
	for _, id := range []string{"0", plan.header.Get("x-ms-content-path") + ",0"} {
		if got := rowsOf(t, query("SELECT VALUE c.n FROM c ORDER BY c.n DESC", map[string]string{"X-Ms-Documentdb-Partitionkeyrangeid": id}, 200)); got != "3,2,1" {
			t.Errorf("in range %s: %s", id, got)
		}
	}
}

func TestQueriesOfEffectivePartitionKeys(t *testing.T) {
	h := newContainer(t)
	var upper [2]string // of the two keys' ranges, in their order
	for _, key := range []string{"a", "b"} {
		call(t, h, "POST", docsPath, `{"id":"1","pk":"`+key+`"}`, pk(key), 201)
		plan := call(t, h, "POST", docsPath, `{"query":"SELECT * FROM c WHERE c.pk = '`+key+`'"}`, asQuery(map[string]string{
			headerPartitionKey: "", "X-Ms-Cosmos-Is-Query-Plan-Request": "True",
		}), 200)
		ranges := decode[struct {
			QueryRanges []struct{ Min, Max string }
		}](t, plan).QueryRanges
		if len(ranges) != 1 || ranges[0].Min != ranges[0].Max {
			t.Fatalf("the plan of one key has the ranges %v", ranges)
		}
		upper[slices.Index([]string{"a", "b"}, key)] = ranges[0].Min
	}
	first, second := "a", "b"
	if upper[0] > upper[1] {
		first, second, upper[0], upper[1] = second, first, upper[1], upper[0]
	}
	for _, x := range []struct{ start, end, want string }{
		{"", "FF", "a,b"}, {"", upper[0], ""}, {"", upper[1], first}, {upper[0], upper[1], first},
		{upper[1], "FF", second}, {upper[0], "FF", "a,b"}, {upper[0], upper[0], ""},
	} {
		got := rowsOf(t, call(t, h, "POST", docsPath, `{"query":"SELECT VALUE c.pk FROM c"}`, asQuery(map[string]string{
			headerPartitionKey: "", "X-Ms-Documentdb-Partitionkeyrangeid": "0",
			"X-Ms-Read-Key-Type": "EffectivePartitionKeyRange", "X-Ms-Start-Epk": x.start, "X-Ms-End-Epk": x.end,
		}), 200))
		rows := strings.Split(strings.ReplaceAll(got, `"`, ""), ",")
		slices.Sort(rows)
		if strings.Join(rows, ",") != x.want {
			t.Errorf("from %q to %q: %s, want %s", x.start, x.end, got, x.want)
		}
	}
	a := call(t, h, "POST", docsPath, `{"query":"SELECT * FROM c"}`, asQuery(map[string]string{
		headerPartitionKey: "", "X-Ms-Documentdb-Partitionkeyrangeid": "0", "X-Ms-Start-Epk": "no",
	}), 400)
	if text := a.failureText(t, 400, 0); !strings.Contains(text, "hexadecimal") {
		t.Errorf("refused with %q", text)
	}
}

// A client may ask for the items with a partition key by the key, or by the range of
// effective keys that contains nothing else. Python does both, and resumes one with the
// continuation of the other.
func TestContinuationsOfAKeyAndItsRange(t *testing.T) {
	h := newItems(t, 5)
	call(t, h, "POST", docsPath, `{"id":"other","pk":"other","n":2}`, pk("other"), 201)
	plan := call(t, h, "POST", docsPath, `{"query":"SELECT * FROM c WHERE c.pk = 'p'"}`, asQuery(map[string]string{
		headerPartitionKey: "", "X-Ms-Cosmos-Is-Query-Plan-Request": "True",
	}), 200)
	start := decode[struct{ QueryRanges []struct{ Min string } }](t, plan).QueryRanges[0].Min
	epk, _ := new(big.Int).SetString(start, 16)
	end := fmt.Sprintf("%0*X", len(start), epk.Add(epk, big.NewInt(1)))
	asked := []map[string]string{{}, {
		headerPartitionKey: "", "X-Ms-Documentdb-Partitionkeyrangeid": "0",
		"X-Ms-Read-Key-Type": "EffectivePartitionKeyRange", "X-Ms-Start-Epk": start, "X-Ms-End-Epk": end,
	}}
	for _, text := range []string{"SELECT VALUE c.n FROM c", "SELECT VALUE c.n FROM c ORDER BY c.n", "SELECT VALUE c.n FROM c ORDER BY c.n DESC"} {
		page := func(as map[string]string, next string) answer {
			headers := asQuery(as)
			headers["X-Ms-Max-Item-Count"], headers["X-Ms-Continuation"] = "2", next
			return call(t, h, "POST", docsPath, `{"query":"`+text+`"}`, headers, 200)
		}
		for i, as := range asked {
			first := page(as, "")
			next := first.header.Get("x-ms-continuation")
			if got, want := rowsOf(t, page(asked[1-i], next)), rowsOf(t, page(as, next)); got != want || got == rowsOf(t, first) {
				t.Errorf("%s: asked the other way it goes on with %s, want %s", text, got, want)
			}
		}
	}
}

func TestQueryPages(t *testing.T) {
	h := newItems(t, 5)
	const body = `{"query":"SELECT VALUE c.n FROM c ORDER BY c.n"}`
	var all []string
	next := ""
	for range 3 {
		a := call(t, h, "POST", docsPath, body, asQuery(map[string]string{"X-Ms-Max-Item-Count": "2", "X-Ms-Continuation": next}), 200)
		all = append(all, rowsOf(t, a))
		next = a.header.Get("x-ms-continuation")
		if strings.ContainsFunc(next, func(r rune) bool { return r <= ' ' || r > '~' }) || len(next) > 1024 {
			t.Errorf("the continuation %q is not for a header", next)
		}
	}
	if got := strings.Join(all, " "); got != "1,2 3,4 5" || next != "" {
		t.Errorf("the pages are %s, and then %q", got, next)
	}
	for _, garbage := range []string{"x", ".", "0", "-1.x", "1.x", "99999999999999999999.x", "0.e30", "0.!", "0." + strings.Repeat("A", 40_000), `{"a":1}`} {
		a := call(t, h, "POST", docsPath, body, asQuery(map[string]string{"X-Ms-Continuation": garbage}), 400)
		if text := a.failureText(t, 400, 0); text != "Invalid Continuation Token" {
			t.Errorf("%.40s: refused with %q", garbage, text)
		}
	}
	for _, size := range []string{"-2", "x", "1.5"} {
		call(t, h, "POST", docsPath, body, asQuery(map[string]string{"X-Ms-Max-Item-Count": size}), 400)
	}
}

func TestContinuationLimit(t *testing.T) {
	h := newItems(t, 3)
	const body = `{"query":"SELECT * FROM c"}`
	limited := func(limit string) map[string]string {
		return asQuery(map[string]string{"X-Ms-Max-Item-Count": "1", "X-Ms-Documentdb-Responsecontinuationtokenlimitinkb": limit})
	}
	for _, limit := range []string{"1", "2", "1000"} {
		if a := call(t, h, "POST", docsPath, body, limited(limit), 200); a.header.Get("x-ms-continuation") == "" {
			t.Errorf("a limit of %s: no continuation", limit)
		}
	}
	if text := call(t, h, "POST", docsPath, body, limited("0"), 400).failureText(t, 400, 0); !strings.Contains(text, "continuation token limit specified is not large enough") {
		t.Errorf("a limit of 0: %s", text)
	}
	for _, limit := range []string{"-1", "x", "1.5", "99999999999999999999"} {
		a := call(t, h, "POST", docsPath, body, limited(limit), 400)
		if text := a.failureText(t, 400, 0); !strings.Contains(text, "must be a positive integer") {
			t.Errorf("a limit of %s: %s", limit, text)
		}
	}
}

// TestContinuationsFitIntoAHeader orders by values that are too long for a continuation:
// the JavaScript SDK always sets a limit of 1 KB.
func TestContinuationsFitIntoAHeader(t *testing.T) {
	h := newContainer(t)
	for i := range 4 {
		text := strings.Repeat("x", 100_000) + fmt.Sprint(3-i)
		call(t, h, "POST", docsPath, fmt.Sprintf(`{"id":"%d","pk":"p","s":%q,"o":{"k":%q}}`, i, text, text), pk("p"), 201)
	}
	for _, text := range []string{
		"SELECT VALUE c.id FROM c ORDER BY c.s", "SELECT VALUE c.id FROM c WHERE c.s > 'a' ORDER BY c.s",
		"SELECT VALUE c.id FROM c ORDER BY c.o.k", "SELECT VALUE MIN(c.id) FROM c GROUP BY c.s", "SELECT DISTINCT VALUE c.s FROM c",
	} {
		next, rows := "", 0
		for range 5 {
			a := call(t, h, "POST", docsPath, `{"query":`+quoted(text)+`}`, asQuery(map[string]string{
				"X-Ms-Max-Item-Count": "1", "X-Ms-Continuation": next,
			}), 200)
			rows += decode[struct {
				Count int `json:"_count"`
			}](t, a).Count
			if next = a.header.Get("x-ms-continuation"); next == "" {
				break
			}
			if len(next) > 1024 {
				t.Errorf("%s: a continuation of %d bytes", text, len(next))
			}
		}
		if rows != 4 || next != "" {
			t.Errorf("%s: %d rows, and then %.40q", text, rows, next)
		}
	}
}

// queryMetricsOf reads the metrics of an answer.
func queryMetricsOf(t *testing.T, a answer) map[string]float64 {
	t.Helper()
	metrics := map[string]float64{}
	for pair := range strings.SplitSeq(a.header.Get("X-Ms-Documentdb-Query-Metrics"), ";") {
		name, text, _ := strings.Cut(pair, "=")
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("the metrics say %q", pair)
		}
		metrics[name] = n
	}
	return metrics
}

// Every step of a query takes time in its metrics, however fast it is and whether or not
// its program was cached, and the total exceeds the parts. .NET's and Java's tests check
// that.
func TestQueryTimes(t *testing.T) {
	h := newItems(t, 4)
	for _, c := range []struct {
		query             string
		retrieved, output int
		ratio             float64
		index             bool
	}{
		{"SELECT * FROM c", 4, 4, 1, false},
		{"SELECT * FROM c WHERE c.n > 2", 4, 2, 0.5, false},
		{"SELECT VALUE COUNT(1) FROM c", 0, 1, 1, true},
		{"SELECT COUNT(1) AS n FROM c", 0, 1, 1, true},
		{"SELECT VALUE [{\"item\": COUNT(1)}] FROM c", 0, 1, 1, true},
		{"SELECT VALUE SUM(c.n) FROM c", 4, 1, 1, false},
		{"SELECT VALUE c.n FROM c WHERE c.n > 1 ORDER BY c.n DESC", 4, 3, 0.75, false},
		{"SELECT VALUE 1", 0, 1, 1, false},
	} {
		body, err := json.Marshal(map[string]string{"query": c.query})
		if err != nil {
			t.Fatal(err)
		}
		for _, kept := range []bool{false, true} {
			a := call(t, h, "POST", docsPath, string(body), asQuery(with(pk("p"), "X-Ms-Documentdb-Populatequerymetrics", "true")), 200)
			m := queryMetricsOf(t, a)
			if int(m["retrievedDocumentCount"]) != c.retrieved || int(m["outputDocumentCount"]) != c.output || m["indexUtilizationRatio"] != c.ratio {
				t.Errorf("%s: %v", c.query, m)
			}
			if (m["retrievedDocumentSize"] > 0) != (c.retrieved > 0) || (m["documentLoadTimeInMs"] > 0) != (c.retrieved > 0) || (m["indexLookupTimeInMs"] > 0) != c.index {
				t.Errorf("%s: %v", c.query, m)
			}
			if m["queryCompileTimeInMs"] < 0.01 {
				t.Errorf("%s, kept %v: compiled in %v ms", c.query, kept, m["queryCompileTimeInMs"])
			}
			engine := m["VMExecutionTimeInMs"] - m["indexLookupTimeInMs"] - m["documentLoadTimeInMs"] - m["writeOutputTimeInMs"]
			if engine < 0.009 || m["totalExecutionTimeInMs"] < m["VMExecutionTimeInMs"]+m["queryCompileTimeInMs"]-0.001 {
				t.Errorf("%s: parts are not parts of the whole: %v", c.query, m)
			}
		}
	}
}

func TestQueryMetrics(t *testing.T) {
	h := newItems(t, 4)
	const body = `{"query":"SELECT VALUE c.n FROM c WHERE c.n > 2"}`
	plain := call(t, h, "POST", docsPath, body, asQuery(nil), 200).header
	for _, name := range []string{"X-Ms-Documentdb-Query-Metrics", "X-Ms-Cosmos-Index-Utilization"} {
		if got := plain.Get(name); got != "" {
			t.Errorf("%s is %q, without being asked for", name, got)
		}
	}
	a := call(t, h, "POST", docsPath, body, asQuery(map[string]string{
		"X-Ms-Documentdb-Populatequerymetrics": "True", "X-Ms-Cosmos-Populateindexmetrics": "True",
	}), 200)
	metrics := queryMetricsOf(t, a)
	if len(metrics) != 17 || metrics["outputDocumentCount"] != 2 || metrics["outputDocumentSize"] == 0 {
		t.Errorf("the metrics are %v", metrics)
	}
	raw, err := base64.StdEncoding.DecodeString(a.header.Get("X-Ms-Cosmos-Index-Utilization"))
	const want = `{"UtilizedSingleIndexes":[{"FilterExpression":"","IndexSpec":"/pk/?","FilterPreciseSet":true,"IndexPreciseSet":true,"IndexImpactScore":"High"},` +
		`{"FilterExpression":"(ROOT[\"n\"] \u003e 2)","IndexSpec":"/n/?","FilterPreciseSet":true,"IndexPreciseSet":true,"IndexImpactScore":"High"}],` +
		`"PotentialSingleIndexes":[],"UtilizedCompositeIndexes":[],"PotentialCompositeIndexes":[]}`
	if err != nil || string(raw) != want {
		t.Errorf("the index metrics are %s: %v, want %s", raw, err, want)
	}
	a = call(t, h, "POST", docsPath, body, asQuery(map[string]string{"X-Ms-Cosmos-Populateindexmetrics-V2": "True"}), 200)
	text, err := url.PathUnescape(a.header.Get("X-Ms-Cosmos-Index-Utilization"))
	const wantV2 = `{"UtilizedIndexes":{"SingleIndexes":[{"IndexSpec":"/pk/?"},{"IndexSpec":"/n/?"}],"CompositeIndexes":[]},"PotentialIndexes":{"SingleIndexes":[],"CompositeIndexes":[]}}`
	if err != nil || text != wantV2 {
		t.Errorf("the index metrics are %s: %v, want %s", text, err, wantV2)
	}
}

// An index's name is its path, which may be long, and a query may use many. The header
// stays within what clients read, and is complete JSON.
func TestIndexMetricsLength(t *testing.T) {
	h := newItems(t, 1)
	for _, query := range []string{
		"c." + strings.Repeat("a", 10_000) + " = 1 AND c." + strings.Repeat("b", 10_000) + " > 0 AND c." + strings.Repeat("d", 10_000) + " > 0",
		"c['" + strings.Repeat("ä", 5_000) + "'] = 1 AND c['" + strings.Repeat("ö", 5_000) + "'] > 1",
	} {
		body := `{"query":"SELECT * FROM c WHERE ` + query + `"}`
		for _, ask := range []string{"X-Ms-Cosmos-Populateindexmetrics", "X-Ms-Cosmos-Populateindexmetrics-V2"} {
			text := call(t, h, "POST", docsPath, body, asQuery(map[string]string{ask: "True"}), 200).header.Get("X-Ms-Cosmos-Index-Utilization")
			if len(text) < 20_000 || len(text) > 64<<10 {
				t.Errorf("%s has %d bytes", ask, len(text))
			}
			raw, err := base64.StdEncoding.DecodeString(text)
			if ask == "X-Ms-Cosmos-Populateindexmetrics-V2" {
				text, err = url.PathUnescape(text)
				raw = []byte(text)
			}
			if err != nil || !json.Valid(raw) {
				t.Errorf("%s: %.100s, %v", ask, raw, err)
			}
		}
	}
}

func TestQueryHeaders(t *testing.T) {
	h := newItems(t, 1)
	a := call(t, h, "POST", docsPath, `{"query":"SELECT * FROM c"}`, asQuery(nil), 200)
	for _, name := range []string{"x-ms-request-charge", "x-ms-session-token", "x-ms-activity-id", "x-ms-item-count", "x-ms-alt-content-path", "x-ms-content-path"} {
		if a.header.Get(name) == "" {
			t.Errorf("there is no %s: %v", name, a.header)
		}
	}
	// A session token ahead of the data gets 404/1002, and a malformed one 400.
	call(t, h, "POST", docsPath, `{"query":"SELECT * FROM c"}`, asQuery(map[string]string{"X-Ms-Session-Token": a.header.Get("x-ms-session-token")}), 200)
	call(t, h, "POST", docsPath, `{"query":"SELECT * FROM c"}`, asQuery(map[string]string{"X-Ms-Session-Token": "0:0#1000000"}), 404).failureText(t, 404, 1002)
	call(t, h, "POST", docsPath, `{"query":"SELECT * FROM c"}`, asQuery(map[string]string{"X-Ms-Session-Token": "nonsense"}), 400)
	call(t, h, "POST", "/dbs/d/colls/none/docs", `{"query":"SELECT * FROM c"}`, asQuery(nil), 404)
	call(t, h, "POST", "/dbs/none/colls/c/docs", `{"query":"SELECT * FROM c"}`, asQuery(nil), 404)
}

func TestQueriesOfDatabasesAndContainers(t *testing.T) {
	h := newContainer(t)
	call(t, h, "POST", "/dbs", `{"id":"e"}`, nil, 201)
	query := func(path, text string, want int) answer {
		t.Helper()
		return call(t, h, "POST", path, `{"query":`+quoted(text)+`}`, map[string]string{"Content-Type": "application/query+json"}, want)
	}
	rows := func(a answer, kind string) string {
		return string(decode[map[string]json.RawMessage](t, a)[kind])
	}
	for text, want := range map[string]string{
		"SELECT VALUE r.id FROM root r ORDER BY r.id DESC": `["e","d"]`,
		"SELECT r.id FROM r WHERE r.id = 'e'":              `[{"id":"e"}]`,
		"SELECT VALUE COUNT(1) FROM c":                     `[2]`,
		"SELECT * FROM c WHERE c.id = 'x'":                 `[]`,
	} {
		if got := rows(query("/dbs", text, 200), "Databases"); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	if got := rows(query("/dbs/d/colls", "SELECT VALUE [c.id, c.partitionKey.paths] FROM c", 200), "DocumentCollections"); got != `[["c",["/pk"]]]` {
		t.Errorf("the containers are %s", got)
	}
	if got := rows(query("/dbs/e/colls", "SELECT * FROM c", 200), "DocumentCollections"); got != `[]` {
		t.Errorf("the containers are %s", got)
	}
	query("/dbs/none/colls", "SELECT * FROM c", http.StatusNotFound)
	for _, path := range []string{"/dbs", "/dbs/d/colls"} {
		if got := readQueryFailure(t, query(path, "SELECT * FROM c WHERE", 400)); got.Code != "SC1002" {
			t.Errorf("%s: refused with %+v", path, got)
		}
		query(path, "SELECT VALUE udf.f(c) FROM c", 400)
		query(path, "SELECT VALUE RAND() < 1 FROM c", 200)
	}
}

// FuzzParseQuery: every body is a query or is refused.
func FuzzParseQuery(f *testing.F) {
	for _, seed := range []string{
		`{"query":"SELECT 1"}`, `{"query":"SELECT @a","parameters":[{"name":"@a","value":[1,{"b":null}]}]}`, `{"parameters":null,"query":""}`,
		`{"query":1}`, `[]`, `{"query":"x","parameters":[{"name":"a"}]}`, `{"query":"","pArAmeters":[{}]}`, `{"query":"\ud800","parameters":[]}`, "{\"query\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := engine.ParseQuery(body)
		if err != nil {
			return
		}
		var again map[string]json.RawMessage // by names as they are spelled
		var text string
		if err := errors.Join(json.Unmarshal(body, &again), json.Unmarshal(again["query"], &text)); err != nil || q.Text != text {
			t.Fatalf("%q was taken for the query %q, want %q: %v", body, q.Text, text, err)
		}
		var list []map[string]json.RawMessage
		if raw, ok := again["parameters"]; ok && json.Unmarshal(raw, &list) != nil {
			t.Fatalf("%q has parameters %s that were accepted", body, raw)
		}
		for _, p := range list {
			var name string
			if err := json.Unmarshal(p["name"], &name); err != nil {
				t.Fatalf("%q has a parameter without a name that was accepted: %v", body, err)
			}
			if _, ok := q.Params[name]; !ok {
				t.Errorf("%q has the parameter %q, and the query %v", body, name, q.Params)
			}
		}
	})
}

// hesitant yields to other goroutines before it takes what is written to it.
type hesitant struct{ *httptest.ResponseRecorder }

func (w *hesitant) Write(p []byte) (int, error) {
	for range 10 {
		runtime.Gosched()
	}
	return w.ResponseRecorder.Write(p)
}

// The memory of a page is reused for the next, but never too early: every client gets
// whole rows, and only its own.
func TestPagesDoNotMix(t *testing.T) {
	h := newContainer(t)
	const items, clients, questions = 40, 6, 40
	letters := func(n int) string { return strings.Repeat(string(rune('a'+n%26)), 37*(n%23)) }
	for n := range items {
		call(t, h, "POST", docsPath, fmt.Sprintf(`{"id":"%d","pk":"p","n":%d,"pad":%q}`, n, n, letters(n)), pk("p"), 201)
	}
	var wait sync.WaitGroup
	for c := range clients {
		wait.Go(func() {
			for q := range questions {
				from := (c*17 + q*5) % items
				body := fmt.Sprintf(`{"query":"SELECT c.n, c.pad FROM c WHERE c.n >= %d ORDER BY c.n OFFSET 0 LIMIT %d"}`, from, 1+q%15)
				w := &hesitant{httptest.NewRecorder()}
				h.ServeHTTP(w, signedRequest(t, "POST", docsPath, []byte(body), asQuery(nil)))
				var page struct {
					Documents []struct {
						N   int
						Pad string
					}
				}
				if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
					t.Errorf("%s: %v in %s", body, err, w.Body)
				}
				if want := min(1+q%15, items-from); len(page.Documents) != want {
					t.Errorf("%s: got %d rows, want %d", body, len(page.Documents), want)
				}
				for i, row := range page.Documents {
					if row.N != from+i || row.Pad != letters(row.N) {
						t.Errorf("%s: row %d is %+v", body, i, row)
					}
				}
			}
		})
	}
	wait.Wait()
}
