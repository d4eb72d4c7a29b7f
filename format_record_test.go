// SPDX-License-Identifier: MIT

// Records a fixture of TestFormats: data with rows of every kind.

package mayfly

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pack makes an archive of the files in dir.
func pack(t *testing.T, dir, archive string) {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: f.Name(), Mode: 0o600, Size: int64(len(content))})
		}
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close(), os.WriteFile(archive, b.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// recordFixture writes data of today's format to testdata, with the answers of its
// server. The data has tables and a log: the server is restarted between the two parts of
// the writes, and its files are copied at the end while it still runs.
func recordFixture(t *testing.T, name string) {
	t.Helper()
	target := filepath.Join(formatsDir, name)
	if err := os.MkdirAll(target, 0o755); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	first, second := fixtureWrites()
	s := serveTest(t, Options{Dir: dir})
	s.postPurge(t, "pause")
	s.write(t, first)
	s.stop(t)
	s = serveTest(t, Options{Dir: dir})
	position := s.must(t, 304, "GET", "/dbs/shop/colls/orders/docs", "", map[string]string{
		"A-IM": "Full-Fidelity Feed", "If-None-Match": "*", "x-ms-documentdb-partitionkeyrangeid": "0",
	}).header.Get("Etag")
	s.write(t, second)
	time.Sleep(3 * time.Second) // until items with a ttl of a second have expired
	// The clock saves a time ahead of the last one that it returned.
	d := formatDialogue{AtMs: time.Now().Add(10 * time.Second).UnixMilli(), Exchanges: fixtureQuestions(s.containers(t), position)}
	for i, x := range d.Exchanges {
		x = s.ask(t, x)
		if d.Exchanges[i] = x; x.Status >= 400 && x.Status != 404 {
			t.Fatalf("%s %s %s: %d %s", x.Method, x.Path, x.Body, x.Status, x.Answer)
		}
	}
	pack(t, filepath.Join(dir, "db"), filepath.Join(target, "db.tar.gz"))
	raw, err := json.MarshalIndent(d, "", "	")
	if err == nil {
		err = os.WriteFile(filepath.Join(target, "answers.json"), append(raw, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// write makes requests that must succeed.
func (s *testServer) write(t *testing.T, requests []formatExchange) {
	t.Helper()
	for _, x := range requests {
		if x = s.ask(t, x); x.Status >= 300 {
			t.Fatalf("%s %s %s: %d %s", x.Method, x.Path, x.Body, x.Status, x.Answer)
		}
	}
}

// with returns a request with headers.
func with(method, path, body string, headers ...string) formatExchange {
	x := formatExchange{Method: method, Path: path, Body: body}
	for i := 0; i < len(headers); i += 2 {
		if x.Headers == nil {
			x.Headers = map[string]string{}
		}
		x.Headers[headers[i]] = headers[i+1]
	}
	return x
}

// put creates an item in a container of the database shop; key is its partition key.
func put(container, key, item string) formatExchange {
	return with("POST", "/dbs/shop/colls/"+container+"/docs", item, keyHeader, key)
}

// touch reads an item and restarts its countdown.
func touch(container, id, key string) formatExchange {
	return with("GET", "/dbs/shop/colls/"+container+"/docs/"+id, "", keyHeader, key, "x-mayfly-sliding-ttl", "0")
}

const keyHeader = "x-ms-documentdb-partitionkey"

// fixtureWrites are the requests that make the data, in two parts: the rows of the first
// end in tables, those of the second in the log.
func fixtureWrites() (first, second []formatExchange) {
	for _, db := range []string{"shop", "empty", "dropped"} {
		first = append(first, with("POST", "/dbs", `{"id":"`+db+`"}`))
	}
	first = append(first, with("POST", "/dbs", `{"id":"shared"}`, "x-ms-offer-throughput", "1000"))
	for _, definition := range []string{
		`{"id":"carts","partitionKey":{"paths":["/customer"],"kind":"Hash","version":2},"defaultTtl":1,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/email"]}]}}`,
		`{"id":"sessions","partitionKey":{"paths":["/id"],"kind":"Hash","version":2},"defaultTtl":-1}`,
		`{"id":"goods","partitionKey":{"paths":["/kind"],"kind":"Hash","version":1},"indexingPolicy":{"compositeIndexes":[[{"path":"/price","order":"ascending"},{"path":"/name","order":"descending"}]],` +
			`"spatialIndexes":[{"path":"/from/*","types":["Point"]}],"fullTextIndexes":[{"path":"/text"}],"vectorIndexes":[{"path":"/v","type":"flat"}]},` +
			`"vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dataType":"float32","dimensions":2,"distanceFunction":"euclidean"}]},` +
			`"fullTextPolicy":{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/text","language":"en-US"}]},` +
			`"computedProperties":[{"name":"lower","query":"SELECT VALUE LOWER(c.name) FROM c"}]}`,
		`{"id":"orders","partitionKey":{"paths":["/tenant","/user","/day"],"kind":"MultiHash","version":2},"defaultTtl":8640000,"changeFeedPolicy":{"retentionDuration":1440}}`,
		`{"id":"lazy","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"indexingPolicy":{"indexingMode":"lazy"}}`,
		`{"id":"unindexed","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"indexingPolicy":{"indexingMode":"none","automatic":false}}`,
		`{"id":"final","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":1,"ttlFinality":true}`,
		`{"id":"ends","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":-1,"expireAtPath":"/end","expireAtPast":"accept"}`,
		`{"id":"slides","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":8640000,"slidingTtlPercent":50,"slidingTtlInChangeFeed":true}`,
		`{"id":"dropped","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`,
	} {
		first = append(first, with("POST", "/dbs/shop/colls", definition))
	}
	first = append(first,
		with("POST", "/dbs/shop/colls", `{"id":"wide","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`, "x-ms-offer-throughput", "24000"),
		with("POST", "/dbs/shop/colls", `{"id":"auto","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`, "x-ms-cosmos-offer-autopilot-settings", `{"maxThroughput":4000}`),
		with("POST", "/dbs/shared/colls", `{"id":"one","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`),
		with("POST", "/dbs/shop/clientencryptionkeys", `{"id":"k","encryptionAlgorithm":"AEAD_AES_256_CBC_HMAC_SHA256","wrappedDataEncryptionKey":"AAEC","keyWrapMetadata":{"type":"t","name":"n","value":"v","algorithm":"RSA-OAEP"}}`),
		with("POST", "/dbs/shop/users", `{"id":"ada"}`),
		with("POST", "/dbs/shop/users", `{"id":"dropped"}`),
		with("POST", "/dbs/shop/users/ada/permissions", `{"id":"p","permissionMode":"Read","resource":"dbs/shop/colls/goods"}`),
		with("POST", "/dbs/shop/users/ada/permissions", `{"id":"q","permissionMode":"All","resource":"dbs/shop/colls/carts","resourcePartitionKey":["ada"]}`),
		with("POST", "/dbs/shop/colls/goods/udfs", `{"id":"twice","body":"function (x) { return x * 2 }"}`),
		with("POST", "/dbs/shop/colls/goods/sprocs", `{"id":"hello","body":"function (name) { getContext().getResponse().setBody('hello ' + name) }"}`),
		with("POST", "/dbs/shop/colls/goods/triggers", `{"id":"before","body":"function () {}","triggerType":"Pre","triggerOperation":"All"}`),
	)
	for part := range 2 {
		writes := []*[]formatExchange{&first, &second}[part]
		*writes = append(*writes, fixtureItems(fmt.Sprint(part))...)
	}
	second = append(second,
		with("PUT", "/dbs/shop/colls/lazy", `{"id":"lazy","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"indexingPolicy":{"indexingMode":"consistent"},"defaultTtl":-1}`),
		with("DELETE", "/dbs/shop/colls/dropped", ""),
		with("DELETE", "/dbs/shop/users/dropped", ""),
		with("DELETE", "/dbs/dropped", ""),
	)
	return first, second
}

// longKey is a partition key that takes more bytes than keys of rows have room for, with
// characters that are escaped there, and longID the longest id.
var (
	longKey = strings.Repeat("k", 1500) + strings.Repeat(`\u0000`, 50)
	longID  = strings.Repeat("i", 1022)
)

// fixtureItems are writes to items; n is the number of the part.
func fixtureItems(n string) []formatExchange {
	goods := "/dbs/shop/colls/goods/docs"
	writes := []formatExchange{
		put("carts", `["ada"]`, `{"id":"gone`+n+`","customer":"ada","email":"gone`+n+`"}`),
		put("carts", `["ada"]`, `{"id":"kept`+n+`","customer":"ada","email":"kept`+n+`","ttl":-1}`),
		put("carts", `["bob"]`, `{"id":"soon`+n+`","customer":"bob","email":"soon`+n+`","ttl":2592000}`),
		put("sessions", `["gone`+n+`"]`, `{"id":"gone`+n+`","ttl":1}`),
		put("sessions", `["kept`+n+`"]`, `{"id":"kept`+n+`"}`),
		put("sessions", `["soon`+n+`"]`, `{"id":"soon`+n+`","ttl":2592000}`),
		put("final", `["p"]`, `{"id":"gone`+n+`","pk":"p"}`),
		put("final", `["p"]`, `{"id":"kept`+n+`","pk":"p","ttl":-1}`),
		put("ends", `["p"]`, `{"id":"gone`+n+`","pk":"p","end":1}`),
		put("ends", `["p"]`, `{"id":"kept`+n+`","pk":"p","end":"9999-12-31T00:00:00Z"}`),
		put("ends", `["p"]`, `{"id":"soon`+n+`","pk":"p","ttl":-1}`),
		put("slides", `["p"]`, `{"id":"soon`+n+`","pk":"p"}`),
		put("slides", `["p"]`, `{"id":"kept`+n+`","pk":"p","ttl":-1}`),
		put("dropped", `["p"]`, `{"id":"gone`+n+`","pk":"p"}`),
		put("goods", `["tea"]`, `{"id":"odd`+n+`","kind":"tea","\u00e4\ud83d\ude00":[null,true,-0,1e300,0.1,{"":{}}],"spaces" : [ ] }`),
	}
	for _, id := range []string{"gone" + n, longID + n} {
		ttl := "1"
		if id != "gone"+n {
			ttl = "-1"
		}
		writes = append(writes,
			put("carts", `["`+longKey+`"]`, `{"id":"`+id+`","customer":"`+longKey+`","email":"`+id+`","ttl":`+ttl+`}`),
			put("goods", `["`+longKey+`"]`, `{"id":"`+id+`","kind":"`+longKey+`"}`),
			put("orders", `["`+longKey+`","u",null]`, `{"id":"`+id+`","tenant":"`+longKey+`","user":"u","day":null,"n":1,"ttl":`+ttl+`}`),
			put("lazy", `["`+longKey+n+`"]`, `{"id":"`+id+`","pk":"`+longKey+n+`"}`),
			put("wide", `["`+longKey+`"]`, `{"id":"`+id+`","pk":"`+longKey+`"}`),
			put("final", `["`+longKey+`"]`, `{"id":"`+id+`","pk":"`+longKey+`","ttl":`+ttl+`}`),
		)
	}
	for i, name := range []string{"Assam", "Ceylon", "Darjeeling", "Earl Grey"} {
		item := fmt.Sprintf(`{"id":"%s%s","kind":"tea","name":"%s","price":%d,"from":{"type":"Point","coordinates":[%d,20]},"v":[%d,1],"text":"a cup of %s in the morning"}`, name, n, name, i/2, 70+i, i, name)
		item = strings.Replace(item, "Earl Grey", "Earl", 1) // of the id: a path has no spaces
		writes = append(writes, put("goods", `["tea"]`, item))
	}
	for i := range 6 {
		pk := fmt.Sprintf("p%d", i%4)
		for _, container := range []string{"lazy", "unindexed", "wide", "auto"} {
			writes = append(writes, put(container, `["`+pk+`"]`, fmt.Sprintf(`{"id":"%s-%d","pk":"%s","n":%d}`, n, i, pk, i)))
		}
		order := fmt.Sprintf(`{"id":"%s-%d","tenant":"t%d","user":"u%d","day":%d,"n":1}`, n, i, i%2, i%3, i)
		writes = append(writes, put("orders", fmt.Sprintf(`["t%d","u%d",%d]`, i%2, i%3, i), order))
	}
	return append(writes,
		with("PUT", goods+"/Assam"+n, `{"id":"Assam`+n+`","kind":"tea","name":"Assam","price":9}`, keyHeader, `["tea"]`),
		with("PATCH", goods+"/Ceylon"+n, `{"operations":[{"op":"incr","path":"/price","value":5}]}`, keyHeader, `["tea"]`, "Content-Type", "application/json_patch+json"),
		with("DELETE", goods+"/Darjeeling"+n, "", keyHeader, `["tea"]`),
		with("PUT", "/dbs/shop/colls/orders/docs/"+n+"-1", `{"id":"`+n+`-1","tenant":"t1","user":"u1","day":1,"n":2}`, keyHeader, `["t1","u1",1]`),
		with("DELETE", "/dbs/shop/colls/lazy/docs/gone"+n, "", keyHeader, `["`+longKey+n+`"]`),
		with("DELETE", goods+"/gone"+n, "", keyHeader, `["`+longKey+`"]`),
		with("POST", "/dbs/shop/colls/wide/operations/partitionkeydelete", "", keyHeader, `["`+longKey+`"]`),
		with("PUT", "/dbs/shop/colls/orders/docs/"+longID+n, `{"id":"`+longID+n+`","tenant":"`+longKey+`","user":"u","day":null,"n":2}`, keyHeader, `["`+longKey+`","u",null]`),
		with("DELETE", "/dbs/shop/colls/orders/docs/"+n+"-2", "", keyHeader, `["t0","u2",2]`),
		put("orders", `["t0","u0",0]`, `{"id":"gone`+n+`","tenant":"t0","user":"u0","day":0,"ttl":1}`),
		with("POST", "/dbs/shop/colls/wide/operations/partitionkeydelete", "", keyHeader, `["p3"]`),
		with("POST", "/dbs/shop/colls/lazy/docs", `[{"operationType":"Create","resourceBody":{"id":"a`+n+`","pk":"b"}},{"operationType":"Upsert","resourceBody":{"id":"b`+n+`","pk":"b"}}]`,
			keyHeader, `["b"]`, "x-ms-cosmos-is-batch-request", "True", "x-ms-cosmos-batch-atomic", "True"),
		touch("slides", "soon"+n, `["p"]`), touch("sessions", "soon"+n, `["soon`+n+`"]`), touch("orders", n+"-0", `["t0","u0",0]`),
	)
}

// fixtureQuestions read everything back; position is where the feed of all versions
// of the orders began.
func fixtureQuestions(containers []string, position string) []formatExchange {
	qs := []formatExchange{
		with("GET", "/dbs", ""), with("GET", "/dbs/empty", ""), with("GET", "/dbs/dropped", ""), with("GET", "/offers", ""),
		with("GET", "/dbs/shop/colls", ""), with("GET", "/dbs/shared/colls", ""),
		with("GET", "/dbs/shop/clientencryptionkeys", ""), with("GET", "/dbs/shop/users", ""), with("GET", "/dbs/shop/users/ada/permissions", ""),
		with("GET", "/dbs/shop/colls/goods/udfs", ""), with("GET", "/dbs/shop/colls/goods/sprocs", ""), with("GET", "/dbs/shop/colls/goods/triggers", ""),
		with("POST", "/dbs/shop/colls/goods/sprocs/hello", `["ada"]`, keyHeader, `["tea"]`),
	}
	passing := map[string]bool{"/dbs/shop/colls/carts": true, "/dbs/shop/colls/sessions": true, "/dbs/shop/colls/orders": true, "/dbs/shop/colls/slides": true}
	for _, path := range containers {
		all := []formatExchange{with("GET", path+"/docs", "", "x-ms-max-item-count", "1000"), with("GET", path+"/docs", "", "A-IM", "Incremental Feed", "x-ms-max-item-count", "1000")}
		for i := range all {
			all[i].Passing = passing[path]
		}
		qs = append(append(qs, with("GET", path, ""), with("GET", path+"/pkranges", "")), all...)
	}
	for _, text := range []string{
		"SELECT * FROM c WHERE c.price >= 1",
		"SELECT VALUE c.id FROM c ORDER BY c.price, c.name DESC",
		"SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c['from'], {'type':'Point','coordinates':[71,20]}) < 200000",
		"SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, 'cup')",
		"SELECT TOP 2 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [2, 1])",
		"SELECT VALUE {l: c.lower, n: udf.twice(c.price)} FROM c WHERE c.lower = 'ceylon'",
		"SELECT VALUE COUNT(1) FROM c",
	} {
		qs = append(qs, query("goods", `["tea"]`, text))
	}
	for _, n := range []string{"0", "1"} {
		for _, item := range [][2]string{{"carts", "ada"}, {"carts", "bob"}, {"sessions", ""}, {"final", "p"}, {"ends", "p"}, {"slides", "p"}} {
			for _, id := range []string{"gone" + n, "kept" + n, "soon" + n} {
				key := item[1]
				if key == "" {
					key = id
				}
				x := with("GET", "/dbs/shop/colls/"+item[0]+"/docs/"+id, "", keyHeader, `["`+key+`"]`)
				x.Passing = id == "soon"+n
				qs = append(qs, x)
			}
		}
	}
	for _, n := range []string{"0", "1"} {
		for _, id := range []string{"gone" + n, longID + n} {
			for _, item := range [][2]string{{"carts", longKey}, {"goods", longKey}, {"lazy", longKey + n}, {"wide", longKey}, {"final", longKey}} {
				qs = append(qs, with("GET", "/dbs/shop/colls/"+item[0]+"/docs/"+id, "", keyHeader, `["`+item[1]+`"]`))
			}
		}
		qs = append(qs, query("goods", `["`+longKey+`"]`, "SELECT VALUE c.id FROM c"), query("lazy", `["`+longKey+n+`"]`, "SELECT VALUE c.id FROM c"))
	}
	qs = append(qs, with("GET", "/dbs/shop/colls/carts/docs", "", keyHeader, `["`+longKey+`"]`, "A-IM", "Incremental Feed"))
	versions := with("GET", "/dbs/shop/colls/orders/docs", "", "A-IM", "Full-Fidelity Feed", "If-None-Match", position, "x-ms-documentdb-partitionkeyrangeid", "0",
		"x-ms-cosmos-changefeed-wire-format-version", "2021-09-15")
	prefix := query("orders", `["t1"]`, "SELECT * FROM c WHERE c.n > 0 ORDER BY c.day DESC")
	versions.Passing, prefix.Passing = true, true
	return append(qs, versions, prefix, query("lazy", `["p1"]`, "SELECT * FROM c WHERE c.n > 2"), query("wide", `["p1"]`, "SELECT * FROM c WHERE c.n > 2"),
		query("unindexed", `["p1"]`, "SELECT * FROM c WHERE c.n > 2"))
}

// query returns a query of one partition key.
func query(container, key, text string) formatExchange {
	return with("POST", "/dbs/shop/colls/"+container+"/docs", `{"query":"`+text+`"}`, keyHeader, key,
		"x-ms-documentdb-isquery", "True", "Content-Type", "application/query+json", "x-ms-max-item-count", "1000")
}
