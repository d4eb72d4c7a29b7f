// SPDX-License-Identifier: MIT

package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
)

func region(t *testing.T, text string) catalog.Region {
	t.Helper()
	r, err := catalog.ParseRegion(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// regions returns the names of the regions as a node knows them now, the first of which
// takes writes.
func (ns *nodes) regions(at string) string {
	ns.moments()
	var names []string
	for _, r := range ns.all[at].Regions().List {
		names = append(names, r.Name)
	}
	return strings.Join(names, ", ")
}

// Partitions belong to nodes of the write region. After a failover every node knows the new
// order with its next moment, partitions move, and what was written is there.
func TestPartitionsFollowTheWriteRegion(t *testing.T) {
	ns := newNodes(t)
	ns.settled = time.Millisecond
	west, east := region(t, "West US=http://west.example/"), region(t, "East US=http://east.example/")
	for _, n := range []struct {
		name string
		in   catalog.Region
	}{{"a", west}, {"b", east}, {"c", east}} {
		if err := ns.startIn(n.name, n.in, false); err != nil {
			t.Fatal(err)
		}
	}
	ns.meet()
	if err := ns.all["a"].Clock().Freeze(); err != nil {
		t.Fatal(err)
	}
	c := ns.container("c", "null", 6)
	keys := spread(c)
	for _, pk := range keys {
		if _, err := ns.put("b", "c", pk, "x", `"wrote":1`); err != nil {
			t.Fatal(err)
		}
	}
	if owners := ns.owners(c); owners["a"] != len(keys) {
		t.Errorf("partitions are owned as %v, want all by a, in the write region", owners)
	}
	// The service takes names of regions in any case, and without spaces.
	if err := ns.all["a"].Failover(t.Context(), "eastus"); err != nil {
		t.Fatal(err)
	}
	for name := range ns.all {
		if got := ns.regions(name); got != "East US, West US" {
			t.Errorf("node %s knows the regions %s", name, got)
		}
	}
	for moved := time.Now().Add(time.Minute); ns.all["a"].Work().Partitions > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(moved) {
			t.Fatalf("partitions do not move: they are owned as %v", ns.owners(c))
		}
	}
	for _, at := range []string{"a", "b", "c"} {
		for _, pk := range keys {
			if a, err := ns.read(at, "c", pk, "x"); err != nil || !strings.Contains(string(a.Body), `"wrote":1`) {
				t.Errorf("read of %s at %s: %s, %v", pk, at, a.Body, err)
			}
		}
	}
	if owners := ns.owners(c); owners["a"] != 0 || owners["b"]+owners["c"] != len(keys) {
		t.Errorf("partitions are owned as %v, want none by a", owners)
	}
}

// What the last node to start says of its region holds, regions need an endpoint as soon as
// there are two, and a region is forgotten when it has no node.
func TestRegionsOfNodes(t *testing.T) {
	ns := newNodes(t)
	refused := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
	begin := func(name, in string, multiWrite bool) error { return ns.startIn(name, region(t, in), multiWrite) }
	if err := begin("a", "West US", false); err != nil {
		t.Fatal(err)
	}
	refused(begin("b", "East US=http://east.example/", false), `the region "West US" has no endpoint`)
	if err := ns.all["a"].Close(); err != nil {
		t.Fatal(err)
	}
	if err := begin("a", "West US=http://west.example/", false); err != nil {
		t.Fatal(err)
	}
	refused(begin("b", "East US", false), `the region "East US" has no endpoint`)
	refused(begin("b", "East US=http://WEST.example/", false), "have the same endpoint")
	if err := begin("b", "East US=http://east.example/", true); err != nil {
		t.Fatal(err)
	}
	ns.meet()
	if got := ns.regions("a"); got != "West US, East US" || !ns.all["a"].Regions().MultiWrite {
		t.Errorf("the regions are %s, %+v", got, ns.all["a"].Regions())
	}
	a := ns.all["a"]
	refused(a.Failover(t.Context(), "Mars"), "There is no region 'Mars'. There are: West US, East US.")
	refused(a.ForgetRegion(t.Context(), "West US"), "takes writes")
	refused(a.ForgetRegion(t.Context(), "East US"), "has a live node, 'b'")
	b := ns.all["b"]
	delete(ns.all, "b")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for gone := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // a's next beat sees that b has left
		if err := a.ForgetRegion(t.Context(), "East US"); err == nil {
			break
		} else if time.Now().After(gone) {
			t.Fatal(err)
		}
	}
	if got := ns.regions("a"); got != "West US" {
		t.Errorf("the regions are %s", got)
	}
}
