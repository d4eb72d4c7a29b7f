// SPDX-License-Identifier: MIT

// Command example keeps a cart for five seconds.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func main() {
	ctx := context.Background()
	client := must(azcosmos.NewClientFromConnectionString(os.Getenv("MAYFLY_CONNECTION"), nil))
	_, _ = client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "shop"}, nil) // or it is there already
	shop := must(client.NewDatabase("shop"))
	_, _ = shop.CreateContainer(ctx, azcosmos.ContainerProperties{
		ID:                     "carts",
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/customer"}, Version: 2},
		DefaultTimeToLive:      to.Ptr[int32](5), // seconds
	}, nil)
	carts, ada := must(shop.NewContainer("carts")), azcosmos.NewPartitionKeyString("ada")
	must(carts.CreateItem(ctx, ada, []byte(`{"id":"1","customer":"ada","goods":["tea"]}`), nil))
	fmt.Printf("now: %s\n", must(carts.ReadItem(ctx, ada, "1", nil)).Value)
	time.Sleep(6 * time.Second)
	_, err := carts.ReadItem(ctx, ada, "1", nil)
	fmt.Println("six seconds later:", err) // 404 Not Found
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
