// SPDX-License-Identifier: MIT

package catalog

import (
	"time"

	"github.com/mayflydb/mayfly/internal/value"
)

// MaxRetention is for how long all versions can be kept: as long as the service's
// longest continuous backup.
const MaxRetention = 30 * 24 * time.Hour

// Final reports whether what has expired stays gone, whatever becomes of the
// container's default. Where all versions are kept it does: its end has been told.
func (d *Definition) Final() bool { return d.TTLFinality || d.AllVersions > 0 }

// complete adds what a definition leaves to the account: in the service all versions
// are kept where continuous backup is on.
func (d *Definition) complete(o Options) {
	if d.AllVersions == 0 {
		d.AllVersions = o.Retention
	}
}

// parseChangeFeed reads for how long the change feed is to keep all versions.
func (d *Definition) parseChangeFeed(o *value.Object) error {
	policy, err := objectMember(o, "changeFeedPolicy")
	if policy == nil {
		return err
	}
	minutes, ok := policy.Lookup("retentionDuration")
	if absent(minutes, ok) {
		return nil
	}
	n, err := asInt("changeFeedPolicy.retentionDuration", minutes, 0, int(MaxRetention/time.Minute))
	d.AllVersions = time.Duration(n) * time.Minute
	return err
}
