// SPDX-License-Identifier: MIT

package engine

import (
	"sync"

	"github.com/mayflydb/mayfly/internal/sql"
)

const (
	// keptQueries is how many syntax trees are kept, at least: those that were used
	// last. At most, it is twice as many.
	keptQueries = 256
	// maxKeptQueryBytes is the longest text of a query that is kept. A syntax tree
	// takes some thirty times its text.
	maxKeptQueryBytes = 4 << 10
)

// queries keeps the syntax trees of queries by their text. Applications send few
// texts very often, with parameters that differ.
type queries struct {
	mu struct {
		sync.RWMutex
		// recent has what was used since older was recent itself.
		recent, older map[string]*sql.Query
	}
}

// parse returns the syntax tree of a query, which many may read and none may change.
func (k *queries) parse(text string) (*sql.Query, error) {
	k.mu.RLock()
	q := k.mu.recent[text]
	k.mu.RUnlock()
	if q != nil {
		return q, nil
	}
	return k.parseAndKeep(text)
}

func (k *queries) parseAndKeep(text string) (q *sql.Query, err error) {
	k.mu.RLock()
	q = k.mu.older[text]
	k.mu.RUnlock()
	if q == nil {
		if q, err = sql.Parse(text); err != nil || len(text) > maxKeptQueryBytes {
			return q, err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.mu.recent) >= keptQueries || k.mu.recent == nil {
		k.mu.older, k.mu.recent = k.mu.recent, make(map[string]*sql.Query, keptQueries)
	}
	k.mu.recent[text] = q
	return q, nil
}
