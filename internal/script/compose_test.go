// SPDX-License-Identifier: MIT

package script

import (
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

//go:embed testdata/compose.js
var composeText string

// composing is how long random scripts are run, times MAYFLY_LONG: with 3600 it is an hour.
const composing = time.Second

// Every script ends within its limits, and the next one runs: here scripts that combine
// builtins, iterators, promises, proxies, generators, buffers, regular expressions, big
// integers and texts at random.
func TestAnyScriptEnds(t *testing.T) {
	const maxSteps, atOnce = 40, 4
	o := testPool()
	o.Memory = smallMemory
	p := NewPool(o)
	defer p.Close()
	compose := &Function{"compose", composeText}
	end := time.Now().Add(composing * time.Duration(kvtest.LongFactor(t)))
	var scripts sync.Map // how many ended in each way
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for time.Now().Before(end) && !t.Failed() {
				seed := rand.Uint32()
				way, err := composed(t, p, compose, seed, 1+rand.IntN(maxSteps))
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				n, _ := scripts.LoadOrStore(way, new(atomic.Int64))
				n.(*atomic.Int64).Add(1)
			}
		})
	}
	all.Wait()
	scripts.Range(func(way, n any) bool {
		t.Logf("%6d: %s", n.(*atomic.Int64).Load(), way)
		return true
	})
	checkHeap(t)
}

// composed runs a random script and a harmless one after it, and returns how the first ended.
func composed(t *testing.T, p *Pool, compose *Function, seed uint32, steps int) (string, error) {
	s, err := p.Enter(t.Context())
	if err != nil {
		return "", err
	}
	defer s.Leave()
	began := time.Now()
	_, err = s.NewSandbox(Options{CallTime: soon + rand.N(20*soon)}).Call(t.Context(), compose, fmt.Append(nil, seed), fmt.Append(nil, steps))
	took := time.Since(began)
	way := "a result"
	var thrown *ThrownError
	switch {
	case errors.As(err, &thrown):
		way = "an exception"
	case errors.Is(err, ErrEnded) || err != nil && !Refused(err):
		return "", fmt.Errorf("it failed in no known way: %w", err)
	case err != nil:
		way = err.Error()
	}
	if took > longest {
		return way, fmt.Errorf("it took %v", took)
	}
	got, err := s.sandbox(Options{}).Call(t.Context(), double, []byte("21"))
	if err != nil || string(got) != "42" {
		return way, fmt.Errorf("the next script: %s, %w", got, err)
	}
	return way, nil
}
