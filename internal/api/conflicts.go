// SPDX-License-Identifier: MIT

// The conflicts of a container. However many regions take writes, they all write to one
// engine, so there are never any: the list is empty, and reads of a conflict answer 404.

package api

import (
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
)

func (c *Call) readConflict() error {
	if _, err := c.container(); err != nil {
		return err
	}
	return catalog.ErrNotFound
}

func (c *Call) listConflicts() error {
	of, err := c.container()
	if err != nil {
		return err
	}
	return c.page(of.RIDText, "Conflicts", nil, 0)
}

func (c *Call) queryConflicts() error {
	of, err := c.container()
	if err != nil {
		return err
	}
	if r := &c.Request; r.PartitionKey == "" && r.Range == "" && !r.CrossPartition {
		return engine.ErrCrossPartition
	}
	return c.queryResources(of.RIDText, "Conflicts", nil)
}
