// SPDX-License-Identifier: MIT

package engine

import (
	"sync"
	"sync/atomic"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

const (
	// keptQueries is how many recently used queries are kept at least. At most it is
	// twice as many.
	keptQueries = 256
	// maxKeptQueryBytes is the longest text of a query that is kept. A syntax tree takes
	// some thirty times its text, and a program about as much.
	maxKeptQueryBytes = 4 << 10
)

// queries caches parsed queries by their text. Applications send few texts very often,
// with different parameters.
type queries struct {
	mu struct {
		sync.RWMutex
		// recent has the queries used since older was replaced, and older those used
		// before.
		recent, older map[string]*keptQuery
	}
}

// keptQuery is a cached query.
type keptQuery struct {
	tree *syntax.Query // shared by many readers, so it must not change
	last atomic.Pointer[keptProgram]
}

// keptProgram is the program of a query, for one version of a container.
type keptProgram struct {
	container *catalog.Container
	template  *sql.Template
}

// bind returns the program of a query for values of its parameters, if it is cached.
func (k *keptQuery) bind(c *catalog.Container, params map[string]datum.Value) (*sql.Program, bool) {
	last := k.last.Load()
	if last == nil || last.container != c {
		return nil, false
	}
	return last.template.Bind(params)
}

// keep caches the part of a program that does not depend on parameters.
func (k *keptQuery) keep(c *catalog.Container, p *sql.Program) {
	if t := p.Template(); t != nil {
		k.last.Store(&keptProgram{c, t})
	}
}

// parse returns the parsed query of a text, from the cache if it is there.
func (k *queries) parse(text string) (*keptQuery, error) {
	k.mu.RLock()
	q := k.mu.recent[text]
	k.mu.RUnlock()
	if q != nil {
		return q, nil
	}
	return k.parseAndKeep(text)
}

func (k *queries) parseAndKeep(text string) (*keptQuery, error) {
	k.mu.RLock()
	q := k.mu.older[text]
	k.mu.RUnlock()
	if q == nil {
		tree, err := syntax.Parse(text)
		if err != nil {
			return nil, err
		}
		q = &keptQuery{tree: tree}
		if len(text) > maxKeptQueryBytes {
			return q, nil
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.mu.recent) >= keptQueries || k.mu.recent == nil {
		k.mu.older, k.mu.recent = k.mu.recent, make(map[string]*keptQuery, keptQueries)
	}
	k.mu.recent[text] = q
	return q, nil
}
