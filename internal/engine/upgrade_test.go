// SPDX-License-Identifier: MIT

package engine

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/cluster"
	"github.com/mayflydb/mayfly/internal/kv"
)

// next is what the next version knows, if it has a gradual format.
func next() formats {
	all := maps.Clone(gradual)
	all[formatVersion+1] = true
	return formats{append(migrations[:len(migrations):len(migrations)], noMigration), all, 300 * time.Millisecond} // six beats of nodes in tests
}

// startAs starts a node of a version whose newest format is another.
func (ns *nodes) startAs(name string, format int) error {
	return ns.startIn(name, catalog.Region{}, false, func(o *cluster.Options) { o.Format = format })
}

// Nodes are upgraded one after another: those of two versions run side by side on the format
// of the earlier one. When all are new, the format is raised while they run, and they know it
// with their next moment. From then on no node of the earlier version joins.
func TestNodesAreUpgradedOneAfterAnother(t *testing.T) {
	ns := newNodes(t)
	if err := ns.startAs("old", formatVersion); err != nil {
		t.Fatal(err)
	}
	if err := next().openShared(ns.db); err != nil {
		t.Errorf("a node of the next version: %v", err)
	}
	if err := ns.startAs("a", formatVersion+1); err != nil {
		t.Fatal(err)
	}
	ns.meet()
	ns.container("c", "null", 6)
	if _, err := ns.put("old", "c", "k", "x", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := next().finalize(t.Context(), ns.db, quiet()); err == nil || !strings.Contains(err.Error(), "earlier version are running: old:") {
		t.Errorf("finalize beside a node of the earlier version: %v", err)
	}
	if raw, _, err := kv.Get(ns.db, catalog.FormatKey); err != nil || !bytes.Equal(raw, []byte{byte(formatVersion)}) {
		t.Errorf("the format row is %x, %v, after finalize was refused", raw, err)
	}
	old := ns.all["old"]
	delete(ns.all, "old")
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	if err := ns.startAs("b", formatVersion+1); err != nil {
		t.Fatal(err)
	}
	if number, err := next().finalize(t.Context(), ns.db, quiet()); err != nil || number != formatVersion+1 {
		t.Fatalf("finalized to %d, %v", number, err)
	}
	for name, e := range ns.all {
		if err := e.Moment(t.Context()); err != nil || e.catalog.Format() != formatVersion+1 {
			t.Errorf("node %s knows the format %d, %v", name, e.catalog.Format(), err)
		}
		if _, err := ns.read(name, "c", "k", "x"); err != nil {
			t.Errorf("read at %s: %v", name, err)
		}
	}
	if err := ns.startAs("old", formatVersion); !errors.Is(err, kv.ErrNewerFormat) {
		t.Errorf("a node of the earlier version: %v, want ErrNewerFormat", err)
	}
	if number, err := next().finalize(t.Context(), ns.db, quiet()); err != nil || number != formatVersion+1 {
		t.Errorf("finalized again to %d, %v", number, err)
	}
	setRow(t, ns.db, catalog.FormatKey, []byte{byte(formatVersion)}) // as this version checks it
}

// A node of the earlier version was stopped while the format was raised: it is declared dead
// for that, and when it goes on, it does not register.
func TestStoppedNodeSeesTheFormat(t *testing.T) {
	ns := newNodes(t)
	if err := ns.startAs("old", formatVersion); err != nil {
		t.Fatal(err)
	}
	old := ns.all["old"]
	ns.links["old"].open.Lock()
	number, err := next().finalize(t.Context(), ns.db, quiet())
	ns.links["old"].open.Unlock()
	if err != nil || number != formatVersion+1 {
		t.Fatalf("finalized to %d, %v", number, err)
	}
	for refused := time.Now().Add(time.Minute); !errors.Is(old.Node().Ready(), cluster.ErrNewerData); time.Sleep(time.Millisecond) {
		if time.Now().After(refused) {
			t.Fatalf("the node of the earlier version is %v, want ErrNewerData", old.Node().Ready())
		}
	}
	if err := old.Moment(t.Context()); err == nil {
		t.Error("it answers")
	}
	setRow(t, ns.db, catalog.FormatKey, []byte{byte(formatVersion)}) // as this version checks it
}

// Finalize was interrupted: nodes of the earlier version do not join, others do, and it can be
// repeated.
func TestFinalizeIsInterrupted(t *testing.T) {
	ns := newNodes(t)
	if err := ns.startAs("a", formatVersion+1); err != nil {
		t.Fatal(err)
	}
	setRow(t, ns.db, catalog.FormatKey, []byte{byte(formatVersion), byte(formatVersion + 1)})
	if err := current().openShared(ns.db); !errors.Is(err, kv.ErrNewerFormat) {
		t.Errorf("a node of the earlier version: %v, want ErrNewerFormat", err)
	}
	if err := next().openShared(ns.db); err != nil {
		t.Errorf("a node of the next version: %v", err)
	}
	if number, err := next().finalize(t.Context(), ns.db, quiet()); err != nil || number != formatVersion+1 {
		t.Errorf("finalized to %d, %v", number, err)
	}
	setRow(t, ns.db, catalog.FormatKey, []byte{byte(formatVersion)})
}
