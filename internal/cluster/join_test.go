// SPDX-License-Identifier: MIT

package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestOneNode joins, owns a partition, renews it, gives it up and leaves.
func TestOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.join("a")
		m, err := a.Moment(t.Context())
		if err != nil || m.NowMs != time.Now().UnixMilli() {
			t.Fatalf("moment %+v, %v at %d", m, err, time.Now().UnixMilli())
		}
		key := []byte("p1o")
		first, err := a.Own(t.Context(), key)
		if err != nil || first.Epoch != 1 {
			t.Fatalf("own: %+v, %v", first, err)
		}
		second, err := a.Renew(t.Context(), key)
		if err != nil || second.Epoch != 2 || second.OpenedMs < first.OpenedMs {
			t.Fatalf("renew: %+v, %v", second, err)
		}
		if w.write(key, first) == nil {
			t.Error("a commit under the old epoch landed")
		}
		if err := w.write(key, second); err != nil {
			t.Error(err)
		}
		time.Sleep(1100 * time.Millisecond) // between two beats
		if err := a.Release(t.Context(), key, a.Clock().Now()); err != nil {
			t.Fatal(err)
		}
		owners, err := a.Owners(context.Background(), [][]byte{key, []byte("p2o")})
		if err != nil || owners[0] != (Owner{"", 0, 3, a.Clock().Now()}) || owners[1] != (Owner{}) {
			t.Fatalf("owners %+v, %v", owners, err)
		}
		if err := a.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Moment(t.Context()); !errors.Is(err, ErrLeft) {
			t.Errorf("a moment after leaving: %v", err)
		}
	})
}
