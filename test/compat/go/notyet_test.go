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
		"triggers": func() error {
			_, err := c.CreateItem(ctx, keyA, []byte(`{"id":"3","pk":"a"}`), &azcosmos.ItemOptions{PreTriggers: []string{"stamp"}})
			return err
		},
	} {
		refused(t, name, do(), refusal{status: 501, code: "NotImplemented", text: "Mayfly does not serve"})
	}
	_, err := c.ReadItem(ctx, keyA, "3", nil)
	refused(t, "read 3", err, notFound)
	read, err := c.ReadItem(ctx, keyA, "1", &azcosmos.ItemOptions{IndexingDirective: to.Ptr(azcosmos.IndexingDirectiveInclude)})
	succeeded(t, "read", read.Response, err, 200)
}
