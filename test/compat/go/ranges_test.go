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

// TestThroughputMakesRanges: the container's throughput decides into how many
// partitions it is split. The SDK reads the ranges only for queries, so this test
// asks for them itself.
func TestThroughputMakesRanges(t *testing.T) {
	s := startMemory(t)
	for name, x := range map[string]struct {
		throughput azcosmos.ThroughputProperties
		version    int
		want       []string // the lower ends
	}{
		"400":                   {azcosmos.NewManualThroughputProperties(400), 2, []string{""}},
		"21000, version 1":      {azcosmos.NewManualThroughputProperties(21000), 1, []string{"", "05C1CFFFFFFFF8", "05C1DFFFFFFFF8", "05C1E7FFFFFFFA"}},
		"11000, version 2":      {azcosmos.NewManualThroughputProperties(11000), 2, []string{"", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"}},
		"autoscale up to 20000": {azcosmos.NewAutoscaleThroughputProperties(20000), 2, []string{"", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := s.database(t)
			_, err := d.CreateContainer(limited(t), azcosmos.ContainerProperties{
				ID: "c", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: x.version},
			}, &azcosmos.CreateContainerOptions{ThroughputProperties: to.Ptr(x.throughput)})
			if err != nil {
				t.Fatal(err)
			}
			link := "dbs/" + d.ID() + "/colls/c"
			res := s.request(t, "GET", "pkranges", link, link+"/pkranges", nil, "")
			ranges, _ := res.body["PartitionKeyRanges"].([]any)
			var got []string
			upper := ""
			for _, r := range ranges {
				r := r.(map[string]any)
				got = append(got, r["minInclusive"].(string))
				if r["minInclusive"] != upper {
					t.Errorf("a range begins at %v, the one before it ends at %q", r["minInclusive"], upper)
				}
				upper = r["maxExclusive"].(string)
			}
			if res.status != 200 || !slices.Equal(got, x.want) || upper != "FF" {
				t.Errorf("got %d %q up to %q, want %q", res.status, got, upper, x.want)
			}
			again := s.request(t, "GET", "pkranges", link, link+"/pkranges", http.Header{
				"If-None-Match": {res.header.Get("Etag")}, "A-Im": {"Incremental Feed"},
			}, "")
			if again.status != 304 {
				t.Errorf("asked for changes, got %d, want 304", again.status)
			}
		})
	}
}

func TestItemsInSeveralRanges(t *testing.T) {
	ctx, d := limited(t), startMemory(t).database(t)
	p := azcosmos.ContainerProperties{ID: "c", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}}}
	o := azcosmos.CreateContainerOptions{ThroughputProperties: to.Ptr(azcosmos.NewManualThroughputProperties(21000))}
	if _, err := d.CreateContainer(ctx, p, &o); err != nil {
		t.Fatal(err)
	}
	c, err := d.NewContainer("c")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	const items = 100
	for i := range items {
		pk := fmt.Sprint("key", i)
		res, err := c.CreateItem(ctx, azcosmos.NewPartitionKeyString(pk), fmt.Appendf(nil, `{"id":"1","pk":%q}`, pk), nil)
		succeeded(t, "create", res.Response, err, 201)
		read, err := c.ReadItem(ctx, azcosmos.NewPartitionKeyString(pk), "1", &azcosmos.ItemOptions{SessionToken: res.SessionToken})
		succeeded(t, "read", read.Response, err, 200)
		seen[read.RawResponse.Header.Get("x-ms-documentdb-partitionkeyrangeid")]++
	}
	if len(seen) != 4 {
		t.Errorf("%d items went to the ranges %v, want all of four", items, seen)
	}
}

func TestThroughputThatIsRefused(t *testing.T) {
	d := startMemory(t).database(t)
	for _, ru := range []int32{-200, 0, 399, 450, 2_000_000} {
		_, err := d.CreateContainer(limited(t), azcosmos.ContainerProperties{
			ID: "c", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}},
		}, &azcosmos.CreateContainerOptions{ThroughputProperties: to.Ptr(azcosmos.NewManualThroughputProperties(ru))})
		refused(t, fmt.Sprint(ru, " RU/s"), err, badRequest("Requested throughput"))
	}
}
