// SPDX-License-Identifier: MIT

package compat

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestDatabase(t *testing.T) {
	s, ctx := startMemory(t), limited(t)
	c := s.client(t, s.http())
	want := azcosmos.DatabaseProperties{ID: "TestDatabase"}
	created, err := c.CreateDatabase(ctx, want, nil)
	succeeded(t, "create", created.Response, err, 201)
	d, err := c.NewDatabase(want.ID)
	if err != nil {
		t.Fatal(err)
	}
	read, err := d.Read(ctx, nil)
	succeeded(t, "read", read.Response, err, 200)
	got := *read.DatabaseProperties
	if got.ID != want.ID || got.ResourceID == "" || got.SelfLink != "dbs/"+got.ResourceID+"/" || got.LastModified.Unix() == 0 {
		t.Errorf("read %+v", got)
	}
	if got.ETag == nil || *got.ETag != created.ETag || read.ETag != created.ETag {
		t.Errorf("the etag is %v in the body and %q and %q in the headers", got.ETag, read.ETag, created.ETag)
	}

	_, err = c.CreateDatabase(ctx, want, nil)
	refused(t, "create again", err, conflict)
	known, err := d.Read(ctx, &azcosmos.ReadDatabaseOptions{IfNoneMatchEtag: &created.ETag})
	if known.RawResponse == nil || known.RawResponse.StatusCode != 304 {
		t.Errorf("read what is known already: got %+v, %v, want the status 304", known, err)
	}
	_, err = d.Delete(ctx, &azcosmos.DeleteDatabaseOptions{IfMatchEtag: to.Ptr(azcore.ETag(`"another"`))})
	refused(t, "delete with another etag", err, precondition)
	deleted, err := d.Delete(ctx, nil)
	succeeded(t, "delete", deleted.Response, err, 204)
	_, err = d.Read(ctx, nil)
	refused(t, "read after delete", err, notFound)
	_, err = d.Delete(ctx, nil)
	refused(t, "delete again", err, notFound)
}

func TestDatabasesAreListed(t *testing.T) {
	s := startMemory(t)
	d := s.database(t)
	res := s.request(t, "GET", "dbs", "", "dbs", nil, "")
	found := false
	databases, _ := res.body["Databases"].([]any)
	for _, got := range databases {
		found = found || got.(map[string]any)["id"] == d.ID()
	}
	if res.status != 200 || !found || res.body["_count"] != float64(len(databases)) {
		t.Errorf("GET /dbs: %d %v", res.status, res.body)
	}
}

func TestAnotherKeyIsRefused(t *testing.T) {
	s := startMemory(t)
	key, err := azcosmos.NewKeyCredential("bm90IHRoZSBrZXk=")
	if err != nil {
		t.Fatal(err)
	}
	o := azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}
	c, err := azcosmos.NewClientWithKey(s.http(), key, &o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CreateDatabase(limited(t), azcosmos.DatabaseProperties{ID: "d"}, nil)
	// The SDK wraps what it is told about the account as text.
	want := "The input authorization token can't serve the request."
	if err == nil || !strings.Contains(err.Error(), "RESPONSE 401") || !strings.Contains(err.Error(), want) {
		t.Errorf("create: got %v, want the status 401 and %q", err, want)
	}
}
