// SPDX-License-Identifier: MIT

package compat

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// maxFeedPages bounds how often a feed is asked before it must say that nothing is
// new.
const maxFeedPages = 100

// changes reads a feed from an etag on until nothing is new, and returns what was and
// the last etag. This version of the SDK has no change feed: the requests are those
// that its next one sends.
func (s *server) changes(t *testing.T, link string, scope http.Header, etag string) (ids []string, last string) {
	t.Helper()
	header := scope.Clone()
	header["A-Im"], header["X-Ms-Max-Item-Count"] = []string{"Incremental Feed"}, []string{"3"}
	for range maxFeedPages {
		if etag != "" {
			header["If-None-Match"] = []string{etag}
		}
		res := s.request(t, "GET", "docs", link, link+"/docs", header, "")
		if etag = res.header.Get("Etag"); etag == "" || res.header.Get("X-Ms-Session-Token") == "" {
			t.Fatalf("a page of the feed, %d, has no etag or no session token", res.status)
		}
		switch res.status {
		case 304:
			return ids, etag
		case 200:
		default:
			t.Fatalf("got %d %v", res.status, res.body)
		}
		for _, item := range res.body["Documents"].([]any) {
			ids = append(ids, item.(map[string]any)["pk"].(string))
		}
	}
	t.Fatalf("the feed has no end after %d pages", maxFeedPages)
	return nil, ""
}

func TestChangeFeedByEffectivePartitionKeys(t *testing.T) {
	s := startMemory(t)
	ctx, d := limited(t), s.database(t)
	p := azcosmos.ContainerProperties{ID: "c", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2}}
	o := azcosmos.CreateContainerOptions{ThroughputProperties: to.Ptr(azcosmos.NewManualThroughputProperties(21000))}
	if _, err := d.CreateContainer(ctx, p, &o); err != nil {
		t.Fatal(err)
	}
	c, err := d.NewContainer("c")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 40 {
		pk := fmt.Sprintf("key%02d", i)
		want = append(want, pk)
		res, err := c.CreateItem(ctx, azcosmos.NewPartitionKeyString(pk), fmt.Appendf(nil, `{"id":"1","pk":%q}`, pk), nil)
		succeeded(t, "create", res.Response, err, 201)
	}
	link := "dbs/" + d.ID() + "/colls/c"
	ranges := s.request(t, "GET", "pkranges", link, link+"/pkranges", nil, "").body["PartitionKeyRanges"].([]any)
	var got []string
	for _, r := range ranges {
		r := r.(map[string]any)
		scope := http.Header{
			"X-Ms-Read-Key-Type": {"EffectivePartitionKeyRange"},
			"X-Ms-Start-Epk":     {r["minInclusive"].(string)}, "X-Ms-End-Epk": {r["maxExclusive"].(string)},
		}
		ids, etag := s.changes(t, link, scope, "")
		got = append(got, ids...)
		if again, _ := s.changes(t, link, scope, etag); len(again) > 0 {
			t.Errorf("after the end of the feed there is %q", again)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the ranges have %q, want %q", got, want)
	}
	whole, etag := s.changes(t, link, http.Header{}, "")
	if slices.Sort(whole); !slices.Equal(whole, want) {
		t.Errorf("the container has %q, want %q", whole, want)
	}
	res, err := c.UpsertItem(ctx, azcosmos.NewPartitionKeyString("key07"), []byte(`{"id":"1","pk":"key07","n":1}`), nil)
	succeeded(t, "upsert", res.Response, err, 200)
	if whole, _ = s.changes(t, link, http.Header{}, etag); !slices.Equal(whole, []string{"key07"}) {
		t.Errorf("after one write the container has %q, want key07 alone", whole)
	}
	gone := s.request(t, "GET", "docs", link, link+"/docs", http.Header{"A-Im": {"Incremental Feed"}, "X-Ms-Documentdb-Partitionkeyrangeid": {"17"}}, "")
	if gone.status != 410 || gone.header.Get("X-Ms-Substatus") != "1002" {
		t.Errorf("a range that is gone is answered %d/%s, want 410/1002", gone.status, gone.header.Get("X-Ms-Substatus"))
	}
}
