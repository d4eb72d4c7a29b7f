// SPDX-License-Identifier: MIT

// Computed properties: what their definitions must be.

package engine

import (
	"errors"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/sql"
)

// parseDefinition reads the body of a container, and the queries in it.
func parseDefinition(body []byte) (*catalog.Definition, error) {
	d, err := catalog.ParseDefinition(body)
	if err != nil {
		return nil, err
	}
	if err := d.Check(); err != nil {
		return nil, err
	}
	for i, p := range d.Computed {
		if err := checkComputed(i, p.Query); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func checkComputed(i int, text string) error {
	q, err := sql.Parse(text)
	if err == nil && q.Select.Value == nil {
		return invalid("Required VALUE expression missing from computed property query '%s' at index (%d).", text, i)
	}
	if err == nil {
		err = sql.CheckComputed(q)
	}
	var bad *sql.Error
	if errors.As(err, &bad) {
		return invalid("Computed property at index (%d) has a malformed query: '%s' %s", i, text, bad.Message)
	}
	return err
}

func (e *Engine) computedProperties(c *catalog.Container) ([]sql.Computed, error) {
	var computed []sql.Computed
	for _, p := range c.Computed {
		q, err := e.queries.parse(p.Query)
		if err != nil {
			return nil, err
		}
		computed = append(computed, sql.Computed{Name: p.Name, Query: q.tree})
	}
	return computed, nil
}
