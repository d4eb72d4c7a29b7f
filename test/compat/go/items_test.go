// SPDX-License-Identifier: MIT

package compat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

var keyA = azcosmos.NewPartitionKeyString("a")

// withContent makes the SDK ask for the item in answer to a write.
var withContent = &azcosmos.ItemOptions{EnableContentResponseOnWrite: true}

// TestItem runs over both protocols of the port, on data that is kept.
func TestItem(t *testing.T) {
	s := startData(t, t.TempDir())
	for scheme, endpoint := range map[string]string{"http": s.http(), "https": s.https()} {
		t.Run(scheme, func(t *testing.T) {
			client, id := s.client(t, endpoint), "TestItem-"+scheme
			if _, err := client.CreateDatabase(limited(t), azcosmos.DatabaseProperties{ID: id}, nil); err != nil {
				t.Fatal(err)
			}
			d, err := client.NewDatabase(id)
			if err != nil {
				t.Fatal(err)
			}
			exerciseItem(t, container(t, d, azcosmos.ContainerProperties{}))
		})
	}
}

func exerciseItem(t *testing.T, c *azcosmos.ContainerClient) {
	ctx := limited(t)
	created, err := c.CreateItem(ctx, keyA, []byte(`{"id":"1","pk":"a","n":1,"nested":{"list":[1,null,"ü"]}}`), withContent)
	succeeded(t, "create", created.Response, err, 201)
	read, err := c.ReadItem(ctx, keyA, "1", nil)
	succeeded(t, "read", read.Response, err, 200)
	if string(read.Value) != string(created.Value) || read.ETag != created.ETag {
		t.Errorf("read %s with the etag %s, but created %s with %s", read.Value, read.ETag, created.Value, created.ETag)
	}
	checkItem(t, read, 1)
	_, err = c.CreateItem(ctx, keyA, []byte(`{"id":"1","pk":"a"}`), nil)
	refused(t, "create again", err, conflict)

	replaced, err := c.ReplaceItem(ctx, keyA, "1", []byte(`{"id":"1","pk":"a","n":2}`), withContent)
	succeeded(t, "replace", replaced.Response, err, 200)
	checkItem(t, replaced, 2)
	upserted, err := c.UpsertItem(ctx, keyA, []byte(`{"id":"1","pk":"a","n":3}`), withContent)
	succeeded(t, "upsert of an old item", upserted.Response, err, 200)
	checkItem(t, upserted, 3)
	first, third := decode(t, created.Value), decode(t, upserted.Value)
	if first["_rid"] != third["_rid"] || first["_self"] != third["_self"] || first["_etag"] == third["_etag"] {
		t.Errorf("writes must keep _rid and _self and change _etag: first %v, then %v", first, third)
	}
	upserted, err = c.UpsertItem(ctx, keyA, []byte(`{"id":"2","pk":"a","n":1}`), nil)
	succeeded(t, "upsert of a new item", upserted.Response, err, 201)

	deleted, err := c.DeleteItem(ctx, keyA, "1", nil)
	succeeded(t, "delete", deleted.Response, err, 204)
	_, err = c.ReadItem(ctx, keyA, "1", nil)
	refused(t, "read after delete", err, notFound)
	_, err = c.DeleteItem(ctx, keyA, "1", nil)
	refused(t, "delete again", err, notFound)
	_, err = c.ReplaceItem(ctx, keyA, "1", []byte(`{"id":"1","pk":"a"}`), nil)
	refused(t, "replace after delete", err, notFound)
}

// checkItem looks for what the server adds to an item.
func checkItem(t *testing.T, res azcosmos.ItemResponse, n float64) {
	t.Helper()
	p := decode(t, res.Value)
	if p["id"] != "1" || p["pk"] != "a" || p["n"] != n {
		t.Errorf("got the item %v, want n %v", p, n)
	}
	if p["_etag"] != string(res.ETag) {
		t.Errorf("the etag is %v in the body and %s in the header", p["_etag"], res.ETag)
	}
	for _, name := range []string{"_rid", "_self", "_attachments", "_ts"} {
		if p[name] == nil {
			t.Errorf("the item %v lacks %s", p, name)
		}
	}
}

func TestContentOfWritesIsSentOnRequestOnly(t *testing.T) {
	ctx := limited(t)
	c := container(t, startMemory(t).database(t), azcosmos.ContainerProperties{})
	body := []byte(`{"id":"1","pk":"a"}`)
	for _, write := range []struct {
		name string
		do   func(o *azcosmos.ItemOptions) (azcosmos.ItemResponse, error)
	}{
		{"upsert", func(o *azcosmos.ItemOptions) (azcosmos.ItemResponse, error) { return c.UpsertItem(ctx, keyA, body, o) }},
		{"replace", func(o *azcosmos.ItemOptions) (azcosmos.ItemResponse, error) {
			return c.ReplaceItem(ctx, keyA, "1", body, o)
		}},
	} {
		res, err := write.do(nil)
		if err != nil || len(res.Value) != 0 || res.ETag == "" || res.SessionToken == nil {
			t.Errorf("%s: got %q, etag %q, session %v, %v; want all but a body", write.name, res.Value, res.ETag, res.SessionToken, err)
		}
		res, err = write.do(withContent)
		if err != nil || decode(t, res.Value)["_etag"] != string(res.ETag) {
			t.Errorf("%s: got %q, %v; want the item", write.name, res.Value, err)
		}
	}
}

func TestETag(t *testing.T) {
	ctx := limited(t)
	c := container(t, startMemory(t).database(t), azcosmos.ContainerProperties{})
	body := []byte(`{"id":"1","pk":"a"}`)
	created, err := c.CreateItem(ctx, keyA, body, nil)
	succeeded(t, "create", created.Response, err, 201)
	old := &azcosmos.ItemOptions{IfMatchEtag: to.Ptr(created.ETag)}
	replaced, err := c.ReplaceItem(ctx, keyA, "1", body, old)
	succeeded(t, "replace the version that was read", replaced.Response, err, 200)

	_, err = c.ReplaceItem(ctx, keyA, "1", body, old)
	refused(t, "replace another version", err, precondition)
	_, err = c.UpsertItem(ctx, keyA, body, old)
	refused(t, "upsert another version", err, precondition)
	_, err = c.DeleteItem(ctx, keyA, "1", old)
	refused(t, "delete another version", err, precondition)
	read, err := c.ReadItem(ctx, keyA, "1", nil)
	succeeded(t, "read", read.Response, err, 200)
	if read.ETag != replaced.ETag {
		t.Errorf("a refused write changed the item: the etag is %s, not %s", read.ETag, replaced.ETag)
	}
	deleted, err := c.DeleteItem(ctx, keyA, "1", &azcosmos.ItemOptions{IfMatchEtag: to.Ptr(azcore.ETagAny)})
	succeeded(t, "delete any version", deleted.Response, err, 204)
}

func TestSession(t *testing.T) {
	ctx := limited(t)
	c := container(t, startMemory(t).database(t), azcosmos.ContainerProperties{})
	written, err := c.CreateItem(ctx, keyA, []byte(`{"id":"1","pk":"a"}`), nil)
	succeeded(t, "create", written.Response, err, 201)
	if written.SessionToken == nil {
		t.Fatal("a write has no session token")
	}
	read, err := c.ReadItem(ctx, keyA, "1", &azcosmos.ItemOptions{
		SessionToken: written.SessionToken, ConsistencyLevel: azcosmos.ConsistencyLevelSession.ToPtr(),
	})
	succeeded(t, "read one's own write", read.Response, err, 200)

	_, err = c.ReadItem(ctx, keyA, "1", &azcosmos.ItemOptions{SessionToken: to.Ptr("0:0#1000000")})
	if err == nil || !strings.Contains(err.Error(), "The read session is not available") {
		t.Errorf("read with a session that is ahead: got %v", err)
	}
	_, err = c.ReadItem(ctx, keyA, "1", &azcosmos.ItemOptions{SessionToken: to.Ptr("nonsense")})
	refused(t, "read with a token that is none", err, badRequest("ession token"))
	_, err = c.ReadItem(ctx, keyA, "1", &azcosmos.ItemOptions{ConsistencyLevel: azcosmos.ConsistencyLevelStrong.ToPtr()})
	refused(t, "read more strongly than the account's level", err, badRequest("stronger"))
	read, err = c.ReadItem(ctx, keyA, "1", &azcosmos.ItemOptions{ConsistencyLevel: azcosmos.ConsistencyLevelEventual.ToPtr()})
	succeeded(t, "read more weakly", read.Response, err, 200)
}

func TestLargeItem(t *testing.T) {
	ctx := limited(t)
	c := container(t, startMemory(t).database(t), azcosmos.ContainerProperties{})
	large := func(bytes int) []byte {
		frame := `{"id":"1","pk":"a","fill":""}`
		return []byte(strings.Replace(frame, `""`, `"`+strings.Repeat("x", bytes-len(frame))+`"`, 1))
	}
	const most = 2 << 20
	for _, bytes := range []int{most + 1, most + 100_000, 5 * most} {
		_, err := c.CreateItem(ctx, keyA, large(bytes), nil)
		refused(t, fmt.Sprintf("create an item of %d bytes", bytes), err,
			refusal{status: 413, code: "RequestEntityTooLarge", text: "Request size is too large"})
	}
	created, err := c.CreateItem(ctx, keyA, large(most), nil)
	succeeded(t, "create an item of 2 MB", created.Response, err, 201)
	read, err := c.ReadItem(ctx, keyA, "1", nil)
	succeeded(t, "read an item of 2 MB", read.Response, err, 200)
	if fill, _ := decode(t, read.Value)["fill"].(string); len(fill) < most-100 {
		t.Errorf("got %d bytes back", len(fill))
	}
}

func TestItemsThatAreRefused(t *testing.T) {
	c := container(t, startMemory(t).database(t), azcosmos.ContainerProperties{DefaultTimeToLive: to.Ptr[int32](-1)})
	for name, x := range map[string]struct{ body, text string }{
		"no id":              {`{"pk":"a"}`, "'id; '"},
		"an id that is none": {`{"id":1,"pk":"a"}`, "'1024'"},
		"an empty id":        {`{"id":"","pk":"a"}`, "'1024'"},
		"a long id":          {`{"id":"` + strings.Repeat("x", 1024) + `","pk":"a"}`, "'1024'"},
		"no JSON":            {`{"id":"1","pk":"a"`, "The input content is invalid"},
		"an array":           {`[]`, "The input content is invalid"},
		"a name twice":       {`{"id":"1","pk":"a","x":1,"x":2}`, "The input content is invalid"},
		"ttl 0":              {`{"id":"1","pk":"a","ttl":0}`, "The input ttl '0' is invalid."},
		"ttl null":           {`{"id":"1","pk":"a","ttl":null}`, "The input ttl 'null' is invalid."},
		"ttl -10":            {`{"id":"1","pk":"a","ttl":-10}`, "The input ttl '-10' is invalid."},
		"ttl of text":        {`{"id":"1","pk":"a","ttl":"5"}`, "The input ttl"},
		"ttl of half":        {`{"id":"1","pk":"a","ttl":0.5}`, "The input ttl '0.5' is invalid."},
		"ttl of 2^31":        {`{"id":"1","pk":"a","ttl":2147483648}`, "The input ttl '2147483648' is invalid."},
	} {
		_, err := c.CreateItem(limited(t), keyA, []byte(x.body), nil)
		refused(t, name, err, badRequest(x.text))
	}
}

func TestSpecialIDs(t *testing.T) {
	ctx := limited(t)
	c := container(t, startMemory(t).database(t), azcosmos.ContainerProperties{})
	for _, id := range []string{
		"with space", " leading", "ünïcödé", "日本語", "🦋", "question?", "hash#", "a/b", `a\b`, "%20", "100%", "plus+", "q\"uote",
		"tab\t", "new\nline", "semi;colon", "a&b=c", "docs", "{}", "trailing ", strings.Repeat("x", 1023),
	} {
		body := fmt.Appendf(nil, `{"id":%q,"pk":"a"}`, id)
		created, err := c.CreateItem(ctx, keyA, body, nil)
		succeeded(t, "create "+id, created.Response, err, 201)
		read, err := c.ReadItem(ctx, keyA, id, nil)
		if err != nil {
			t.Errorf("read %q: %v", id, err)
			continue
		}
		if got := decode(t, read.Value)["id"]; got != id {
			t.Errorf("read %q, got %q", id, got)
		}
		if _, err := c.ReplaceItem(ctx, keyA, id, body, nil); err != nil {
			t.Errorf("replace %q: %v", id, err)
		}
		if _, err := c.DeleteItem(ctx, keyA, id, nil); err != nil {
			t.Errorf("delete %q: %v", id, err)
		}
	}
}

func TestItemsSurviveAStop(t *testing.T) {
	ctx, dir := limited(t), t.TempDir()
	var before azcosmos.ItemResponse
	t.Run("first", func(t *testing.T) {
		s := startData(t, dir)
		client := s.client(t, s.https())
		if _, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "kept"}, nil); err != nil {
			t.Fatal(err)
		}
		d, err := client.NewDatabase("kept")
		if err != nil {
			t.Fatal(err)
		}
		c := container(t, d, azcosmos.ContainerProperties{DefaultTimeToLive: to.Ptr[int32](3600)})
		before, err = c.CreateItem(ctx, keyA, []byte(`{"id":"1","pk":"a"}`), withContent)
		succeeded(t, "create", before.Response, err, 201)
	})
	s := startData(t, dir)
	c, err := s.client(t, s.https()).NewContainer("kept", "c")
	if err != nil {
		t.Fatal(err)
	}
	after, err := c.ReadItem(ctx, keyA, "1", &azcosmos.ItemOptions{SessionToken: before.SessionToken})
	succeeded(t, "read after the stop", after.Response, err, 200)
	if string(after.Value) != string(before.Value) || after.ETag != before.ETag {
		t.Errorf("read %s after the stop, and wrote %s before", after.Value, before.Value)
	}
}
