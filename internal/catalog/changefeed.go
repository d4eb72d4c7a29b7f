// SPDX-License-Identifier: MIT

package catalog

import (
	"time"

	"github.com/mayflydb/mayfly/internal/value"
)

// MaxRetention is the longest that all versions can be kept: as long as the service's
// longest continuous backup.
const MaxRetention = 30 * 24 * time.Hour

// Final reports whether an expired item stays gone if the container's default TTL
// changes. It does if all versions are kept, since the change feed has already reported
// its end.
func (d *Definition) Final() bool { return d.TTLFinality || d.AllVersions > 0 }

// complete fills in what a definition leaves to the account. In the service, continuous
// backup keeps all versions.
func (d *Definition) complete(o Options) {
	if d.AllVersions == 0 {
		d.AllVersions = o.Retention
	}
}

// parseChangeFeed parses how long the change feed keeps all versions.
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
