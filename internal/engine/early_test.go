// SPDX-License-Identifier: MIT

package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store"
)

// No item expires early, not by a nanosecond, wherever in its millisecond it was written,
// and none lives more than two milliseconds longer.
func TestNoItemDiesEarly(t *testing.T) {
	alive(t, Options{}, func(w *world) {
		w.container("c", "1", 1)
		for i := range 40 {
			pass(time.Duration(i) * 37 * time.Microsecond)
			inherits, own := fmt.Sprint("inherits ", i), fmt.Sprint("own ", i)
			w.put("c", "k", inherits, "")
			w.put("c", "k", own, `"ttl":1`)
			pass(time.Second - time.Nanosecond)
			for _, id := range []string{inherits, own} {
				if _, err := w.read("c", "k", id); err != nil {
					t.Fatalf("%s, a nanosecond before its second is over: %v", id, err)
				}
			}
			pass(2*time.Millisecond + time.Nanosecond)
			for _, id := range []string{inherits, own} {
				if _, err := w.read("c", "k", id); !errors.Is(err, store.ErrNotFound) {
					t.Fatalf("%s, two milliseconds after its second is over: got %v, want %v", id, err, store.ErrNotFound)
				}
			}
		}
	})
}
