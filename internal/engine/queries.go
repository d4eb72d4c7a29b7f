// SPDX-License-Identifier: MIT

package engine

import (
	"sync"
	"sync/atomic"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

const (
	// keptQueries is how many queries are kept, at least: those that were used last. At
	// most, it is twice as many.
	keptQueries = 256
	// maxKeptQueryBytes is the longest text of a query that is kept. A syntax tree
	// takes some thirty times its text, and a program about as much.
	maxKeptQueryBytes = 4 << 10
)

// queries keeps queries by their text. Applications send few texts very often, with
// parameters that differ.
type queries struct {
	mu struct {
		sync.RWMutex
		// recent has what was used since older was recent itself.
		recent, older map[string]*keptQuery
	}
}

// keptQuery is a query that may come again.
type keptQuery struct {
	tree *syntax.Query // which many may read and none may change
	last atomic.Pointer[keptProgram]
}

// keptProgram is what a query was compiled to, for one state of a container.
type keptProgram struct {
	container *catalog.Container
	template  *sql.Template
}

// bind returns the program of a query for values of its parameters, if it is known.
func (k *keptQuery) bind(c *catalog.Container, params map[string]sql.Value) (*sql.Program, bool) {
	last := k.last.Load()
	if last == nil || last.container != c {
		return nil, false
	}
	return last.template.Bind(params)
}

// keep keeps what is in a program for other values too.
func (k *keptQuery) keep(c *catalog.Container, p *sql.Program) {
	if t := p.Template(); t != nil {
		k.last.Store(&keptProgram{c, t})
	}
}

// parse returns a query that has been parsed.
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
