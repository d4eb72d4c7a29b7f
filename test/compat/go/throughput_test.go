// SPDX-License-Identifier: MIT

package compat

import (
	"errors"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// checkThroughput checks what the SDK makes of an offer; 0 stands for the other kind.
func checkThroughput(t *testing.T, what string, res azcosmos.ThroughputResponse, err error, manual, autoscale, minimum int32) {
	t.Helper()
	succeeded(t, what, res.Response, err, 200)
	p := res.ThroughputProperties
	gotManual, _ := p.ManualThroughput()
	gotAutoscale, _ := p.AutoscaleMaxThroughput()
	if autoscale != 0 {
		manual = gotManual // what is in use
	}
	if gotManual != manual || gotAutoscale != autoscale {
		t.Errorf("%s: got %d manual, %d autoscale, want %d and %d", what, gotManual, gotAutoscale, manual, autoscale)
	}
	if res.MinThroughput == nil || *res.MinThroughput != minimum {
		t.Errorf("%s: minimum %v, want %d", what, res.MinThroughput, minimum)
	}
	if p.ETag == nil || *p.ETag != res.ETag || p.LastModified.Unix() == 0 {
		t.Errorf("%s: etag %v and %q, last modified %v", what, p.ETag, res.ETag, p.LastModified)
	}
}

func TestThroughputOfAContainer(t *testing.T) {
	s := startMemory(t)
	d, ctx := s.database(t), limited(t)
	create := func(id string, p *azcosmos.ThroughputProperties) *azcosmos.ContainerClient {
		key := azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2}
		res, err := d.CreateContainer(ctx, azcosmos.ContainerProperties{ID: id, PartitionKeyDefinition: key}, &azcosmos.CreateContainerOptions{ThroughputProperties: p})
		succeeded(t, "create "+id, res.Response, err, 201)
		c, err := d.NewContainer(id)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	plain := create("plain", nil)
	read, err := plain.ReadThroughput(ctx, nil)
	checkThroughput(t, "read, nothing said", read, err, 400, 0, 400)

	c := create("manual", to.Ptr(azcosmos.NewManualThroughputProperties(500)))
	read, err = c.ReadThroughput(ctx, nil)
	checkThroughput(t, "read", read, err, 500, 0, 400)
	replaced, err := c.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(50_000), nil)
	checkThroughput(t, "replace", replaced, err, 50_000, 0, 500)
	// Partitions are split until each carries 10,000 RU/s.
	for pending := replaced.IsReplacePending; pending; pending = read.IsReplacePending {
		read, err = c.ReadThroughput(ctx, nil)
		checkThroughput(t, "read while it is pending", read, err, 50_000, 0, 500)
	}
	if !replaced.IsReplacePending {
		t.Error("the replace was not pending")
	}
	_, err = c.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(400), nil)
	refused(t, "below the minimum", err, badRequest("Requested throughput 400 is less than required minimum throughput 500"))
	replaced, err = c.ReplaceThroughput(ctx, azcosmos.NewAutoscaleThroughputProperties(6000), nil)
	checkThroughput(t, "replace by autoscale", replaced, err, 0, 6000, 5000)
	replaced, err = c.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(600), nil)
	checkThroughput(t, "replace by manual", replaced, err, 600, 0, 500)
	read, err = c.ReadThroughput(ctx, nil)
	checkThroughput(t, "read again", read, err, 600, 0, 500)
	if read.IsReplacePending {
		t.Error("a replace of less is pending")
	}
	_, err = c.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(700), &azcosmos.ThroughputOptions{IfMatchEtag: to.Ptr(azcore.ETag(`"another"`))})
	refused(t, "replace with another etag", err, precondition)

	auto := create("autoscale", to.Ptr(azcosmos.NewAutoscaleThroughputPropertiesWithIncrement(4000, 5)))
	read, err = auto.ReadThroughput(ctx, nil)
	checkThroughput(t, "read autoscale", read, err, 0, 4000, 1000)
	if percent, ok := read.ThroughputProperties.AutoscaleIncrement(); !ok || percent != 5 {
		t.Errorf("the increment is %d, %v, want 5", percent, ok)
	}
	_, err = d.CreateContainer(ctx, azcosmos.ContainerProperties{ID: "little", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}}},
		&azcosmos.CreateContainerOptions{ThroughputProperties: to.Ptr(azcosmos.NewManualThroughputProperties(100))})
	refused(t, "create with too little", err, badRequest("required minimum throughput 400"))
}

func TestThroughputOfADatabase(t *testing.T) {
	s, ctx := startMemory(t), limited(t)
	client := s.client(t, s.http())
	res, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: t.Name()},
		&azcosmos.CreateDatabaseOptions{ThroughputProperties: to.Ptr(azcosmos.NewManualThroughputProperties(600))})
	succeeded(t, "create", res.Response, err, 201)
	d, err := client.NewDatabase(t.Name())
	if err != nil {
		t.Fatal(err)
	}
	read, err := d.ReadThroughput(ctx, nil)
	checkThroughput(t, "read", read, err, 600, 0, 400)
	replaced, err := d.ReplaceThroughput(ctx, azcosmos.NewAutoscaleThroughputProperties(2000), nil)
	checkThroughput(t, "replace", replaced, err, 0, 2000, 1000)
	// A container that shares has no throughput of its own: the SDK makes a 404 of it.
	_, err = container(t, d, azcosmos.ContainerProperties{}).ReadThroughput(ctx, nil)
	var missing *azcore.ResponseError
	if !errors.As(err, &missing) || missing.StatusCode != 404 {
		t.Errorf("the container's: got %v, want the status 404", err)
	}
	_, err = s.database(t).ReadThroughput(ctx, nil)
	if !errors.As(err, &missing) || missing.StatusCode != 404 {
		t.Errorf("of a database that has none: got %v, want the status 404", err)
	}
	deleted, err := d.Delete(ctx, nil)
	succeeded(t, "delete", deleted.Response, err, 204)
	_, err = d.ReadThroughput(ctx, nil)
	refused(t, "read after delete", err, notFound)
}

func TestThroughputIsEnforced(t *testing.T) {
	s := start(t, "--memory", "--throughput", "enforce")
	c := container(t, s.database(t), azcosmos.ContainerProperties{})
	ctx, key := limited(t), azcosmos.NewPartitionKeyString("a")
	large := []byte(`{"id":"1","pk":"a","pad":"` + strings.Repeat("x", 2_000_000) + `"}`)
	const attempts = 20 // each is worth more than two seconds of throughput
	for range attempts {
		if _, err := c.UpsertItem(ctx, key, large, nil); err != nil {
			refused(t, "write", err, refusal{status: 429, code: "429", subStatus: "3200", text: "Request rate is large"})
			return
		}
	}
	t.Error("nothing is refused")
}
