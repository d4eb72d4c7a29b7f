// SPDX-License-Identifier: MIT

// Checks of computed properties' definitions.

package engine

import (
	"errors"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// checkComputed checks the queries of computed properties.
func checkComputed(properties []catalog.ComputedProperty) error {
	for i, p := range properties {
		if err := checkComputedQuery(i, p.Query); err != nil {
			return err
		}
	}
	return nil
}

func checkComputedQuery(i int, text string) error {
	q, err := syntax.Parse(text)
	if err == nil && q.Select.Value == nil {
		return invalid("Required VALUE expression missing from computed property query '%s' at index (%d).", text, i)
	}
	if err == nil {
		err = sql.CheckComputed(q)
	}
	var bad *syntax.Error
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
