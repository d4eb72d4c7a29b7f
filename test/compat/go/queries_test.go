// SPDX-License-Identifier: MIT

package compat

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// everywhere is the partition key of a query that is about no one of them.
var everywhere = azcosmos.NewPartitionKey()

// pages runs a query to its end and returns the rows of each page.
func pages(t *testing.T, c *azcosmos.ContainerClient, query string, key azcosmos.PartitionKey, o *azcosmos.QueryOptions) [][]string {
	t.Helper()
	const most = 1000
	var all [][]string
	pager := c.NewQueryItemsPager(query, key, o)
	for pager.More() {
		page, err := pager.NextPage(limited(t))
		succeeded(t, query, page.Response, err, 200)
		rows := make([]string, len(page.Items))
		for i, item := range page.Items {
			rows[i] = string(item)
		}
		if all = append(all, rows); len(all) > most {
			t.Fatalf("%s: no end after %d pages", query, most)
		}
	}
	return all
}

// query runs a query and returns its rows as JSON.
func query(t *testing.T, c *azcosmos.ContainerClient, text string, key azcosmos.PartitionKey, parameters ...azcosmos.QueryParameter) []string {
	t.Helper()
	return slices.Concat(pages(t, c, text, key, &azcosmos.QueryOptions{QueryParameters: parameters})...)
}

func sameRows(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// numbered creates items 1 to n with the partition key "a".
func numbered(t *testing.T, c *azcosmos.ContainerClient, n int) {
	t.Helper()
	for i := 1; i <= n; i++ {
		body := fmt.Appendf(nil, `{"id":"%d","pk":"a","n":%d,"odd":%t,"tags":["t%d","all"]}`, i, i, i%2 == 1, i)
		if _, err := c.CreateItem(limited(t), keyA, body, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestQueryOfOnePartitionKey(t *testing.T) {
	c := container(t, startMemory(t).database(t), azcosmos.ContainerProperties{})
	numbered(t, c, 5)
	if _, err := c.CreateItem(limited(t), azcosmos.NewPartitionKeyString("b"), []byte(`{"id":"1","pk":"b","n":100}`), nil); err != nil {
		t.Fatal(err)
	}
	all := query(t, c, "SELECT * FROM c", keyA)
	if len(all) != 5 {
		t.Fatalf("got %d items, want 5: %q", len(all), all)
	}
	for i, row := range all { // in the order of their creation
		item := decode(t, []byte(row))
		if item["id"] != fmt.Sprint(i+1) || item["_etag"] == nil || item["_rid"] == nil || item["_ts"] == nil {
			t.Errorf("item %d is %s", i, row)
		}
	}
	for text, want := range map[string][]string{
		"SELECT VALUE c.n FROM c WHERE c.odd":                              {"1", "3", "5"},
		"SELECT VALUE c.n FROM c WHERE c.n > 2 AND NOT c.odd":              {"4"},
		"SELECT VALUE c.n FROM c ORDER BY c.n DESC":                        {"5", "4", "3", "2", "1"},
		"SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n":                       {"1", "2"},
		"SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 1 LIMIT 2":            {"2", "3"},
		"SELECT VALUE COUNT(1) FROM c":                                     {"5"},
		"SELECT VALUE SUM(c.n) FROM c WHERE c.odd":                         {"9"},
		"SELECT VALUE AVG(c.n) FROM c":                                     {"3"},
		"SELECT DISTINCT VALUE c.odd FROM c":                               {"true", "false"},
		"SELECT c.odd, COUNT(1) AS k FROM c WHERE c.n != 3 GROUP BY c.odd": {`{"odd":false,"k":2}`, `{"odd":true,"k":2}`},
		"SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.n = 2":             {`"t2"`, `"all"`},
		"SELECT c.id, c.n * 10 AS ten FROM c WHERE c.id = '3'":             {`{"id":"3","ten":30}`},
		"SELECT VALUE UPPER(c.tags[0]) FROM c WHERE c.n = 1":               {`"T1"`},
		"SELECT * FROM c WHERE c.n = 100":                                  nil,
	} {
		sameRows(t, text, query(t, c, text, keyA), want...)
	}
}

func TestQueryParameters(t *testing.T) {
	c := container(t, startMemory(t).database(t), azcosmos.ContainerProperties{})
	numbered(t, c, 5)
	sameRows(t, "a number", query(t, c, "SELECT VALUE c.n FROM c WHERE c.n >= @least", keyA,
		azcosmos.QueryParameter{Name: "@least", Value: 4}), "4", "5")
	sameRows(t, "a string", query(t, c, "SELECT VALUE c.n FROM c WHERE ARRAY_CONTAINS(c.tags, @tag)", keyA,
		azcosmos.QueryParameter{Name: "@tag", Value: "t3"}), "3")
	sameRows(t, "two of them", query(t, c, "SELECT VALUE c.n FROM c WHERE c.odd = @odd AND c.n < @limit", keyA,
		azcosmos.QueryParameter{Name: "@odd", Value: false}, azcosmos.QueryParameter{Name: "@limit", Value: 3}), "2")
	sameRows(t, "a list", query(t, c, "SELECT VALUE c.n FROM c WHERE ARRAY_CONTAINS(@list, c.id)", keyA,
		azcosmos.QueryParameter{Name: "@list", Value: []string{"1", "5", "9"}}), "1", "5")
	sameRows(t, "what looks like more", query(t, c, "SELECT VALUE c.n FROM c WHERE c.id = @id", keyA,
		azcosmos.QueryParameter{Name: "@id", Value: "1' OR '1' = '1"}))
}

func TestQueryPages(t *testing.T) {
	c := container(t, startMemory(t).database(t), azcosmos.ContainerProperties{})
	numbered(t, c, 7)
	for _, text := range []string{
		"SELECT VALUE c.n FROM c", "SELECT VALUE c.n FROM c ORDER BY c.n", "SELECT VALUE c.n FROM c WHERE c.n > 0",
		"SELECT TOP 7 VALUE c.n FROM c", "SELECT VALUE c.n FROM c OFFSET 0 LIMIT 7", "SELECT VALUE c.n FROM c GROUP BY c.n",
	} {
		for _, size := range []int32{1, 3, 7, 100, -1} {
			got := pages(t, c, text, keyA, &azcosmos.QueryOptions{PageSizeHint: size})
			for _, page := range got {
				if size > 0 && len(page) > int(size) {
					t.Errorf("%s: a page of %d rows, asked for %d", text, len(page), size)
				}
			}
			sameRows(t, fmt.Sprintf("%s in pages of %d", text, size), slices.Concat(got...), "1", "2", "3", "4", "5", "6", "7")
		}
	}

	// A client may go on later, with nothing but the continuation.
	first, err := c.NewQueryItemsPager("SELECT VALUE c.n FROM c ORDER BY c.n DESC", keyA, &azcosmos.QueryOptions{PageSizeHint: 3}).NextPage(limited(t))
	succeeded(t, "first page", first.Response, err, 200)
	if first.ContinuationToken == nil || len(first.Items) != 3 {
		t.Fatalf("the first page has %d rows, and the continuation %v", len(first.Items), first.ContinuationToken)
	}
	if _, err := c.CreateItem(limited(t), keyA, []byte(`{"id":"8","pk":"a","n":8}`), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.DeleteItem(limited(t), keyA, "5", nil); err != nil { // the last row of that page
		t.Fatal(err)
	}
	rest := pages(t, c, "SELECT VALUE c.n FROM c ORDER BY c.n DESC", keyA, &azcosmos.QueryOptions{ContinuationToken: first.ContinuationToken})
	sameRows(t, "after the first page", slices.Concat(rest...), "4", "3", "2", "1")

	_, err = c.NewQueryItemsPager("SELECT * FROM c", keyA, &azcosmos.QueryOptions{ContinuationToken: to.Ptr("garbage")}).NextPage(limited(t))
	refused(t, "a continuation that is none", err, badRequest("Invalid Continuation Token"))
}

// TestQueryOfSeveralPartitions: the SDK leaves all to the server, which filters and
// projects, and refuses what the client would have to put together.
func TestQueryOfSeveralPartitions(t *testing.T) {
	ctx, d := limited(t), startMemory(t).database(t)
	p := azcosmos.ContainerProperties{ID: "c", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2}}
	o := azcosmos.CreateContainerOptions{ThroughputProperties: to.Ptr(azcosmos.NewManualThroughputProperties(21000))}
	if _, err := d.CreateContainer(ctx, p, &o); err != nil {
		t.Fatal(err)
	}
	c, err := d.NewContainer("c")
	if err != nil {
		t.Fatal(err)
	}
	const items = 40
	for i := range items {
		pk := fmt.Sprint("key", i)
		if _, err := c.CreateItem(ctx, azcosmos.NewPartitionKeyString(pk), fmt.Appendf(nil, `{"id":"1","pk":%q,"n":%d}`, pk, i), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []int32{1, 7, 100} {
		got := slices.Concat(pages(t, c, "SELECT VALUE c.pk FROM c WHERE c.n >= 10", everywhere, &azcosmos.QueryOptions{PageSizeHint: size})...)
		slices.Sort(got)
		if len(got) != items-10 || len(slices.Compact(got)) != items-10 {
			t.Errorf("in pages of %d: %d rows, want %d different ones", size, len(got), items-10)
		}
	}
	sameRows(t, "a filter that names the key", query(t, c, "SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'key7'", everywhere), "1")

	directly := refusal{status: 400, code: "BadRequest", subStatus: "1004", text: "can not be directly served by the gateway"}
	for _, text := range []string{
		"SELECT * FROM c ORDER BY c.n", "SELECT TOP 3 * FROM c", "SELECT * FROM c OFFSET 1 LIMIT 2", "SELECT DISTINCT c.n FROM c",
		"SELECT VALUE COUNT(1) FROM c", "SELECT VALUE MAX(c.n) FROM c", "SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n",
	} {
		_, err := c.NewQueryItemsPager(text, everywhere, nil).NextPage(ctx)
		refused(t, text, err, directly)
	}
	_, err = c.NewQueryItemsPager("SELECT * FROM c", everywhere, &azcosmos.QueryOptions{EnableCrossPartitionQuery: to.Ptr(false)}).NextPage(ctx)
	refused(t, "without leave", err, badRequest("Cross partition query is required but disabled"))
}

func TestQueryMetrics(t *testing.T) {
	c := container(t, startMemory(t).database(t), azcosmos.ContainerProperties{})
	numbered(t, c, 3)
	page, err := c.NewQueryItemsPager("SELECT * FROM c WHERE c.odd", keyA, &azcosmos.QueryOptions{PopulateIndexMetrics: true}).NextPage(limited(t))
	succeeded(t, "query", page.Response, err, 200)
	if page.QueryMetrics == nil || !strings.Contains(*page.QueryMetrics, "outputDocumentCount=2;") {
		t.Errorf("the metrics are %v", page.QueryMetrics)
	}
	if page.IndexMetrics == nil {
		t.Fatal("there are no index metrics")
	}
	raw, err := base64.StdEncoding.DecodeString(*page.IndexMetrics)
	if err != nil {
		t.Fatalf("the index metrics %q: %v", *page.IndexMetrics, err)
	}
	if index := decode(t, raw); index["UtilizedSingleIndexes"] == nil || index["PotentialSingleIndexes"] == nil {
		t.Errorf("the index metrics are %s", raw)
	}
}

func TestQueriesThatAreRefused(t *testing.T) {
	c := container(t, startMemory(t).database(t), azcosmos.ContainerProperties{})
	for text, want := range map[string]string{
		"SELEC * FROM c":                           "incorrect syntax near 'SELEC'",
		"SELECT * FROM c WHERE":                    "unexpected end-of-file",
		"SELECT * FROM c WHERE d.x = 1":            "Identifier 'd' could not be resolved.",
		"SELECT NOSUCH(c.x) FROM c":                "'NOSUCH' is not a recognized built-in function name.",
		"SELECT * FROM c ORDER BY c.a, c.b":        "does not have a corresponding composite index",
		"SELECT c.a, COUNT(1) FROM c GROUP BY c.b": "Property reference 'c.a' is invalid in the select list",
	} {
		_, err := c.NewQueryItemsPager(text, keyA, nil).NextPage(limited(t))
		refused(t, text, err, badRequest(want))
	}
}

func TestQueriesDoNotSeeTheExpired(t *testing.T) {
	x := startTTL(t, to.Ptr[int32](5))
	x.upsert(`{"id":"short","pk":"a","n":1}`)
	x.upsert(`{"id":"long","pk":"a","n":2,"ttl":10}`)
	x.s.advance(t, 5*time.Second-tick)
	sameRows(t, "before", query(t, x.c, "SELECT VALUE COUNT(1) FROM c", keyA), "2")
	x.s.advance(t, tick)
	sameRows(t, "counted", query(t, x.c, "SELECT VALUE COUNT(1) FROM c", keyA), "1")
	sameRows(t, "ordered", query(t, x.c, "SELECT VALUE c.id FROM c ORDER BY c.n", keyA), `"long"`)
	sameRows(t, "by its property", query(t, x.c, "SELECT VALUE c.id FROM c WHERE c.n = 1", keyA))
	x.s.advance(t, 5*time.Second)
	sameRows(t, "counted at the end", query(t, x.c, "SELECT VALUE COUNT(1) FROM c", keyA), "0")
}

func TestQueriesOfDatabasesAndContainers(t *testing.T) {
	s := startMemory(t)
	d := s.database(t)
	container(t, d, azcosmos.ContainerProperties{})
	byID := &azcosmos.QueryDatabasesOptions{QueryParameters: []azcosmos.QueryParameter{{Name: "@id", Value: d.ID()}}}
	databases, err := s.client(t, s.http()).NewQueryDatabasesPager("SELECT * FROM c WHERE c.id = @id", byID).NextPage(limited(t))
	succeeded(t, "query databases", databases.Response, err, 200)
	if len(databases.Databases) != 1 || databases.Databases[0].ID != d.ID() {
		t.Errorf("got the databases %v, want %s", databases.Databases, d.ID())
	}
	containers, err := d.NewQueryContainersPager("SELECT * FROM c", nil).NextPage(limited(t))
	succeeded(t, "query containers", containers.Response, err, 200)
	if len(containers.Containers) != 1 || containers.Containers[0].ID != "c" {
		t.Errorf("got the containers %v, want c", containers.Containers)
	}
	_, err = d.NewQueryContainersPager("SELECT * FROM", nil).NextPage(limited(t))
	refused(t, "half a query", err, badRequest("unexpected end-of-file"))
}
