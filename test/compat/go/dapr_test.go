// SPDX-License-Identifier: MIT

package compat

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// everyPartition sends a query for the partition key true to all partitions.
type everyPartition struct{}

func (everyPartition) Do(r *policy.Request) (*http.Response, error) {
	if h := r.Raw().Header; h.Get("x-ms-documentdb-partitionkey") == "[true]" && h.Get("x-ms-documentdb-query") != "" {
		h.Set("x-ms-documentdb-query-enablecrosspartition", "true")
		h.Del("x-ms-documentdb-partitionkey")
	}
	return r.Next()
}

// Dapr's state store for Cosmos DB is this SDK with calls of its own choice. These are they, as
// its source has them: items with empty system properties, expiry by ttl, etags that there
// cannot be for a first write, queries of all partitions, and transactions.
func TestCallsOfDapr(t *testing.T) {
	s := startMemory(t)
	s.freeze(t)
	d := s.database(t)
	if _, err := d.CreateContainer(limited(t), azcosmos.ContainerProperties{
		ID: "state", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/partitionKey"}, Version: 2}, DefaultTimeToLive: to.Ptr[int32](-1),
	}, &azcosmos.CreateContainerOptions{ThroughputProperties: to.Ptr(azcosmos.NewManualThroughputProperties(21000))}); err != nil {
		t.Fatal(err)
	}
	key, err := azcosmos.NewKeyCredential(wellKnownKey)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azcosmos.NewClientWithKey(s.http(), key, &azcosmos.ClientOptions{ClientOptions: policy.ClientOptions{PerCallPolicies: []policy.Policy{everyPartition{}}}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewContainer(d.ID(), "state")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(limited(t), nil); err != nil { // at its start
		t.Fatal(err)
	}
	ctx := limited(t)
	body := func(id, key string, ttl int) []byte {
		expiry := ""
		if ttl != 0 {
			expiry = fmt.Sprintf(`"ttl":%d,`, ttl)
		}
		return fmt.Appendf(nil, `{"id":%q,"value":{"goods":["tea"]},"isBinary":false,"partitionKey":%q,%s"_etag":"","_ts":0}`, id, key, expiry)
	}
	set := func(id string, ttl int, match string) (azcosmos.ItemResponse, error) {
		o := &azcosmos.ItemOptions{ConsistencyLevel: azcosmos.ConsistencyLevelSession.ToPtr()}
		if match != "" {
			o.IfMatchEtag = to.Ptr(azcore.ETag(match))
		}
		return c.UpsertItem(ctx, azcosmos.NewPartitionKeyString(id), body(id, id, ttl), o)
	}
	for _, id := range []string{"app||1", "app||2", "app||3"} {
		res, err := set(id, 0, "")
		succeeded(t, "set "+id, res.Response, err, http.StatusCreated)
	}
	res, err := set("app||brief", 10, "")
	succeeded(t, "set with ttlInSeconds", res.Response, err, http.StatusCreated)

	// The state, its etag, and when it was written.
	read, err := c.ReadItem(ctx, azcosmos.NewPartitionKeyString("app||brief"), "app||brief", nil)
	succeeded(t, "get", read.Response, err, http.StatusOK)
	item := decode(t, read.Value)
	if item["ttl"] != 10.0 || item["_ts"].(float64) < 1 || item["_etag"] == "" || item["value"].(map[string]any)["goods"] == nil {
		t.Errorf("the state is %v", item)
	}

	// With an etag, and for a first write with one that no item has.
	res, err = set("app||1", 0, "00000000-0000-0000-0000-000000000000")
	refused(t, "set with another etag", err, precondition)
	read, err = c.ReadItem(ctx, azcosmos.NewPartitionKeyString("app||1"), "app||1", nil)
	succeeded(t, "get", read.Response, err, http.StatusOK)
	res, err = set("app||1", 0, decode(t, read.Value)["_etag"].(string))
	succeeded(t, "set with its etag", res.Response, err, http.StatusOK)
	res, err = set("app||first", 0, "00000000-0000-0000-0000-000000000000")
	succeeded(t, "a first write", res.Response, err, http.StatusCreated)

	// Several at once, of all partitions.
	found := func() []string {
		var ids []string
		for _, row := range query(t, c, "SELECT * FROM r WHERE ARRAY_CONTAINS(@keys, r.id)", azcosmos.NewPartitionKeyBool(true),
			azcosmos.QueryParameter{Name: "@keys", Value: []string{"app||1", "app||3", "app||brief", "app||none"}}) {
			ids = append(ids, decode(t, []byte(row))["id"].(string))
		}
		slices.Sort(ids)
		return ids
	}
	sameRows(t, "bulk get", found(), "app||1", "app||3", "app||brief")
	s.advance(t, 10*time.Second)
	sameRows(t, "bulk get after ten seconds", found(), "app||1", "app||3")

	// A transaction, with a key for all of it.
	b := c.NewTransactionalBatch(azcosmos.NewPartitionKeyString("cart"))
	b.UpsertItem(body("app||a", "cart", 0), &azcosmos.TransactionalBatchItemOptions{})
	b.UpsertItem(body("app||b", "cart", 5), &azcosmos.TransactionalBatchItemOptions{})
	b.DeleteItem("app||a", &azcosmos.TransactionalBatchItemOptions{})
	done, err := c.ExecuteTransactionalBatch(ctx, b, nil)
	succeeded(t, "transaction", done.Response, err, http.StatusOK)
	if got := statuses(done); !done.Success || got != "[201 201 204]" {
		t.Errorf("the transaction has %s", got)
	}

	deleted, err := c.DeleteItem(ctx, azcosmos.NewPartitionKeyString("app||2"), "app||2", nil)
	succeeded(t, "delete", deleted.Response, err, http.StatusNoContent)
	_, err = c.DeleteItem(ctx, azcosmos.NewPartitionKeyString("app||2"), "app||2", nil)
	refused(t, "delete again", err, notFound)
}
