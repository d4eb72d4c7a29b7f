// SPDX-License-Identifier: MIT

// The regions of a cluster. They are in the catalog, so every node knows a change with its
// next moment.

package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/cluster"
)

// Regions returns the regions of the cluster; nil if there is none, or its nodes name none.
// The caller must not change them.
func (e *Engine) Regions() *catalog.Regions {
	if e.node == nil {
		return nil
	}
	return e.catalog.Regions()
}

// writeRegion returns the name of the first region, whose nodes are preferred as owners.
func (e *Engine) writeRegion() string {
	if r := e.catalog.Regions(); r != nil {
		return r.List[0].Name
	}
	return ""
}

// enterRegion adds the region of this node to those of the cluster. What the node that
// started last says of its region, and of writes in all regions, holds for all.
func (e *Engine) enterRegion(ctx context.Context) error {
	region := e.options.Region
	if region.Name == "" {
		return nil
	}
	return e.catalog.ChangeRegions(ctx, func(was *catalog.Regions) (catalog.Regions, error) {
		next, err := was.Entered(region, e.options.MultiWrite)
		if i := was.Find(region.Name); err == nil && i >= 0 && was.List[i] != region {
			e.logger.Warn("the region has another endpoint from now on", "region", region.Name, "was", was.List[i].Endpoint, "is", region.Endpoint)
		}
		if err == nil && len(was.List) > 0 && was.MultiWrite != next.MultiWrite {
			e.logger.Warn("writes in every region were switched, as this node was started", "multiWrite", next.MultiWrite)
		}
		return next, err
	})
}

// Failover makes a region of the cluster the first: it takes writes from then on, and
// partitions move to its nodes.
func (e *Engine) Failover(ctx context.Context, region string) error {
	return e.changeRegions(ctx, func(was *catalog.Regions) (catalog.Regions, error) { return was.Promoted(region) })
}

// ForgetRegion takes a region out of the cluster that has no live node.
func (e *Engine) ForgetRegion(ctx context.Context, region string) error {
	return e.changeRegions(ctx, func(was *catalog.Regions) (catalog.Regions, error) {
		next, err := was.Without(region)
		if err != nil {
			return next, err
		}
		name := was.List[was.Find(region)].Name
		for _, m := range e.node.Members() {
			if m.Region == name && (m.State == cluster.Serving.String() || m.State == cluster.Draining.String()) {
				return next, invalid("The region '%s' has a live node, '%s'. Stop its nodes first.", name, m.Name)
			}
		}
		return next, nil
	})
}

func (e *Engine) changeRegions(ctx context.Context, change func(was *catalog.Regions) (catalog.Regions, error)) error {
	if e.node == nil {
		return ErrNoCluster
	}
	err := e.catalog.ChangeRegions(ctx, change)
	var said *catalog.InvalidError
	if err != nil && !errors.As(err, &said) {
		err = fmt.Errorf("change the regions: %w", err)
	}
	return unavailable(err)
}
