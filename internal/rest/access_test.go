// SPDX-License-Identifier: MIT

// Every operation with every kind of credential. The operations come from the router, so
// a new route needs a row here.

package rest

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
)

const (
	secondKey   = "c2Vjb25kYXJ5IGtleSBvZiB0aGUgdGVzdHM="
	readOnlyKey = "cmVhZC1vbmx5IGtleSBvZiB0aGUgdGVzdHM="
	strangeKey  = "YSBrZXkgdGhhdCBub2JvZHkga25vd3M="
)

// Credentials. Those of the first group allow nothing but the account.
var credentials = []string{
	"none", "strange", "garbled", "expired", "gone", "elsewhere", "nowhere",
	// Read-only ones come first, and the one that may delete most comes last: each
	// operation is tried with all of them in turn.
	"ro", "aad-ro", "read", "item-read", "key-read", "other-key",
	"item-all", "key-all", "aad", "all", "key", "key2",
}

// Sets of credentials.
const (
	masters = "key key2"
	readers = masters + " ro"
	looks   = readers + " aad aad-ro"
	// inside are those that may read the container's data, and whole those that may read
	// the container itself.
	inside = looks + " read all key-read key-all"
	whole  = inside + " item-read item-all other-key"
	writes = masters + " aad all key-all"
	owners = masters + " all"
	valid  = whole + " gone elsewhere nowhere"
)

// access says which credentials allow which requests. The methods of a row are separated
// by spaces. QUERY is a POST that is a query, and so on.
var access = []struct{ path, methods, allowed string }{
	{"/", "GET HEAD", valid},
	{"/", "POST QUERY PUT PATCH DELETE", masters},
	{"/dbs", "GET HEAD QUERY", looks},
	{"/dbs", "POST PUT PATCH DELETE", masters},
	{"/dbs/d", "GET HEAD", looks},
	{"/dbs/d", "POST QUERY PUT PATCH DELETE", masters},
	{"/offers", "GET HEAD QUERY", readers},
	{"/offers", "POST PUT PATCH DELETE", masters},
	{"/offers/d", "GET HEAD", readers},
	{"/offers/d", "POST QUERY PUT PATCH DELETE", masters},
	{"/dbs/d/users", "GET HEAD QUERY", readers},
	{"/dbs/d/users", "POST PUT PATCH DELETE", masters},
	{"/dbs/d/users/u", "GET HEAD", readers},
	{"/dbs/d/users/u", "POST QUERY PUT PATCH DELETE", masters},
	{"/dbs/d/users/u/permissions", "GET HEAD QUERY POST PUT PATCH DELETE", masters},
	{"/dbs/d/users/u/permissions/p", "GET HEAD POST QUERY PUT PATCH DELETE", masters},
	{"/dbs/d/clientencryptionkeys", "GET HEAD QUERY", looks},
	{"/dbs/d/clientencryptionkeys", "POST PUT PATCH DELETE", masters},
	{"/dbs/d/clientencryptionkeys/k", "GET HEAD", looks},
	{"/dbs/d/clientencryptionkeys/k", "POST QUERY PUT PATCH DELETE", masters},
	{"/dbs/d/colls", "GET HEAD QUERY", looks},
	{"/dbs/d/colls", "POST PUT PATCH DELETE", masters},
	{"/dbs/d/colls/c", "GET HEAD", whole},
	{"/dbs/d/colls/c", "POST QUERY PUT PATCH DELETE", masters},
	{"/dbs/d/colls/c/operations/partitionkeydelete", "GET HEAD", inside},
	{"/dbs/d/colls/c/operations/partitionkeydelete", "POST QUERY PUT PATCH DELETE", writes},
	{"/dbs/d/colls/c/pkranges", "GET HEAD QUERY", whole},
	{"/dbs/d/colls/c/pkranges", "POST PUT PATCH DELETE", owners},
	{"/dbs/d/colls/c/pkranges/r", "GET HEAD", whole},
	{"/dbs/d/colls/c/pkranges/r", "POST QUERY PUT PATCH DELETE", owners},
	{"/dbs/d/colls/c/docs", "GET HEAD QUERY CHANGES", inside},
	{"/dbs/d/colls/c/docs", "PLAN", inside + " other-key"},
	{"/dbs/d/colls/c/docs", "POST UPSERT BULK BATCH PUT PATCH DELETE", writes},
	{"/dbs/d/colls/c/docs/i", "GET HEAD", inside + " item-read item-all"},
	{"/dbs/d/colls/c/docs/i", "POST QUERY PUT PATCH DELETE", writes + " item-all"},
	{"/dbs/d/colls/c/sprocs", "GET HEAD QUERY", readers + " read all"},
	{"/dbs/d/colls/c/sprocs", "POST PUT PATCH DELETE", owners},
	{"/dbs/d/colls/c/sprocs/s", "GET HEAD", readers + " read all"},
	{"/dbs/d/colls/c/sprocs/s", "POST QUERY", writes},
	{"/dbs/d/colls/c/sprocs/s", "PUT PATCH DELETE", owners},
	{"/dbs/d/colls/c/triggers", "GET HEAD QUERY", readers + " read all"},
	{"/dbs/d/colls/c/triggers", "POST PUT PATCH DELETE", owners},
	{"/dbs/d/colls/c/triggers/t", "GET HEAD", readers + " read all"},
	{"/dbs/d/colls/c/triggers/t", "POST QUERY PUT PATCH DELETE", owners},
	{"/dbs/d/colls/c/udfs", "GET HEAD QUERY", readers + " read all"},
	{"/dbs/d/colls/c/udfs", "POST PUT PATCH DELETE", owners},
	{"/dbs/d/colls/c/udfs/f", "GET HEAD", readers + " read all"},
	{"/dbs/d/colls/c/udfs/f", "POST QUERY PUT PATCH DELETE", owners},
	{"/dbs/d/colls/c/conflicts", "GET HEAD QUERY", inside},
	{"/dbs/d/colls/c/conflicts", "POST PUT PATCH", owners + " key-all"},
	{"/dbs/d/colls/c/conflicts", "DELETE", writes},
	{"/dbs/d/colls/c/conflicts/x", "GET HEAD", inside},
	{"/dbs/d/colls/c/conflicts/x", "DELETE", writes},
	{"/dbs/d/colls/c/conflicts/x", "POST QUERY PUT PATCH", owners + " key-all"},
}

// names are the names in the paths above.
var names = map[api.Resource]string{
	api.Databases: "d", api.Containers: "c", api.Items: "i", api.Ranges: "r", api.Offers: "d", api.Users: "u",
	api.Permissions: "p", api.EncryptionKeys: "k", api.Procedures: "s", api.Triggers: "t", api.UDFs: "f", api.Conflicts: "x",
}

// routesBelow returns the path of every kind of resource that the router knows.
func routesBelow(t *testing.T, kind api.Resource, path string) []string {
	var all []string
	for _, child := range children[kind] {
		name := names[child]
		if name == "" {
			t.Fatalf("the resource type %d has no name in this test, and no rows", child)
		}
		below := path + "/" + child.Word()
		all = append(all, below, below+"/"+name)
		all = append(all, routesBelow(t, child, below+"/"+name)...)
	}
	if kind == api.Containers {
		all = append(all, path+"/"+operationsSegment+"/"+operationDeleteKey)
	}
	return all
}

func methodsAt(path string) []string {
	methods := []string{"GET", "HEAD", "POST", "QUERY", "PUT", "PATCH", "DELETE"}
	if strings.HasSuffix(path, "/docs") {
		methods = append(methods, "PLAN", "UPSERT", "BULK", "BATCH", "CHANGES")
	}
	return methods
}

// TestAccess tries all possible requests, with and without a row in the table.
func TestAccess(t *testing.T) {
	var seen struct {
		sync.Mutex
		rows map[*api.Row]bool
	}
	seen.rows = map[*api.Row]bool{}
	t.Cleanup(func() {
		for _, row := range api.Rows {
			upsert := row.Verb == api.Upsert && row.Resource != api.Items // as a create, by the same path
			if !seen.rows[row] && !upsert && row.Verb != api.Position {   // which HTTP cannot ask for
				t.Errorf("%s was not tried: give it a method here", row.Name)
			}
		}
	})
	routes := append([]string{"/"}, routesBelow(t, api.AccountResource, "")...)
	rows := map[string]string{}
	for _, row := range access {
		for method := range strings.FieldsSeq(row.methods) {
			op := method + " " + row.path
			if _, twice := rows[op]; twice || !slices.Contains(routes, row.path) {
				t.Errorf("%s has two rows, or is no route", op)
			}
			rows[op] = row.allowed
		}
	}
	for _, path := range routes {
		for _, method := range methodsAt(path) {
			allowed, known := rows[method+" "+path]
			if !known {
				t.Errorf("nothing is said about %s %s: give it a row", method, path)
				continue
			}
			t.Run(method+" "+path, func(t *testing.T) {
				t.Parallel()
				row := tryAll(t, method, path, strings.Fields(allowed))
				seen.Lock()
				defer seen.Unlock()
				seen.rows[row] = true
			})
		}
	}
}

// tryAll makes a request with every credential, first with those that must be refused and
// must change nothing. A request without a row is refused with every credential.
func tryAll(t *testing.T, method, path string, allowed []string) *api.Row {
	w := newAccessWorld(t)
	r, _ := w.request(t, method, path)
	rt, _ := parseRoute(path)
	x := w.h.exchange(nil, r)
	x.fill(&rt)
	before := w.everything(t)
	for _, c := range credentials {
		if slices.Contains(allowed, c) {
			continue
		}
		if a := w.try(t, method, path, c); a.status != 401 && a.status != 403 && (a.status != 405 || x.Row != nil) {
			t.Errorf("%s is answered %d, want a refusal: %.300s", c, a.status, a.body)
		} else if method != "HEAD" {
			a.failureText(t, a.status, atoi(a.header.Get("x-ms-substatus")))
		}
	}
	if after := w.everything(t); after != before {
		t.Errorf("a refused request has changed something:\n%s\nwas\n%s", after, before)
	}
	for _, c := range credentials {
		if !slices.Contains(allowed, c) {
			continue
		}
		if a := w.try(t, method, path, c); a.status == 401 || a.status == 403 || (a.status == 405) != (x.Row == nil) {
			t.Errorf("%s is refused, or not refused: %d %.300s", c, a.status, a.body)
		}
	}
	return x.Row
}

func atoi(text string) int {
	n := 0
	for _, c := range text {
		n = n*10 + int(c-'0')
	}
	return n
}

// accessWorld is a database with resources of every kind, and tokens.
type accessWorld struct {
	h      *Handler
	tokens map[string]string
}

func newAccessWorld(t testing.TB) *accessWorld {
	t.Helper()
	w := &accessWorld{tokens: map[string]string{}}
	w.h = newTestHandlerWith(t, testHandlerOptions{keys: []string{testKey, secondKey}, readOnlyKeys: []string{readOnlyKey}})
	call(t, w.h, "POST", "/dbs", `{"id":"d"}`, nil, 201)
	call(t, w.h, "POST", "/dbs/d/colls", containerBody, nil, 201)
	call(t, w.h, "POST", "/dbs/d/colls", strings.Replace(containerBody, `"c"`, `"other"`, 1), nil, 201)
	call(t, w.h, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, pk("p"), 201)
	call(t, w.h, "POST", "/dbs/d/colls/c/docs", `{"id":"j","pk":"q"}`, pk("q"), 201)
	call(t, w.h, "POST", "/dbs/d/clientencryptionkeys", encryptionKeyBody, nil, 201)
	call(t, w.h, "POST", "/dbs/d/colls/c/udfs", `{"id":"f","body":"function () {}"}`, nil, 201)
	call(t, w.h, "POST", "/dbs/d/colls/c/sprocs", `{"id":"s","body":"function () { __.queryDocuments(__.getSelfLink(), 'SELECT * FROM c', function (err, all) { if (err) throw err; getContext().getResponse().setBody(all); }); }"}`, nil, 201)
	call(t, w.h, "POST", "/dbs/d/colls/c/triggers", `{"id":"t","body":"function () {}","triggerType":"Pre","triggerOperation":"All"}`, nil, 201)
	call(t, w.h, "POST", "/dbs/d/users", `{"id":"u"}`, nil, 201)
	for name, p := range map[string]string{
		"read":      `"permissionMode":"Read","resource":"dbs/d/colls/c"`,
		"all":       `"permissionMode":"All","resource":"dbs/d/colls/c"`,
		"item-read": `"permissionMode":"Read","resource":"dbs/d/colls/c/docs/i","resourcePartitionKey":["p"]`,
		"item-all":  `"permissionMode":"All","resource":"dbs/d/colls/c/docs/i","resourcePartitionKey":["p"]`,
		"key-read":  `"permissionMode":"Read","resource":"dbs/d/colls/c","resourcePartitionKey":["p"]`,
		"key-all":   `"permissionMode":"All","resource":"dbs/d/colls/c","resourcePartitionKey":["p"]`,
		"other-key": `"permissionMode":"All","resource":"dbs/d/colls/c","resourcePartitionKey":["q"]`,
		"elsewhere": `"permissionMode":"All","resource":"dbs/d/colls/other"`,
		"nowhere":   `"permissionMode":"All","resource":"dbs/d/colls/nosuch"`,
		"gone":      `"permissionMode":"All","resource":"dbs/d/colls/c"`,
	} {
		// One user may have one permission for a resource.
		call(t, w.h, "POST", "/dbs/d/users", `{"id":"`+name+`"}`, nil, 201)
		a := call(t, w.h, "POST", "/dbs/d/users/"+name+"/permissions", `{"id":"p",`+p+`}`, nil, 201)
		w.tokens[name] = decode[struct {
			Token string `json:"_token"`
		}](t, a).Token
	}
	call(t, w.h, "DELETE", "/dbs/d/users/gone/permissions/p", "", nil, 204)
	p, err := w.h.engine.Catalog().Find(catalog.Address{Kind: catalog.Permissions, Database: "d", User: "all", ID: "p"})
	if err != nil {
		t.Fatal(err)
	}
	w.tokens["expired"] = w.h.service.Token(p.(*catalog.Permission), time.Now().Add(-time.Second))
	w.tokens["garbled"] = strings.Replace(w.tokens["all"], ";", ";A", 1)
	return w
}

const encryptionKeyBody = `{"id":"k","encryptionAlgorithm":"AEAD_AES_256_CBC_HMAC_SHA256","wrappedDataEncryptionKey":"AAAA","keyWrapMetadata":{"type":"t","name":"n","value":"v","algorithm":"RSA-OAEP"}}`

// jwt returns a principal's token as SDKs make it for an emulator.
func jwt(key string, expires time.Time) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"typ":"JWT","alg":"RS256","kid":"CosmosEmulatorPrimaryMaster"}`)) + "." +
		part(fmt.Appendf(nil, `{"aud":"https://localhost.localhost","tid":"EmulatorFederation","nbf":%d,"exp":%d}`, expires.Unix()-7200, expires.Unix())) + "." +
		part([]byte(key))
}

// accessBodies are valid bodies for writes of each type.
var accessBodies = map[api.Resource]string{
	api.Items: `{"id":"i","pk":"p"}`, api.Containers: containerBody, api.EncryptionKeys: encryptionKeyBody,
	api.Permissions: `{"id":"p","permissionMode":"All","resource":"dbs/d/colls/c"}`,
}

// request makes a request. The caller replaces its signature.
func (w *accessWorld) request(t testing.TB, method, path string) (*http.Request, *route) {
	t.Helper()
	headers := pk("p")
	rt, ok := parseRoute(path)
	if !ok {
		t.Fatalf("%s is no route", path)
	}
	body := accessBodies[rt.kind]
	if body == "" {
		body = `{"id":"new","body":"function () {}"}`
	}
	switch method {
	case "QUERY":
		method, body, headers["Content-Type"] = "POST", `{"query":"SELECT * FROM c"}`, "application/query+json"
	case "PLAN":
		method, body, headers["x-ms-cosmos-is-query-plan-request"] = "POST", `{"query":"SELECT * FROM c"}`, "True"
	case "UPSERT":
		method, headers["x-ms-documentdb-is-upsert"] = "POST", "True"
	case "BATCH", "BULK":
		headers["x-ms-cosmos-batch-atomic"] = map[string]string{"BATCH": "True", "BULK": "False"}[method]
		method, body, headers["x-ms-cosmos-is-batch-request"] = "POST", `[{"operationType":"Create","resourceBody":{"id":"b","pk":"p"}}]`, "True"
	case "CHANGES":
		method, headers["a-im"] = "GET", "Incremental feed"
	}
	return signedRequest(t, method, path, []byte(body), headers), &rt
}

// try makes a request with a credential.
func (w *accessWorld) try(t testing.TB, method, path, credential string) answer {
	t.Helper()
	r, rt := w.request(t, method, path)
	sign := func(key string) string {
		return masterToken(clientSignature(t, key, r.Method, rt.kind.Word(), rt.link, r.Header.Get("X-Ms-Date"), ""))
	}
	var auth string
	switch credential {
	case "none":
		r.Header.Del("Authorization")
		return serve(w.h, r)
	case "strange":
		auth = sign(strangeKey)
	case "key":
		auth = sign(testKey)
	case "key2":
		auth = sign(secondKey)
	case "ro":
		auth = sign(readOnlyKey)
	case "aad":
		auth = "type=aad&ver=1.0&sig=" + jwt(testKey, time.Now().Add(time.Hour))
	case "aad-ro":
		auth = "type=aad&ver=1.0&sig=" + jwt(readOnlyKey, time.Now().Add(time.Hour))
	default:
		if auth = w.tokens[credential]; auth == "" {
			t.Fatalf("there is no credential %q", credential)
		}
	}
	r.Header.Set("Authorization", url.QueryEscape(auth))
	return serve(w.h, r)
}

// everything returns all that a request could change.
func (w *accessWorld) everything(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	for _, path := range []string{"/dbs", "/dbs/d/colls", "/dbs/d/colls/c/docs", "/dbs/d/colls/c/udfs", "/dbs/d/colls/c/sprocs", "/dbs/d/colls/c/triggers", "/dbs/d/users", "/dbs/d/clientencryptionkeys", "/offers"} {
		all.Write(call(t, w.h, "GET", path, "", nil, 200).body)
		all.WriteByte('\n')
	}
	list, err := w.h.engine.Catalog().List(catalog.Address{Kind: catalog.Permissions, Database: "d", User: "u"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list.All {
		all.Write(p.Common().Body)
	}
	return all.String()
}

// TestQueriesChangeNothing: a read-only key may query, so no request that is marked as a
// query may write, on any list.
func TestQueriesChangeNothing(t *testing.T) {
	w := newAccessWorld(t)
	before := w.everything(t)
	for _, path := range routesBelow(t, api.AccountResource, "") {
		rt, _ := parseRoute(path)
		if !rt.feed {
			continue
		}
		body := accessBodies[rt.kind]
		if body == "" {
			body = `{"id":"new","body":"function () {}"}`
		}
		body = strings.NewReplacer(`"id":"i"`, `"id":"new"`, `"id":"c"`, `"id":"new"`, `"id":"k"`, `"id":"new"`, `"id":"p"`, `"id":"new"`).Replace(body)
		for _, header := range []string{"x-ms-documentdb-isquery", "x-ms-documentdb-query", "x-ms-cosmos-is-query-plan-request", "Content-Type"} {
			if header == "x-ms-cosmos-is-query-plan-request" && rt.kind != api.Items {
				continue
			}
			headers := pk("p")
			headers[header] = "TRUE"
			if header == "Content-Type" {
				headers[header] = "Application/Query+JSON; charset=utf-8"
			}
			for _, more := range []string{"x-ms-documentdb-is-upsert", "x-ms-cosmos-is-batch-request"} {
				headers[more] = "true"
			}
			serve(w.h, signedRequest(t, "POST", path, []byte(body), headers))
			if after := w.everything(t); after != before {
				t.Fatalf("POST %s with %s has changed something:\n%s\nwas\n%s", path, header, after, before)
			}
		}
	}
}

// TestKeyScopedTokens: a token for one partition key allows nothing without that key in
// the header, and nothing of another key.
func TestKeyScopedTokens(t *testing.T) {
	w := newAccessWorld(t)
	docs := "/dbs/d/colls/c/docs"
	for _, c := range []struct {
		method, path, body, key string
		query                   bool
		want                    int
	}{
		{"GET", docs + "/i", "", `["p"]`, false, 200},
		{"GET", docs + "/i", "", ` [ "\u0070" ] `, false, 200},
		{"GET", docs + "/j", "", `["q"]`, false, 403},
		{"GET", docs + "/i", "", ``, false, 403},
		{"GET", docs + "/i", "", `[]`, false, 403},
		{"GET", docs + "/i", "", `[{}]`, false, 403},
		{"GET", docs + "/i", "", `["p","q"]`, false, 400}, // no key of this container
		{"GET", docs + "/i", "", `"p"`, false, 403},
		{"GET", docs + "/i", "", `["p"`, false, 403},
		{"GET", docs, "", `["p"]`, false, 200},
		{"GET", docs, "", ``, false, 403},
		{"GET", docs, "", `["q"]`, false, 403},
		{"POST", docs, `{"query":"SELECT * FROM c"}`, `["p"]`, true, 200},
		{"POST", docs, `{"query":"SELECT * FROM c"}`, ``, true, 403},
		{"POST", docs, `{"query":"SELECT * FROM c WHERE c.pk = 'p'"}`, ``, true, 403},
		{"POST", docs, `{"query":"SELECT * FROM c WHERE c.pk = 'q'"}`, `["p"]`, true, 200},
		{"POST", docs, `{"id":"n","pk":"p"}`, `["p"]`, false, 201},
		{"POST", docs, `{"id":"n","pk":"p"}`, ``, false, 403},
		{"POST", docs, `{"id":"n","pk":"q"}`, `["p"]`, false, 400},
		{"POST", docs, `{"id":"n","pk":"q"}`, `["q"]`, false, 403},
		{"PUT", docs + "/i", `{"id":"i","pk":"q"}`, `["p"]`, false, 400},
		{"DELETE", docs + "/j", ``, `["p"]`, false, 404},
	} {
		headers := map[string]string{"Authorization": url.QueryEscape(w.tokens["key-all"])}
		if c.key != "" {
			headers[headerPartitionKey] = c.key
		}
		if c.query {
			headers["Content-Type"] = "application/query+json"
			headers["x-ms-documentdb-query-enablecrosspartition"] = "true"
			headers["x-ms-documentdb-partitionkeyrangeid"] = "0"
		}
		a := serve(w.h, signedRequest(t, c.method, c.path, []byte(c.body), headers))
		if a.status != c.want {
			t.Errorf("%s %s %s with the key %s: %d, want %d: %s", c.method, c.path, c.body, c.key, a.status, c.want, a.body)
		}
		if a.status == 200 && strings.Contains(string(a.body), `"pk":"q"`) {
			t.Errorf("%s %s %s shows an item of another key: %s", c.method, c.path, c.body, a.body)
		}
	}
	call(t, w.h, "GET", docs+"/j", "", pk("q"), 200)
}

// TestKeyScopedContinuations: a continuation of a list, a query or the change feed that
// was given to a client with full access does not lead a token for one partition key
// beyond that key.
func TestKeyScopedContinuations(t *testing.T) {
	w := newAccessWorld(t)
	docs := "/dbs/d/colls/c/docs"
	for i := range 5 {
		for _, key := range []string{"p", "q"} {
			call(t, w.h, "POST", docs, fmt.Sprintf(`{"id":"%d","pk":"%s"}`, i, key), pk(key), 201)
		}
	}
	crossing := map[string]string{"Content-Type": "application/query+json", "x-ms-documentdb-query-enablecrosspartition": "true", "x-ms-documentdb-partitionkeyrangeid": "0"}
	for _, c := range []struct {
		method, body, position, again string
		headers                       map[string]string
	}{
		{"GET", "", "x-ms-continuation", "x-ms-continuation", nil},
		{"GET", "", "Etag", "If-None-Match", map[string]string{"A-IM": "Incremental Feed"}},
		{"POST", `{"query":"SELECT * FROM c"}`, "x-ms-continuation", "x-ms-continuation", crossing},
		{"POST", `{"query":"SELECT * FROM c ORDER BY c.id"}`, "x-ms-continuation", "x-ms-continuation", crossing},
	} {
		headers := map[string]string{"x-ms-max-item-count": "2"}
		maps.Copy(headers, c.headers)
		position := call(t, w.h, c.method, docs, c.body, headers, 200).header.Get(c.position)
		if position == "" {
			t.Fatalf("%s %s has one page only", c.method, c.body)
		}
		headers[c.again], headers["x-ms-max-item-count"] = position, "-1"
		headers["Authorization"] = url.QueryEscape(w.tokens["key-all"])
		call(t, w.h, c.method, docs, c.body, headers, 403)
		headers[headerPartitionKey] = `["p"]`
		a := serve(w.h, signedRequest(t, c.method, docs, []byte(c.body), headers))
		if a.status >= 500 || strings.Contains(string(a.body), `"pk":"q"`) {
			t.Errorf("%s %s %v from %s: %d %s", c.method, c.body, c.headers, position, a.status, a.body)
		}
	}
}

// TestKeyScopedBatches: no operation of a batch or a bulk leaves the partition key of
// the token.
func TestKeyScopedBatches(t *testing.T) {
	w := newAccessWorld(t)
	docs := "/dbs/d/colls/c/docs"
	for _, atomic := range []string{"True", "False"} {
		for _, op := range []string{
			`{"operationType":"Delete","id":"j","partitionKey":"[\"q\"]"}`,
			`{"operationType":"Read","id":"j","partitionKey":"[\"q\"]"}`,
			`{"operationType":"Upsert","resourceBody":{"id":"j","pk":"q","n":1},"partitionKey":"[\"q\"]"}`,
			`{"operationType":"Create","resourceBody":{"id":"n","pk":"q"}}`,
			`{"operationType":"Replace","id":"j","resourceBody":{"id":"j","pk":"q","n":1}}`,
			`{"operationType":"Patch","id":"j","partitionKey":"[\"q\"]","resourceBody":{"operations":[{"op":"set","path":"/n","value":1}]}}`,
		} {
			for _, key := range []string{`["p"]`, `["q"]`, ""} {
				headers := map[string]string{
					"Authorization": url.QueryEscape(w.tokens["key-all"]), "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": atomic,
					"x-ms-cosmos-batch-continue-on-error": "True", "x-ms-documentdb-partitionkeyrangeid": "0",
				}
				if key != "" {
					headers[headerPartitionKey] = key
				}
				a := serve(w.h, signedRequest(t, "POST", docs, []byte("["+op+"]"), headers))
				if strings.Contains(string(a.body), `"pk":"q"`) {
					t.Errorf("atomic %s, key %s: %s is answered %d %s", atomic, key, op, a.status, a.body)
				}
				if key != `["p"]` && a.status != 403 {
					t.Errorf("atomic %s, key %s: %s is answered %d, want 403", atomic, key, op, a.status)
				}
			}
		}
	}
	list := call(t, w.h, "GET", docs, "", pk("q"), 200)
	if docs := list.json(t)["Documents"].([]any); len(docs) != 1 || docs[0].(map[string]any)["n"] != nil {
		t.Errorf("the items of another key have changed: %s", list.body)
	}
}

// TestKeyScopedProcedures: a stored procedure sees the items of the token's key.
func TestKeyScopedProcedures(t *testing.T) {
	w := newAccessWorld(t)
	run := func(token, key string) answer {
		headers := pk(key)
		headers["Authorization"] = url.QueryEscape(w.tokens[token])
		return serve(w.h, signedRequest(t, "POST", "/dbs/d/colls/c/sprocs/s", []byte("[]"), headers))
	}
	if a := run("key-all", "p"); a.status != 200 || !strings.Contains(string(a.body), `"pk":"p"`) || strings.Contains(string(a.body), `"pk":"q"`) {
		t.Errorf("with the token's key: %d %s", a.status, a.body)
	}
	for _, c := range [][2]string{{"key-all", "q"}, {"key-read", "p"}, {"read", "p"}, {"item-all", "p"}} {
		if a := run(c[0], c[1]); a.status != 403 {
			t.Errorf("%s for the key %s: %d %s, want 403", c[0], c[1], a.status, a.body)
		}
	}
}

// TestTokensFollowTheirPermission: a change of a permission takes effect at once, and
// only for the container that the token was made for.
func TestTokensFollowTheirPermission(t *testing.T) {
	w := newAccessWorld(t)
	item, with := "/dbs/d/colls/c/docs/i", func(name string) map[string]string {
		h := pk("p")
		h["Authorization"] = url.QueryEscape(w.tokens[name])
		return h
	}
	permission := "/dbs/d/users/all/permissions/p"
	call(t, w.h, "PUT", item, `{"id":"i","pk":"p","n":1}`, with("all"), 200)
	call(t, w.h, "PUT", permission, `{"id":"p","permissionMode":"Read","resource":"dbs/d/colls/c"}`, nil, 200)
	call(t, w.h, "PUT", item, `{"id":"i","pk":"p","n":2}`, with("all"), 403)
	call(t, w.h, "GET", item, "", with("all"), 200)
	call(t, w.h, "PUT", permission, `{"id":"p","permissionMode":"All","resource":"dbs/d/colls/other"}`, nil, 200)
	call(t, w.h, "GET", item, "", with("all"), 403)
	call(t, w.h, "GET", "/dbs/d/colls/other", "", with("all"), 403)
	call(t, w.h, "PUT", permission, `{"id":"p","permissionMode":"All","resource":"dbs/d/colls/c"}`, nil, 200)
	call(t, w.h, "GET", item, "", with("all"), 200)
	// A container of the same name that was made later is another.
	call(t, w.h, "DELETE", "/dbs/d/colls/c", "", nil, 204)
	call(t, w.h, "GET", "/dbs/d/colls/c", "", with("all"), 403)
	call(t, w.h, "POST", "/dbs/d/colls", containerBody, nil, 201)
	call(t, w.h, "GET", "/dbs/d/colls/c", "", with("all"), 403)
	w.tokens["all"] = decode[struct {
		Token string `json:"_token"`
	}](t, call(t, w.h, "GET", permission, "", nil, 200)).Token
	call(t, w.h, "GET", "/dbs/d/colls/c", "", with("all"), 200)
	call(t, w.h, "DELETE", "/dbs/d/users/all", "", nil, 204)
	call(t, w.h, "GET", "/dbs/d/colls/c", "", with("all"), 403)
}

// TestNamesAreNotTakenForRIDs: a token for an item whose name is the rid of another item
// does not allow that other item.
func TestNamesAreNotTakenForRIDs(t *testing.T) {
	w := newAccessWorld(t)
	field := func(path, name string, headers map[string]string) string {
		return call(t, w.h, "GET", path, "", headers, 200).json(t)[name].(string)
	}
	rid := field("/dbs/d/colls/c/docs/j", "_rid", pk("q"))
	byRIDs := "/dbs/" + field("/dbs/d", "_rid", nil) + "/colls/" + field("/dbs/d/colls/c", "_rid", nil) + "/docs/" + rid
	call(t, w.h, "POST", "/dbs/d/colls/c/docs", `{"id":"`+rid+`","pk":"p"}`, pk("p"), 201)
	a := call(t, w.h, "POST", "/dbs/d/users/u/permissions", `{"id":"named","permissionMode":"All","resource":"dbs/d/colls/c/docs/`+rid+`"}`, nil, 201)
	headers := pk("p")
	headers["Authorization"] = url.QueryEscape(a.json(t)["_token"].(string))
	if got := call(t, w.h, "GET", "/dbs/d/colls/c/docs/"+rid, "", headers, 200).json(t)["pk"]; got != "p" {
		t.Errorf("by its name the item of the key p is %v", got)
	}
	for _, key := range []string{`["q"]`, `["p"]`, ""} {
		headers[headerPartitionKey] = key
		call(t, w.h, "GET", byRIDs, "", headers, 403)
	}
	a = call(t, w.h, "POST", "/dbs/d/users/u/permissions", `{"id":"numbered","permissionMode":"Read","resource":"`+byRIDs+`"}`, nil, 201)
	headers = map[string]string{"Authorization": url.QueryEscape(a.json(t)["_token"].(string))}
	if got := call(t, w.h, "GET", byRIDs, "", headers, 200).json(t)["id"]; got != "j" {
		t.Errorf("by its rid the item j is %v", got)
	}
	call(t, w.h, "DELETE", byRIDs, "", headers, 403)
}

// TestItemTokensWithoutKey: a permission for an item without a partition key allows the
// item with that id, and no other.
func TestItemTokensWithoutKey(t *testing.T) {
	w := newAccessWorld(t)
	a := call(t, w.h, "POST", "/dbs/d/users/u/permissions", `{"id":"any","permissionMode":"All","resource":"dbs/d/colls/c/docs/i"}`, nil, 201)
	headers := pk("p")
	headers["Authorization"] = url.QueryEscape(a.json(t)["_token"].(string))
	call(t, w.h, "GET", "/dbs/d/colls/c/docs/i", "", headers, 200)
	call(t, w.h, "GET", "/dbs/d/colls/c/docs", "", headers, 403)
	call(t, w.h, "POST", "/dbs/d/colls/c/docs", `{"id":"n","pk":"p"}`, headers, 403)
	call(t, w.h, "DELETE", "/dbs/d/colls/c/docs/i", "", headers, 204)
	headers[headerPartitionKey] = `["q"]`
	call(t, w.h, "GET", "/dbs/d/colls/c/docs/j", "", headers, 403)
}

// TestTokensAreForOneDatabase: a permission allows nothing outside of its user's
// database.
func TestTokensAreForOneDatabase(t *testing.T) {
	w := newAccessWorld(t)
	call(t, w.h, "POST", "/dbs", `{"id":"e"}`, nil, 201)
	call(t, w.h, "POST", "/dbs/e/users", `{"id":"u"}`, nil, 201)
	a := call(t, w.h, "POST", "/dbs/e/users/u/permissions", `{"id":"p","permissionMode":"All","resource":"dbs/d/colls/c"}`, nil, 201)
	token := decode[struct {
		Token string `json:"_token"`
	}](t, a).Token
	call(t, w.h, "GET", "/dbs/d/colls/c", "", map[string]string{"Authorization": url.QueryEscape(token)}, 403)
}

func TestTokenLifetime(t *testing.T) {
	w := newAccessWorld(t)
	path := "/dbs/d/users/read/permissions/p"
	for _, c := range []struct {
		seconds string
		want    time.Duration // 0 for a refusal
	}{
		{"", time.Hour}, {"10", 10 * time.Second}, {"18000", 5 * time.Hour}, {"86400", 24 * time.Hour},
		{"9", 0}, {"86401", 0}, {"0", 0}, {"-1", 0}, {"x", 0}, {"1.5", 0}, {"99999999999999999999", 0},
	} {
		headers := map[string]string{}
		if c.seconds != "" {
			headers["x-ms-documentdb-expiry-seconds"] = c.seconds
		}
		if c.want == 0 {
			text := call(t, w.h, "GET", path, "", headers, 400).failureText(t, 400, 0)
			if !strings.Contains(text, "x-ms-documentdb-expiry-seconds") {
				t.Errorf("%q seconds: the client is told %q", c.seconds, text)
			}
			continue
		}
		before := time.Now()
		a := call(t, w.h, "GET", path, "", headers, 200)
		text, _ := decode[map[string]any](t, a)["_token"].(string)
		payload, err := base64.StdEncoding.DecodeString(strings.Split(text+";;", ";")[1])
		if err != nil || len(payload) < 9 {
			t.Fatalf("%q: %v", text, err)
		}
		expires := time.Unix(int64(binary.BigEndian.Uint64(payload[1:])), 0)
		if expires.Before(before.Add(c.want).Truncate(time.Second)) || expires.After(time.Now().Add(c.want)) {
			t.Errorf("%q seconds: expires %v, want %v from %v", c.seconds, expires, c.want, before)
		}
	}
	// The database's time does not matter.
	if err := w.h.engine.Clock().Advance(365 * 24 * time.Hour); err != nil {
		t.Fatal(err)
	}
	headers := pk("p")
	headers["Authorization"] = url.QueryEscape(w.tokens["read"])
	call(t, w.h, "GET", "/dbs/d/colls/c/docs/i", "", headers, 200)
	headers["Authorization"] = url.QueryEscape(w.tokens["expired"])
	text := call(t, w.h, "GET", "/", "", headers, 403).failureText(t, 403, 0)
	if !strings.Contains(text, "not valid at the current time") {
		t.Errorf("with an expired token the client is told %q", text)
	}
}

func TestPrincipals(t *testing.T) {
	h := authorizer(t, testKey)
	now := time.Now()
	good := jwt(testKey, now.Add(time.Hour))
	parts := strings.Split(good, ".")
	part := base64.RawURLEncoding.EncodeToString
	for _, c := range []struct {
		jwt  string
		want error
	}{
		{good, nil},
		{parts[0] + "." + parts[1] + "." + base64.URLEncoding.EncodeToString([]byte(testKey)), nil},
		{jwt(strangeKey, now.Add(time.Hour)), api.ErrBadAuthorization},
		{jwt("", now.Add(time.Hour)), api.ErrBadAuthorization},
		{jwt(testKey, now.Add(-time.Hour)), api.ErrPrincipalDate},
		{jwt(testKey, now.Add(3*time.Hour)), api.ErrPrincipalDate}, // not valid yet
		{parts[0] + "." + part([]byte(`{}`)) + "." + parts[2], api.ErrPrincipalDate},
		{parts[0] + "." + part([]byte(`{"exp":"soon"}`)) + "." + parts[2], api.ErrBadAuthorization},
		{parts[0] + "." + part([]byte(`[`)) + "." + parts[2], api.ErrBadAuthorization},
		{parts[0] + ".?." + parts[2], api.ErrBadAuthorization},
		{parts[0] + "." + parts[1], api.ErrBadAuthorization},
		{good + ".", api.ErrBadAuthorization},
		{"", api.ErrBadAuthorization},
	} {
		r := &http.Request{Method: "GET", Header: http.Header{"Authorization": {"type=aad&ver=1.0&sig=" + c.jwt}}}
		g, err := h.authorize(r, &route{}, time.Now())
		if err != c.want || err == nil && g.By != api.ByPrincipal {
			t.Errorf("%q: %v, %v, want %v", c.jwt, g.By, err, c.want)
		}
	}
}
