// SPDX-License-Identifier: MIT

package compat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestPartitionKeys(t *testing.T) {
	hierarchy := azcosmos.NewPartitionKeyString("contoso").AppendNumber(7).AppendBool(true)
	for name, x := range map[string]struct {
		paths      []string
		key, other azcosmos.PartitionKey
		body       string
	}{
		"string":      {[]string{"/pk"}, keyA, azcosmos.NewPartitionKeyString("b"), `{"id":"1","pk":"a"}`},
		"unicode":     {[]string{"/pk"}, azcosmos.NewPartitionKeyString("zürich"), keyA, `{"id":"1","pk":"zürich"}`},
		"empty":       {[]string{"/pk"}, azcosmos.NewPartitionKeyString(""), keyA, `{"id":"1","pk":""}`},
		"long":        {[]string{"/pk"}, azcosmos.NewPartitionKeyString(strings.Repeat("k", 100)), keyA, `{"id":"1","pk":"` + strings.Repeat("k", 100) + `"}`},
		"number":      {[]string{"/pk"}, azcosmos.NewPartitionKeyNumber(-1.5), azcosmos.NewPartitionKeyString("-1.5"), `{"id":"1","pk":-1.5}`},
		"integer":     {[]string{"/pk"}, azcosmos.NewPartitionKeyNumber(100), keyA, `{"id":"1","pk":100.0}`},
		"bool":        {[]string{"/pk"}, azcosmos.NewPartitionKeyBool(true), azcosmos.NewPartitionKeyBool(false), `{"id":"1","pk":true}`},
		"null":        {[]string{"/pk"}, azcosmos.NullPartitionKey, azcosmos.NewPartitionKeyString("null"), `{"id":"1","pk":null}`},
		"nested":      {[]string{"/a/b"}, keyA, azcosmos.NewPartitionKeyString("b"), `{"id":"1","a":{"b":"a"}}`},
		"the id":      {[]string{"/id"}, azcosmos.NewPartitionKeyString("1"), azcosmos.NewPartitionKeyString("2"), `{"id":"1"}`},
		"two levels":  {[]string{"/tenant", "/user"}, keyA.AppendNull(), keyA.AppendString("a"), `{"id":"1","tenant":"a","user":null}`},
		"three":       {[]string{"/t", "/u/id", "/s"}, hierarchy, azcosmos.NewPartitionKeyString("contoso").AppendNumber(7).AppendBool(false), `{"id":"1","t":"contoso","u":{"id":7},"s":true}`},
		"prefix only": {[]string{"/t", "/u"}, keyA.AppendString("b"), keyA, `{"id":"1","t":"a","u":"b"}`},
	} {
		versions := []int{1, 2}
		if len(x.paths) > 1 {
			versions = []int{2}
		}
		for _, version := range versions {
			t.Run(fmt.Sprintf("%s, version %d", name, version), func(t *testing.T) {
				c := container(t, startMemory(t).database(t), azcosmos.ContainerProperties{
					PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: x.paths, Version: version},
				})
				why := "PartitionKey extracted from document doesn't match"
				if name == "prefix only" {
					why = "Partition key provided either doesn't correspond to definition"
				}
				exerciseKey(t, c, x.key, x.other, x.body, why)
			})
		}
	}
}

func exerciseKey(t *testing.T, c *azcosmos.ContainerClient, key, other azcosmos.PartitionKey, body, why string) {
	ctx := limited(t)
	mismatch := refusal{status: 400, code: "BadRequest", subStatus: "1001", text: why}
	_, err := c.CreateItem(ctx, other, []byte(body), nil)
	refused(t, "create with another key", err, mismatch)
	created, err := c.CreateItem(ctx, key, []byte(body), nil)
	succeeded(t, "create", created.Response, err, 201)
	read, err := c.ReadItem(ctx, key, "1", nil)
	succeeded(t, "read", read.Response, err, 200)
	if read.ETag != created.ETag {
		t.Errorf("read the etag %s, created %s", read.ETag, created.ETag)
	}
	_, err = c.ReadItem(ctx, other, "1", nil)
	if err == nil {
		t.Error("the item was found under another key")
	}
	deleted, err := c.DeleteItem(ctx, key, "1", nil)
	succeeded(t, "delete", deleted.Response, err, 204)
}

func TestSameIDUnderTwoKeys(t *testing.T) {
	ctx := limited(t)
	c := container(t, startMemory(t).database(t), azcosmos.ContainerProperties{})
	for _, pk := range []string{"a", "b"} {
		res, err := c.CreateItem(ctx, azcosmos.NewPartitionKeyString(pk), fmt.Appendf(nil, `{"id":"1","pk":%q}`, pk), nil)
		succeeded(t, "create under "+pk, res.Response, err, 201)
	}
	if _, err := c.DeleteItem(ctx, keyA, "1", nil); err != nil {
		t.Fatal(err)
	}
	read, err := c.ReadItem(ctx, azcosmos.NewPartitionKeyString("b"), "1", nil)
	succeeded(t, "read the other", read.Response, err, 200)
}
