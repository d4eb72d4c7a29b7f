// SPDX-License-Identifier: MIT

package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/script"
)

// A script that exceeded its time six times in a row is barred for ten minutes, or until
// it is replaced. A script that ends in time loses its strikes.
func TestScriptsAreBarred(t *testing.T) {
	w := newWorld(t)
	now := time.Hour
	w.e.strikes.elapsed = func() time.Duration { return now }
	long, short := w.e.scripts, script.NewPool(script.PoolOptions{Gate: script.GateOptions{Slots: 1}, Time: 10 * time.Millisecond})
	t.Cleanup(func() {
		short.Close()
		w.e.scripts = long
	})
	w.container("c", "null", 1)
	w.put("c", "k", "a", "")
	const text = `function(once) { for (;;) if (once) return; }`
	w.procedure("spin", text)
	w.udf("spin", text)
	runs := map[string]func(once bool) error{
		"a procedure": func(once bool) error {
			_, err := w.e.Execute(t.Context(), execution("spin", fmt.Sprint([]bool{once})))
			return err
		},
		"a function": func(once bool) error {
			_, err := w.query(t.Context(), fmt.Sprintf("SELECT VALUE udf.spin(%v) FROM c", once))
			return err
		},
	}
	for name, run := range runs {
		expect := func(times int, want ScriptError) {
			t.Helper()
			w.e.scripts = short
			for i := range times {
				var failed *ScriptError
				if err := run(false); !errors.As(err, &failed) || failed.TooLong != want.TooLong || failed.Barred != want.Barred {
					t.Fatalf("%s, run %d: %v", name, i, err)
				}
			}
		}
		tooLong, barred := ScriptError{TooLong: true}, ScriptError{Barred: true}
		expect(maxStrikes-1, tooLong)
		w.e.scripts = long
		w.must(run(true))
		expect(maxStrikes, tooLong)
		expect(1, barred)
		now += barTime
		expect(1, barred)
		now++
		expect(maxStrikes, tooLong)
		expect(1, barred)
		w.e.scripts = long
		kind := catalog.Procedures
		if name == "a function" {
			kind = catalog.UDFs
		}
		_, err := w.e.ReplaceScript(t.Context(), scriptAt(kind, "spin"), udfBody("spin", text), "")
		w.must(err)
		expect(1, tooLong)
	}
}

// The number of scripts that are remembered is bounded: the oldest are forgotten.
func TestStrikesAreBounded(t *testing.T) {
	var now time.Duration
	k := strikes{elapsed: func() time.Duration { return now }}
	first := &catalog.Script{Resource: catalog.Resource{RIDText: "first"}}
	for range maxStrikes {
		k.add(first)
	}
	if k.check(first) == nil {
		t.Fatal("it is not barred")
	}
	for i := range maxStruck {
		now++
		k.add(&catalog.Script{Resource: catalog.Resource{RIDText: fmt.Sprint(i)}})
	}
	if got := len(k.mu.of); got != maxStruck {
		t.Errorf("%d scripts are remembered, want %d", got, maxStruck)
	}
	if err := k.check(first); err != nil {
		t.Error(err)
	}
}
