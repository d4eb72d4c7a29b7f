// SPDX-License-Identifier: MIT

package rest

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/engine"
)

// offerFeed is a list of offers as a client reads it.
type offerFeed struct {
	Rid    string      `json:"_rid"`
	Offers []offerJSON `json:"Offers"`
	Count  int         `json:"_count"`
}

type offerJSON struct {
	ID              string `json:"id"`
	Rid             string `json:"_rid"`
	Self            string `json:"_self"`
	ETag            string `json:"_etag"`
	Resource        string `json:"resource"`
	OfferResourceID string `json:"offerResourceId"`
	OfferVersion    string `json:"offerVersion"`
	Content         struct {
		OfferThroughput        int `json:"offerThroughput"`
		OfferAutopilotSettings *struct {
			MaxThroughput int `json:"maxThroughput"`
		} `json:"offerAutopilotSettings"`
	} `json:"content"`
}

var queryHeaders = map[string]string{"Content-Type": "application/query+json", "x-ms-documentdb-isquery": "True"}

// queryOffers sends a query with parameters, which are JSON.
func queryOffers(t testing.TB, h *Handler, query, parameters string) []offerJSON {
	t.Helper()
	body := `{"query":` + quoted(query) + `,"parameters":` + parameters + `}`
	feed := decode[offerFeed](t, call(t, h, "POST", "/offers", body, queryHeaders, 200))
	if feed.Count != len(feed.Offers) || feed.Rid != "" {
		t.Errorf("%s: _count %d of %d, _rid %q", query, feed.Count, len(feed.Offers), feed.Rid)
	}
	return feed.Offers
}

// offered makes two databases, one of them with shared throughput, and three containers,
// one of which shares it.
func offered(t testing.TB) *Handler {
	t.Helper()
	h := newContainer(t) // d and c, with defaults
	call(t, h, "POST", "/dbs", `{"id":"s"}`, map[string]string{"x-ms-offer-throughput": "600"}, 201)
	call(t, h, "POST", "/dbs/s/colls", containerBody, nil, 201)
	call(t, h, "POST", "/dbs/s/colls", strings.Replace(containerBody, `"c"`, `"own"`, 1),
		map[string]string{"x-ms-cosmos-offer-autopilot-settings": `{"maxThroughput":4000}`}, 201)
	return h
}

func TestOfferResource(t *testing.T) {
	h := offered(t)
	list := decode[offerFeed](t, call(t, h, "GET", "/offers", "", nil, 200))
	got := map[string]string{}
	for _, o := range list.Offers {
		got[o.Resource] = fmt.Sprint(o.Content.OfferThroughput, o.Content.OfferAutopilotSettings != nil)
		a := call(t, h, "GET", "/offers/"+o.Rid, "", nil, 200)
		if read := decode[offerJSON](t, a); read.Rid != o.Rid || read.ID != o.Rid || read.Self != "offers/"+o.Rid+"/" || read.OfferVersion != "V2" ||
			a.header.Get("etag") != read.ETag {
			t.Errorf("read %s, etag %s", a.body, a.header.Get("etag"))
		}
		least := "400"
		if o.Content.OfferAutopilotSettings != nil {
			least = "1000"
		}
		if a.header.Get("x-ms-cosmos-min-throughput") != least || a.header.Get("x-ms-offer-replace-pending") != "false" {
			t.Errorf("%s: headers %v", o.Resource, a.header)
		}
		if slash := call(t, h, "GET", "/offers/"+o.Rid+"/", "", nil, 200); !bytes.Equal(slash.body, a.body) {
			t.Errorf("with a slash: %s, want %s", slash.body, a.body)
		}
		call(t, h, "GET", "/offers/"+o.Rid, "", map[string]string{"If-None-Match": o.ETag}, 304)
		if len(ridBytes(t, o.Rid)) != 3 {
			t.Errorf("the rid %s has not three bytes", o.Rid)
		}
	}
	self := func(path string) string { return call(t, h, "GET", path, "", nil, 200).json(t)["_self"].(string) }
	want := map[string]string{self("/dbs/d/colls/c"): "400 false", self("/dbs/s"): "600 false", self("/dbs/s/colls/own"): "400 true"}
	if fmt.Sprint(got) != fmt.Sprint(want) || list.Count != 3 {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, c := range []struct{ method, path, body string }{
		{"DELETE", "/offers/" + list.Offers[0].Rid, ""}, {"POST", "/offers/" + list.Offers[0].Rid, "{}"}, {"POST", "/offers", "{}"}, {"PUT", "/offers", "{}"},
	} {
		call(t, h, c.method, c.path, c.body, nil, 405).failureText(t, 405, 0)
	}
	for _, rid := range []string{"AAAA", "nosuch", "x", "AAAAAQ=="} {
		call(t, h, "GET", "/offers/"+rid, "", nil, 404).failureText(t, 404, 0)
		call(t, h, "PUT", "/offers/"+rid, `{"content":{"offerThroughput":500}}`, nil, 404).failureText(t, 404, 0)
	}
}

func TestOffersComeInPages(t *testing.T) {
	h := offered(t)
	all := decode[offerFeed](t, call(t, h, "GET", "/offers", "", nil, 200)).Offers
	for size := 1; size <= 4; size++ {
		var got []string
		headers := map[string]string{"x-ms-max-item-count": fmt.Sprint(size)}
		for range 10 {
			a := call(t, h, "GET", "/offers", "", headers, 200)
			page := decode[offerFeed](t, a)
			if len(page.Offers) > size {
				t.Errorf("a page of %d, asked for %d", len(page.Offers), size)
			}
			for _, o := range page.Offers {
				got = append(got, o.Rid)
			}
			if headers["x-ms-continuation"] = a.header.Get("x-ms-continuation"); headers["x-ms-continuation"] == "" {
				break
			}
		}
		if len(got) != len(all) || got[0] != all[0].Rid || got[2] != all[2].Rid {
			t.Errorf("in pages of %d: %v", size, got)
		}
	}
	call(t, h, "GET", "/offers", "", map[string]string{"x-ms-continuation": "AAAAAQ=="}, 400).failureText(t, 400, 0)
}

func TestReplaceOffer(t *testing.T) {
	h := offered(t)
	ridOf := func(path string) string {
		self := call(t, h, "GET", path, "", nil, 200).json(t)["_self"].(string)
		return queryOffers(t, h, `SELECT * FROM c WHERE c.resource = '`+self+`'`, "[]")[0].Rid
	}
	rid := ridOf("/dbs/d/colls/c")
	path, content := "/offers/"+rid, `{"id":"`+rid+`","content":`
	before := call(t, h, "GET", path, "", nil, 200)
	call(t, h, "PUT", path, content+`{"offerThroughput":500}}`, map[string]string{"If-Match": `"other"`}, 412).failureText(t, 412, 0)
	// As JavaScript sends it: the whole offer, with another number.
	body := strings.Replace(string(before.body), `"offerThroughput":400`, `"offerThroughput":50000`, 1)
	a := call(t, h, "PUT", path, body, map[string]string{"If-Match": before.header.Get("etag")}, 200)
	if got := decode[offerJSON](t, a); got.Content.OfferThroughput != 50_000 || a.header.Get("etag") == before.header.Get("etag") || a.header.Get("etag") != got.ETag ||
		a.header.Get("x-ms-cosmos-min-throughput") != "500" || a.header.Get("x-ms-offer-replace-pending") != "true" {
		t.Errorf("replaced: %s, %v", a.body, a.header)
	}
	// It is pending until there are five partitions, of which each carries 10,000 RU/s.
	read := call(t, h, "GET", path, "", nil, 200)
	for began := time.Now(); read.header.Get("x-ms-offer-replace-pending") == "true" && time.Since(began) < time.Minute; read = call(t, h, "GET", path, "", nil, 200) {
		time.Sleep(time.Millisecond)
	}
	if want := bytes.Replace(a.body, []byte(`"isOfferReplacePending":true,`), nil, 1); !bytes.Equal(read.body, want) || len(want) == len(a.body) || read.header.Get("x-ms-offer-replace-pending") != "false" {
		t.Errorf("read %s, %v, want %s", read.body, read.header, want)
	}
	if ranges := call(t, h, "GET", "/dbs/d/colls/c/pkranges", "", nil, 200).json(t)["_count"]; ranges != 5.0 {
		t.Errorf("there are %v partitions", ranges)
	}
	text := call(t, h, "PUT", path, content+`{"offerThroughput":400}}`, nil, 400).failureText(t, 400, 0)
	if !strings.Contains(text, "Requested throughput 400 is less than required minimum throughput 500") {
		t.Errorf("below the minimum: %q", text)
	}
	// From manual to autoscale and back, as the content says.
	a = call(t, h, "PUT", path, content+`{"offerThroughput":-1,"offerAutopilotSettings":{"maxThroughput":6000}}}`, nil, 200)
	if got := decode[offerJSON](t, a); got.Content.OfferAutopilotSettings.MaxThroughput != 6000 || a.header.Get("x-ms-cosmos-min-throughput") != "5000" {
		t.Errorf("autoscale: %s, %v", a.body, a.header)
	}
	a = call(t, h, "PUT", path, content+`{"offerThroughput":500,"offerAutopilotSettings":null}}`, nil, 200)
	if got := decode[offerJSON](t, a); got.Content.OfferAutopilotSettings != nil || got.Content.OfferThroughput != 500 {
		t.Errorf("manual: %s", a.body)
	}
	call(t, h, "PUT", path, `{`, nil, 400).failureText(t, 400, 0)
	if ranges := call(t, h, "GET", "/dbs/d/colls/c/pkranges", "", nil, 200).json(t); ranges["_count"] != 5.0 {
		t.Errorf("the container has %v ranges", ranges["_count"])
	}
	// The offer is deleted with its resource.
	shared := "/offers/" + ridOf("/dbs/s")
	call(t, h, "DELETE", "/dbs/d/colls/c", "", nil, 204)
	call(t, h, "DELETE", "/dbs/s", "", nil, 204)
	for _, gone := range []string{path, shared} {
		call(t, h, "GET", gone, "", nil, 404).failureText(t, 404, 0)
	}
	if n := call(t, h, "GET", "/offers", "", nil, 200).json(t)["_count"]; n != 0.0 {
		t.Errorf("%v offers are left", n)
	}
}

// The ways in which SDKs query the offer of a container.
func TestOfferQueries(t *testing.T) {
	h := offered(t)
	own := call(t, h, "GET", "/dbs/s/colls/own", "", nil, 200).json(t)
	rid, self := own["_rid"].(string), own["_self"].(string)
	for _, c := range []struct{ query, parameters string }{
		{`SELECT * FROM c WHERE c.offerResourceId = '` + rid + `'`, "[]"},                                  // Go
		{`SELECT * from root where root.resource = "` + self + `"`, "[]"},                                  // JavaScript
		{`SELECT * FROM root r WHERE r.resource=@link`, `[{"name":"@link","value":` + quoted(self) + `}]`}, // Python
		{`select*from x as y where y.offerResourceId=@rid`, `[{"name":"@other","value":7},{"name":"@rid","value":` + quoted(rid) + `}]`},
		{"\n SELECT  *\tFROM o\r\nWHERE o . resource  =  '" + self + "' ", "null"},
		{`SELECT * FROM whereabouts WHERE whereabouts.resource="` + self + `"`, "[]"},
	} {
		if got := queryOffers(t, h, c.query, c.parameters); len(got) != 1 || got[0].OfferResourceID != rid || got[0].Resource != self {
			t.Errorf("%s: got %+v", c.query, got)
		}
	}
	for _, query := range []string{"SELECT * FROM c", "select * from root r", "SELECT * FROM root AS r", "SELECT * FROM c "} {
		if got := queryOffers(t, h, query, "[]"); len(got) != 3 {
			t.Errorf("%s: got %d offers, want 3", query, len(got))
		}
	}
	shares := call(t, h, "GET", "/dbs/s/colls/c", "", nil, 200).json(t)
	for _, c := range []struct{ query, parameters string }{
		{`SELECT * FROM c WHERE c.offerResourceId = '` + shares["_rid"].(string) + `'`, "[]"},
		{`SELECT * FROM c WHERE c.offerResourceId = ''`, "[]"},
		{`SELECT * FROM c WHERE c.resource = '` + rid + `'`, "[]"},
		{`SELECT * FROM c WHERE c.resource = '` + strings.TrimSuffix(self, "/") + `'`, "[]"},
		{`SELECT * FROM c WHERE c.resource = @x`, `[{"name":"@x","value":7}]`},
		{`SELECT * FROM c WHERE c.resource = @x`, `[{"name":"@x"}]`},
		{`SELECT * FROM c WHERE c.resource = @x`, `[{"name":"@x","value":[]}]`},
	} {
		if got := queryOffers(t, h, c.query, c.parameters); len(got) != 0 {
			t.Errorf("%s with %s: got %+v, want nothing", c.query, c.parameters, got)
		}
	}
}

func TestQueriesOfResourcesThatAreRefused(t *testing.T) {
	h := offered(t)
	for body, want := range map[string]string{
		`{`:           "not well-formed JSON",
		`[]`:          "",
		`{}`:          "'query' must be a string",
		`{"query":7}`: "'query' must be a string",
		`{"query":"SELECT * FROM c WHERE c.resource = @x","parameters":[{"name":"x","value":"y"}]}`: "begins with @",
		`{"query":"SELECT * FROM c WHERE c.resource = @x","parameters":[7]}`:                        "must be an object",
		`{"query":"SELECT * FROM c WHERE c.resource = @x","parameters":7}`:                          "must be a list",
	} {
		text := call(t, h, "POST", "/offers", body, queryHeaders, 400).failureText(t, 400, 0)
		if !strings.Contains(text, want) {
			t.Errorf("%.100s: the client is told %q, want %q in it", body, text, want)
		}
	}
	for query, want := range map[string]string{
		"":                                       "SC1002",
		"SELECT * FROM":                          "SC1002",
		"SELECT * FROM c; DROP":                  "SC1001",
		"SELECT * FROM c WHERE d.resource = 'x'": "Identifier 'd' could not be resolved.",
		"SELECT nosuchfunction(c.id) FROM c":     "SC2005",
		"SELECT * FROM c d WHERE c.resource = 'x'": "Identifier 'c' could not be resolved.",
	} {
		for _, path := range []string{"/offers", "/dbs", "/dbs/d/colls"} {
			got := call(t, h, "POST", path, `{"query":`+quoted(query)+`}`, queryHeaders, 400)
			if !strings.Contains(string(got.body), want) {
				t.Errorf("%s: the client is told %s, want %q in it", query, got.body, want)
			}
		}
	}
}

func FuzzQueryBody(f *testing.F) {
	for _, query := range []string{
		"SELECT * FROM c", "SELECT * FROM c WHERE c.resource = 'x'", `SELECT * from root where root.resource = "dbs/x/"`,
		"SELECT * FROM root r WHERE r.resource=@link", "SELECT * FROM c AS", "select*from a b", "SELECT * FROM c WHERE c.offerResourceId = '\\'",
	} {
		f.Add([]byte(`{"query":` + quoted(query) + `,"parameters":[{"name":"@link","value":"x"}]}`))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := engine.ParseQuery(body); err != nil {
			if _, known := api.FailureOf(err); !known {
				t.Errorf("%q fails as an internal error: %v", body, err)
			}
		}
	})
}

// The throughput of a new database is checked like a container's.
func TestThroughputHeaders(t *testing.T) {
	h := newContainer(t)
	for _, path := range []string{"/dbs", "/dbs/d/colls"} {
		body := strings.Replace(containerBody, `"c"`, `"new"`, 1)
		for _, c := range []struct{ manual, autoscale, want string }{
			{"400", `{"maxThroughput":4000}`, "not both"},
			{"300", "", "Requested throughput 300 is less than required minimum throughput 400"},
			{"4OO", "", "x-ms-offer-throughput is not an integer"},
			{"", `{"maxThroughput":900}`, "less than required minimum throughput 1000"},
			{"", `{"maxThroughput":4500}`, "not a multiple of 1000"},
			{"", `{"max":4000}`, "x-ms-cosmos-offer-autopilot-settings is invalid"},
		} {
			headers := map[string]string{}
			if c.manual != "" {
				headers["x-ms-offer-throughput"] = c.manual
			}
			if c.autoscale != "" {
				headers["x-ms-cosmos-offer-autopilot-settings"] = c.autoscale
			}
			text := call(t, h, "POST", path, body, headers, 400).failureText(t, 400, 0)
			if !strings.Contains(text, c.want) {
				t.Errorf("POST %s with %v: the client is told %q, want %q in it", path, headers, text, c.want)
			}
		}
	}
}

// What a client gets that spends more than its throughput.
func TestThrottled(t *testing.T) {
	h, log := logged(t)
	for wait, want := range map[time.Duration]string{time.Millisecond: "1", 12 * time.Millisecond: "12", time.Hour: "3600000"} {
		w := httptest.NewRecorder()
		failWith{h, fmt.Errorf("wrapped: %w", &engine.ThrottledError{RetryAfter: wait})}.ServeHTTP(w, errorRequest(t))
		h := received(w.Header())
		if w.Code != 429 || h.Get("x-ms-retry-after-ms") != want || h.Get("x-ms-substatus") != "3200" || h.Get("x-ms-request-charge") != "0.00" {
			t.Errorf("%v: status %d, headers %v", wait, w.Code, h)
		}
		const text = `{"code":"429","message":"Message: {\"Errors\":[\"Request rate is large. More Request Units may be needed, so no changes were made. ` +
			`Please retry this request later. Learn more: http://aka.ms/cosmosdb-error-429\"]}`
		if !strings.HasPrefix(w.Body.String(), text) {
			t.Errorf("%v: body %s", wait, w.Body)
		}
	}
	if log.Len() > 0 {
		t.Errorf("it is logged: %s", log)
	}
}

// A policy that raises the maximum of autoscale stays as long as the offer has it.
func TestAutoUpgradePolicy(t *testing.T) {
	h := newTestHandler(t)
	const policy = `{"maxThroughput":4000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":10}}}`
	call(t, h, "POST", "/dbs", `{"id":"s"}`, map[string]string{"X-Ms-Cosmos-Offer-Autopilot-Settings": policy}, 201)
	offer := queryOffers(t, h, "SELECT * FROM c", "[]")[0].Rid
	for _, c := range []struct{ settings, want string }{
		{policy, `"offerAutopilotSettings":` + policy},
		{`{"maxThroughput":5000}`, `"offerAutopilotSettings":{"maxThroughput":5000}`},
		{strings.Replace(policy, "10", "0", 1), strings.Replace(policy, "10", "0", 1)},
	} {
		body := `{"id":"` + offer + `","content":{"offerThroughput":-1,"offerAutopilotSettings":` + c.settings + `}}`
		replaced := call(t, h, "PUT", "/offers/"+offer, body, nil, 200)
		for _, a := range []answer{replaced, call(t, h, "GET", "/offers/"+offer, "", nil, 200)} {
			if !bytes.Contains(a.body, []byte(c.want)) {
				t.Errorf("%s: got %s, want %s in it", c.settings, a.body, c.want)
			}
		}
	}
}

// The headers of a container about its throughput and its analytical store.
func TestContainerHeaders(t *testing.T) {
	h := newTestHandler(t)
	call(t, h, "POST", "/dbs", `{"id":"s"}`, map[string]string{"X-Ms-Offer-Throughput": "1000"}, 201)
	const definition = `{"id":"c","partitionKey":{"paths":["/pk"]},"analyticalStorageTtl":-1}`
	own := strings.Replace(definition, `"c"`, `"own"`, 1)
	shares := call(t, h, "POST", "/dbs/s/colls", definition, nil, 201)
	alone := call(t, h, "POST", "/dbs/s/colls", own, map[string]string{"X-Ms-Offer-Throughput": "400"}, 201)
	if got := shares.header.Get("x-ms-share-throughput"); got != "true" {
		t.Errorf("a container that shares: got %q", got)
	}
	if got := alone.header.Get("x-ms-share-throughput"); got != "" {
		t.Errorf("a container with throughput of its own: got %q", got)
	}
	const asked, told = "X-Ms-Cosmos-Populate-Analytical-Migration-Progress", "x-ms-cosmos-analytical-migration-progress"
	if got := call(t, h, "GET", "/dbs/s/colls/c", "", map[string]string{asked: "true"}, 200).header.Get(told); got != "100" {
		t.Errorf("analytical migration: got %q", got)
	}
	if got := call(t, h, "GET", "/dbs/s/colls/c", "", nil, 200).header.Get(told); got != "" {
		t.Errorf("analytical migration, not asked for: got %q", got)
	}
}
