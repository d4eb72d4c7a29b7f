// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"time"

	"github.com/mayflydb/mayfly/internal/store"
)

// ExpiringWithin returns how much of a container expires within each of the given
// times, which grow, if nothing is written: a few sums, where a forecast up to the
// last of them would take many.
func (e *Engine) ExpiringWithin(ctx context.Context, database, container string, within []time.Duration) ([]store.Amount, error) {
	c, err := e.catalog.Container(database, container)
	if err != nil {
		return nil, err
	}
	nowMs := e.clock.Now()
	untilMs := make([]int64, len(within))
	for i, d := range within {
		untilMs[i] = nowMs + d.Milliseconds()
	}
	sums := make([]store.Amount, len(within))
	for i := range c.Ranges {
		p, err := e.partition(c, i)
		if err != nil {
			return nil, err
		}
		o, err := p.Outlook(ctx, c.DefaultTTL, nowMs, untilMs)
		if err != nil {
			return nil, err
		}
		var sum store.Amount
		for n, a := range o.Expiring {
			sum = add(sum, a)
			sums[n] = add(sums[n], sum)
		}
	}
	return sums, nil
}
