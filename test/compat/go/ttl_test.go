// SPDX-License-Identifier: MIT

package compat

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const tick = time.Millisecond

// ttlTest is a container on a server whose time stands still unless moved.
type ttlTest struct {
	*testing.T
	s *server
	c *azcosmos.ContainerClient
}

func startTTL(t *testing.T, defaultTTL *int32) ttlTest {
	s := startMemory(t)
	s.freeze(t)
	return ttlTest{t, s, container(t, s.database(t), azcosmos.ContainerProperties{DefaultTimeToLive: defaultTTL})}
}

func (x ttlTest) upsert(body string) azcosmos.ItemResponse {
	x.Helper()
	res, err := x.c.UpsertItem(limited(x.T), keyA, []byte(body), nil)
	if err != nil {
		x.Fatalf("upsert %s: %v", body, err)
	}
	return res
}

func (x ttlTest) alive(id, when string) {
	x.Helper()
	if _, err := x.c.ReadItem(limited(x.T), keyA, id, nil); err != nil {
		x.Errorf("%s, the item %s is to be there: %v", when, id, err)
	}
}

func (x ttlTest) gone(id, when string) {
	x.Helper()
	_, err := x.c.ReadItem(limited(x.T), keyA, id, nil)
	refused(x.T, "read "+id+" "+when, err, notFound)
}

func (x ttlTest) setDefault(seconds *int32) {
	x.Helper()
	res, err := x.c.Read(limited(x.T), nil)
	if err != nil {
		x.Fatal(err)
	}
	p := *res.ContainerProperties
	p.DefaultTimeToLive = seconds
	if _, err := x.c.Replace(limited(x.T), p, nil); err != nil {
		x.Fatal(err)
	}
}

func TestDefaultTTL(t *testing.T) {
	x := startTTL(t, to.Ptr[int32](5))
	x.upsert(`{"id":"inherits","pk":"a"}`)
	x.upsert(`{"id":"shorter","pk":"a","ttl":2}`)
	x.upsert(`{"id":"longer","pk":"a","ttl":10}`)
	x.upsert(`{"id":"never","pk":"a","ttl":-1}`)
	x.s.advance(t, 2*time.Second-tick)
	x.alive("shorter", "a millisecond before 2 s")
	x.s.advance(t, tick)
	x.gone("shorter", "at 2 s")
	x.s.advance(t, 3*time.Second-tick)
	x.alive("inherits", "a millisecond before 5 s")
	x.s.advance(t, tick)
	x.gone("inherits", "at 5 s")
	x.alive("longer", "at 5 s")
	x.s.advance(t, 5*time.Second)
	x.gone("longer", "at 10 s")
	x.s.advance(t, 1000*24*time.Hour)
	x.alive("never", "after 1000 days")
}

func TestEachWriteBeginsALifeAnew(t *testing.T) {
	x := startTTL(t, to.Ptr[int32](5))
	x.upsert(`{"id":"1","pk":"a"}`)
	x.s.advance(t, 4*time.Second)
	x.alive("1", "after 4 s") // a read prolongs nothing
	if _, err := x.c.ReplaceItem(limited(t), keyA, "1", []byte(`{"id":"1","pk":"a"}`), nil); err != nil {
		t.Fatal(err)
	}
	x.s.advance(t, 4*time.Second)
	x.alive("1", "4 s after the replace")
	x.upsert(`{"id":"1","pk":"a","ttl":1}`)
	x.s.advance(t, time.Second)
	x.gone("1", "1 s after the upsert with ttl 1")
}

func TestWritesOfAnExpiredItem(t *testing.T) {
	x, ctx := startTTL(t, to.Ptr[int32](5)), limited(t)
	body := []byte(`{"id":"1","pk":"a"}`)
	old := x.upsert(string(body))
	x.s.advance(t, 5*time.Second)
	_, err := x.c.ReplaceItem(ctx, keyA, "1", body, nil)
	refused(t, "replace", err, notFound)
	_, err = x.c.ReplaceItem(ctx, keyA, "1", body, &azcosmos.ItemOptions{IfMatchEtag: &old.ETag})
	refused(t, "replace with the etag that it had", err, notFound)
	_, err = x.c.DeleteItem(ctx, keyA, "1", nil)
	refused(t, "delete", err, notFound)
	created, err := x.c.CreateItem(ctx, keyA, body, nil)
	succeeded(t, "create", created.Response, err, 201)
	if created.ETag == old.ETag {
		t.Error("the new item has the etag of the expired one")
	}
	x.s.advance(t, 5*time.Second)
	upserted, err := x.c.UpsertItem(ctx, keyA, body, nil)
	succeeded(t, "upsert", upserted.Response, err, 201)
	x.alive("1", "after the upsert")
}

func TestOwnTTLOnly(t *testing.T) {
	x := startTTL(t, to.Ptr[int32](-1))
	x.upsert(`{"id":"own","pk":"a","ttl":1}`)
	x.upsert(`{"id":"none","pk":"a"}`)
	x.s.advance(t, time.Second)
	x.gone("own", "at 1 s")
	x.s.advance(t, 1000*24*time.Hour)
	x.alive("none", "after 1000 days")
}

func TestTTLIsInertWithoutADefault(t *testing.T) {
	x := startTTL(t, nil)
	x.upsert(`{"id":"1","pk":"a","ttl":1}`)
	x.s.advance(t, time.Hour)
	x.alive("1", "after an hour")
}

func TestDefaultTTLChanges(t *testing.T) {
	x := startTTL(t, to.Ptr[int32](3600))
	x.s.pausePurge(t) // what expires has to come back
	x.upsert(`{"id":"inherits","pk":"a"}`)
	x.upsert(`{"id":"own","pk":"a","ttl":60}`)
	x.s.advance(t, 10*time.Second)
	x.setDefault(to.Ptr[int32](5))
	x.gone("inherits", "10 s old under a default of 5")
	x.alive("own", "10 s old with a ttl of 60")
	x.setDefault(to.Ptr[int32](20))
	x.alive("inherits", "10 s old under a default of 20")
	x.s.advance(t, time.Hour)
	x.gone("own", "an hour old with a ttl of 60")
	x.setDefault(nil)
	x.alive("own", "when the container has no default any more")
}

func TestTimestampFollowsTheClock(t *testing.T) {
	x := startTTL(t, to.Ptr[int32](-1))
	ts := func() float64 {
		res, err := x.c.UpsertItem(limited(t), keyA, []byte(`{"id":"1","pk":"a"}`), withContent)
		if err != nil {
			t.Fatal(err)
		}
		return decode(t, res.Value)["_ts"].(float64)
	}
	before := ts()
	x.s.advance(t, 90*time.Second)
	if after := ts(); after-before != 90 {
		t.Errorf("the time moved by 90 s, and _ts from %.0f to %.0f", before, after)
	}
}
