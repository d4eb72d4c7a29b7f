// SPDX-License-Identifier: MIT

package compat

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// TestWhatIsNotServedYetSaysSo: nothing that is missing may look like an empty
// result, or like something that was done.
func TestWhatIsNotServedYetSaysSo(t *testing.T) {
	ctx := limited(t)
	c := container(t, startMemory(t).database(t), azcosmos.ContainerProperties{})
	if _, err := c.CreateItem(ctx, keyA, []byte(`{"id":"1","pk":"a"}`), nil); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"batches": func() error {
			b := c.NewTransactionalBatch(keyA)
			b.CreateItem([]byte(`{"id":"2","pk":"a"}`), nil)
			_, err := c.ExecuteTransactionalBatch(ctx, b, nil)
			return err
		},
		"patches": func() error {
			p := azcosmos.PatchOperations{}
			p.AppendSet("/n", 1)
			_, err := c.PatchItem(ctx, keyA, "1", p, nil)
			return err
		},
		"triggers": func() error {
			_, err := c.CreateItem(ctx, keyA, []byte(`{"id":"3","pk":"a"}`), &azcosmos.ItemOptions{PreTriggers: []string{"stamp"}})
			return err
		},
	} {
		refused(t, name, do(), refusal{status: 501, code: "NotImplemented", text: "Mayfly does not serve"})
	}
	for _, id := range []string{"2", "3"} {
		_, err := c.ReadItem(ctx, keyA, id, nil)
		refused(t, "read "+id, err, notFound)
	}
	read, err := c.ReadItem(ctx, keyA, "1", &azcosmos.ItemOptions{IndexingDirective: to.Ptr(azcosmos.IndexingDirectiveInclude)})
	succeeded(t, "read", read.Response, err, 200)
	if _, patched := decode(t, read.Value)["n"]; patched {
		t.Error("a patch that was refused was applied")
	}
}
