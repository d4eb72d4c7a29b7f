// SPDX-License-Identifier: MIT

package compat

import (
	"strconv"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestContainer(t *testing.T) {
	s, ctx := startMemory(t), limited(t)
	d := s.database(t)
	want := azcosmos.ContainerProperties{
		ID:                     "c",
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}},
		DefaultTimeToLive:      to.Ptr[int32](300),
		IndexingPolicy: &azcosmos.IndexingPolicy{
			Automatic: true, IndexingMode: azcosmos.IndexingModeConsistent,
			IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
			ExcludedPaths: []azcosmos.ExcludedPath{{Path: "/large/*"}},
		},
	}
	created, err := d.CreateContainer(ctx, want, nil)
	succeeded(t, "create", created.Response, err, 201)
	c, err := d.NewContainer(want.ID)
	if err != nil {
		t.Fatal(err)
	}
	read, err := c.Read(ctx, nil)
	succeeded(t, "read", read.Response, err, 200)
	checkContainer(t, read, want)
	if read.ETag != created.ETag || *read.ContainerProperties.ETag != read.ETag {
		t.Errorf("the etag is %v in the body and %q and %q in the headers", *read.ContainerProperties.ETag, read.ETag, created.ETag)
	}
	_, err = d.CreateContainer(ctx, want, nil)
	refused(t, "create again", err, conflict)

	changed := *read.ContainerProperties
	changed.DefaultTimeToLive = to.Ptr[int32](-1)
	replaced, err := c.Replace(ctx, changed, nil)
	succeeded(t, "replace", replaced.Response, err, 200)
	checkContainer(t, replaced, changed)
	if replaced.ETag == created.ETag {
		t.Error("replace kept the etag")
	}
	changed.DefaultTimeToLive = nil
	replaced, err = c.Replace(ctx, changed, nil)
	succeeded(t, "replace without a ttl", replaced.Response, err, 200)
	checkContainer(t, replaced, changed)

	changed.PartitionKeyDefinition.Paths = []string{"/other"}
	_, err = c.Replace(ctx, changed, nil)
	refused(t, "replace the partition key", err, badRequest("artition key"))
	deleted, err := c.Delete(ctx, nil)
	succeeded(t, "delete", deleted.Response, err, 204)
	_, err = c.Read(ctx, nil)
	refused(t, "read after delete", err, notFound)
}

func checkContainer(t *testing.T, res azcosmos.ContainerResponse, want azcosmos.ContainerProperties) {
	t.Helper()
	got := res.ContainerProperties
	if got.ID != want.ID || got.ResourceID == "" || got.SelfLink == "" || got.LastModified.Unix() == 0 {
		t.Errorf("got %+v", got)
	}
	if g, w := text(got.DefaultTimeToLive), text(want.DefaultTimeToLive); g != w {
		t.Errorf("got the default ttl %s, want %s", g, w)
	}
	key := got.PartitionKeyDefinition
	if len(key.Paths) != 1 || key.Paths[0] != want.PartitionKeyDefinition.Paths[0] || key.Kind != azcosmos.PartitionKeyKindHash {
		t.Errorf("got the partition key %+v", key)
	}
	excluded := map[string]bool{}
	for _, p := range got.IndexingPolicy.ExcludedPaths {
		excluded[p.Path] = true
	}
	if !excluded["/large/*"] || !excluded[`/"_etag"/?`] {
		t.Errorf("got the excluded paths %v", got.IndexingPolicy.ExcludedPaths)
	}
}

func text(n *int32) string {
	if n == nil {
		return "none"
	}
	return strconv.Itoa(int(*n))
}

func TestContainerDefinitionsThatAreRefused(t *testing.T) {
	d := startMemory(t).database(t)
	hash := azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}}
	for name, p := range map[string]azcosmos.ContainerProperties{
		"default ttl 0":       {ID: "c", PartitionKeyDefinition: hash, DefaultTimeToLive: to.Ptr[int32](0)},
		"default ttl -10":     {ID: "c", PartitionKeyDefinition: hash, DefaultTimeToLive: to.Ptr[int32](-10)},
		"no partition key":    {ID: "c"},
		"a key without slash": {ID: "c", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"pk"}}},
		"four levels":         {ID: "c", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/a", "/b", "/c", "/d"}, Version: 2}},
		"a name with ?":       {ID: "c?", PartitionKeyDefinition: hash},
		"ttl without index": {ID: "c", PartitionKeyDefinition: hash, DefaultTimeToLive: to.Ptr[int32](5),
			IndexingPolicy: &azcosmos.IndexingPolicy{IndexingMode: azcosmos.IndexingModeNone}},
	} {
		_, err := d.CreateContainer(limited(t), p, nil)
		refused(t, name, err, badRequest(""))
	}
}

func TestContainerOfMissingDatabase(t *testing.T) {
	s := startMemory(t)
	c, err := s.client(t, s.http()).NewContainer("missing", "c")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Read(limited(t), nil)
	refused(t, "read the container", err, notFound)
	_, err = c.ReadItem(limited(t), azcosmos.NewPartitionKeyString("a"), "1", nil)
	refused(t, "read an item", err, refusal{status: 404, code: "NotFound", subStatus: "1003", text: "Owner resource does not exist"})
}

func TestContainersAreListed(t *testing.T) {
	s := startMemory(t)
	d := s.database(t)
	container(t, d, azcosmos.ContainerProperties{})
	res := s.request(t, "GET", "colls", "dbs/"+d.ID(), "dbs/"+d.ID()+"/colls", nil, "")
	containers, _ := res.body["DocumentCollections"].([]any)
	if res.status != 200 || len(containers) != 1 || containers[0].(map[string]any)["id"] != "c" {
		t.Errorf("GET /dbs/%s/colls: %d %v", d.ID(), res.status, res.body)
	}
}
