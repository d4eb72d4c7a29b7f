// SPDX-License-Identifier: MIT

package catalog

import (
	"time"

	"github.com/mayflydb/mayfly/internal/value"
)

// maxRetentionMinutes is for how long all versions can be kept: as long as the
// service's longest continuous backup.
const maxRetentionMinutes = 30 * 24 * 60

// Final reports whether what has expired stays gone, whatever becomes of the
// container's default. Where all versions are kept it does: its end has been told.
func (d *Definition) Final() bool { return d.TTLFinality || d.AllVersions > 0 }

// parseChangeFeed reads for how long the change feed is to keep all versions.
func (d *Definition) parseChangeFeed(o *value.Object) error {
	raw, ok := o.Lookup("changeFeedPolicy")
	if absent(raw, ok) {
		return nil
	}
	policy, err := asObject("changeFeedPolicy", raw)
	if err != nil {
		return err
	}
	minutes, ok := policy.Lookup("retentionDuration")
	if absent(minutes, ok) {
		return nil
	}
	n, err := asInt("changeFeedPolicy.retentionDuration", minutes, 0, maxRetentionMinutes)
	d.AllVersions = time.Duration(n) * time.Minute
	return err
}
