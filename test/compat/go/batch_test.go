// SPDX-License-Identifier: MIT

package compat

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// withBodies makes the SDK ask for items in answer to the writes of a batch.
var withBodies = &azcosmos.TransactionalBatchOptions{EnableContentResponseOnWrite: true}

// statuses are those of a batch's operations.
func statuses(r azcosmos.TransactionalBatchResponse) string {
	var all []int32
	for _, o := range r.OperationResults {
		all = append(all, o.StatusCode)
	}
	return fmt.Sprint(all)
}

func TestTransactionalBatch(t *testing.T) {
	ctx := limited(t)
	c := container(t, startMemory(t).database(t), azcosmos.ContainerProperties{})
	for _, id := range []string{"1", "2", "3"} {
		if _, err := c.CreateItem(ctx, keyA, []byte(`{"id":"`+id+`","pk":"a","n":1}`), nil); err != nil {
			t.Fatal(err)
		}
	}
	b := c.NewTransactionalBatch(keyA)
	b.CreateItem([]byte(`{"id":"4","pk":"a","n":4}`), nil)
	b.ReadItem("1", nil)
	b.ReplaceItem("1", []byte(`{"id":"1","pk":"a","n":2}`), nil)
	b.UpsertItem([]byte(`{"id":"5","pk":"a","n":5}`), nil)
	b.DeleteItem("2", nil)
	p := azcosmos.PatchOperations{}
	p.SetCondition("from c where c.n = 2")
	p.AppendIncrement("/n", 40)
	b.PatchItem("1", p, nil)
	res, err := c.ExecuteTransactionalBatch(ctx, b, withBodies)
	succeeded(t, "batch", res.Response, err, http.StatusOK)
	if got, want := statuses(res), "[201 200 200 201 204 200]"; got != want || !res.Success || res.SessionToken == "" {
		t.Fatalf("got %s, success %v, session %q, want %s", got, res.Success, res.SessionToken, want)
	}
	if n := decode(t, res.OperationResults[5].ResourceBody)["n"]; n != 42.0 || res.OperationResults[5].ETag == res.OperationResults[2].ETag {
		t.Errorf("the patched item has n %v, want 42, and an etag of its own", n)
	}
	sum := float32(0)
	for _, o := range res.OperationResults {
		sum += o.RequestCharge
	}
	if diff := sum - res.RequestCharge; diff > 0.05 || diff < -0.05 {
		t.Errorf("the batch costs %v, its operations %v", res.RequestCharge, sum)
	}
	_, err = c.ReadItem(ctx, keyA, "2", nil)
	refused(t, "read of what the batch deleted", err, notFound)

	// Without bodies, as the SDK asks by default, there are etags.
	b = c.NewTransactionalBatch(keyA)
	b.UpsertItem([]byte(`{"id":"5","pk":"a"}`), nil)
	res, err = c.ExecuteTransactionalBatch(ctx, b, nil)
	succeeded(t, "batch without bodies", res.Response, err, http.StatusOK)
	if o := res.OperationResults[0]; len(o.ResourceBody) != 0 || o.ETag == "" {
		t.Errorf("got the body %s and the etag %q", o.ResourceBody, o.ETag)
	}
}

func TestTransactionalBatchThatFails(t *testing.T) {
	ctx := limited(t)
	c := container(t, startMemory(t).database(t), azcosmos.ContainerProperties{})
	if _, err := c.CreateItem(ctx, keyA, []byte(`{"id":"1","pk":"a","n":1}`), nil); err != nil {
		t.Fatal(err)
	}
	for name, c2 := range map[string]struct {
		add  func(b *azcosmos.TransactionalBatch)
		want string
	}{
		"conflict":  {func(b *azcosmos.TransactionalBatch) { b.CreateItem([]byte(`{"id":"1","pk":"a"}`), nil) }, "[424 424 409 424]"},
		"not found": {func(b *azcosmos.TransactionalBatch) { b.ReadItem("none", nil) }, "[424 424 404 424]"},
		"etag": {func(b *azcosmos.TransactionalBatch) {
			b.ReplaceItem("1", []byte(`{"id":"1","pk":"a"}`), &azcosmos.TransactionalBatchItemOptions{IfMatchETag: to.Ptr(azcore.ETag(`"old"`))})
		}, "[424 424 412 424]"},
		"condition": {func(b *azcosmos.TransactionalBatch) {
			p := azcosmos.PatchOperations{}
			p.SetCondition("from c where c.n = 9")
			p.AppendSet("/n", 2)
			b.PatchItem("1", p, nil)
		}, "[424 424 412 424]"},
		"partition key": {func(b *azcosmos.TransactionalBatch) { b.CreateItem([]byte(`{"id":"9","pk":"b"}`), nil) }, "[424 424 400 424]"},
	} {
		t.Run(name, func(t *testing.T) {
			b := c.NewTransactionalBatch(keyA)
			b.CreateItem([]byte(`{"id":"2","pk":"a"}`), nil)
			b.DeleteItem("2", nil)
			c2.add(&b)
			b.DeleteItem("1", nil)
			res, err := c.ExecuteTransactionalBatch(ctx, b, withBodies)
			succeeded(t, "batch", res.Response, err, http.StatusMultiStatus)
			if got := statuses(res); got != c2.want || res.Success {
				t.Errorf("got %s, success %v, want %s", got, res.Success, c2.want)
			}
			read, err := c.ReadItem(ctx, keyA, "1", nil)
			succeeded(t, "read", read.Response, err, 200)
		})
	}
	empty := c.NewTransactionalBatch(keyA)
	if _, err := c.ExecuteTransactionalBatch(ctx, empty, nil); err == nil {
		t.Error("a batch without operations was done")
	}
	many := c.NewTransactionalBatch(keyA)
	for range 101 {
		many.ReadItem("1", nil)
	}
	_, err := c.ExecuteTransactionalBatch(ctx, many, nil)
	refused(t, "batch of 101 operations", err, badRequest("more operations than what is supported"))
}

func TestPatch(t *testing.T) {
	ctx := limited(t)
	c := container(t, startMemory(t).database(t), azcosmos.ContainerProperties{})
	created, err := c.CreateItem(ctx, keyA, []byte(`{"id":"1","pk":"a","n":1,"list":[1,2],"gone":true}`), nil)
	succeeded(t, "create", created.Response, err, 201)
	p := azcosmos.PatchOperations{}
	p.AppendAdd("/list/1", "between")
	p.AppendAdd("/list/-", map[string]any{"last": true})
	p.AppendSet("/new", "n")
	p.AppendReplace("/list/0", "first")
	p.AppendRemove("/gone")
	p.AppendIncrement("/n", -5)
	patched, err := c.PatchItem(ctx, keyA, "1", p, withContent)
	succeeded(t, "patch", patched.Response, err, 200)
	item := decode(t, patched.Value)
	if got, want := fmt.Sprintln(item["list"], item["n"], item["new"], item["gone"]), "[first between 2 map[last:true]] -4 n <nil>\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if patched.ETag == created.ETag || string(patched.ETag) != item["_etag"] {
		t.Errorf("the etag is %s, was %s, and in the item is %v", patched.ETag, created.ETag, item["_etag"])
	}
	old := created.ETag
	_, err = c.PatchItem(ctx, keyA, "1", p, &azcosmos.ItemOptions{IfMatchEtag: &old})
	refused(t, "patch with an old etag", err, precondition)
	_, err = c.PatchItem(ctx, keyA, "none", p, nil)
	refused(t, "patch of no item", err, notFound)
	p = azcosmos.PatchOperations{}
	p.AppendAdd("/none/child", 1)
	_, err = c.PatchItem(ctx, keyA, "1", p, nil)
	refused(t, "patch below nothing", err, badRequest("For Operation(1): Add Operation can only create a child object of an existing node(array or object) and cannot create path recursively, no path found beyond: 'none'."))
	p = azcosmos.PatchOperations{}
	p.SetCondition("from c where c.n > 0")
	p.AppendIncrement("/n", 1)
	_, err = c.PatchItem(ctx, keyA, "1", p, nil)
	refused(t, "patch on a condition that is not met", err, refusal{412, "PreconditionFailed", "1110", "pre-condition is not met"})
}

// A patch restarts the countdown, and a batch finds nothing that has expired.
func TestPatchesAndBatchesOfItemsThatExpire(t *testing.T) {
	ctx := limited(t)
	s := startMemory(t)
	c := container(t, s.database(t), azcosmos.ContainerProperties{DefaultTimeToLive: to.Ptr(int32(10))})
	for _, id := range []string{"1", "2"} {
		if _, err := c.CreateItem(ctx, keyA, []byte(`{"id":"`+id+`","pk":"a"}`), nil); err != nil {
			t.Fatal(err)
		}
	}
	s.advance(t, 6*time.Second)
	p := azcosmos.PatchOperations{}
	p.AppendSet("/n", 1)
	patched, err := c.PatchItem(ctx, keyA, "1", p, nil)
	succeeded(t, "patch", patched.Response, err, 200)
	s.advance(t, 6*time.Second)
	_, err = c.PatchItem(ctx, keyA, "2", p, nil)
	refused(t, "patch of what has expired", err, notFound)
	b := c.NewTransactionalBatch(keyA)
	b.PatchItem("1", p, nil)
	b.ReadItem("2", nil)
	res, err := c.ExecuteTransactionalBatch(ctx, b, nil)
	succeeded(t, "batch", res.Response, err, http.StatusMultiStatus)
	if got := statuses(res); got != "[424 404]" {
		t.Errorf("got %s, want [424 404]", got)
	}
	b = c.NewTransactionalBatch(keyA)
	b.CreateItem([]byte(`{"id":"2","pk":"a"}`), nil)
	b.ReadItem("2", nil)
	res, err = c.ExecuteTransactionalBatch(ctx, b, nil)
	succeeded(t, "batch over what has expired", res.Response, err, http.StatusOK)
}
