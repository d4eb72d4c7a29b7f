// SPDX-License-Identifier: MIT

// Throughput: what is provisioned for a container, or for a database whose containers
// share it. It determines with how many physical partitions a container is made, and whether
// they are split later.

package catalog

import (
	"math"

	"github.com/mayflydb/mayfly/internal/value"
)

// Throughput is the budget of request units in a second: manual, autoscale up to a
// maximum, or none.
type Throughput struct {
	Manual       int `json:"manual,omitzero"`
	AutoscaleMax int `json:"autoscaleMax,omitzero"`
	// IncrementPercent goes with autoscale. It is only kept and shown: in the service it
	// raises the maximum as storage grows.
	IncrementPercent int `json:"incrementPercent,omitzero"`
	// Fixed marks autoscale without such a policy, not even one of zero percent.
	Fixed bool `json:"fixed,omitzero"`
}

// None reports whether there is neither manual nor autoscale throughput.
func (t Throughput) None() bool { return t.Manual == 0 && t.AutoscaleMax == 0 }

// PerSecond returns the most request units in a second.
func (t Throughput) PerSecond() int { return max(t.Manual, t.AutoscaleMax) }

// Provision is a throughput with its history.
type Provision struct {
	Throughput
	// Highest is the highest throughput ever provisioned, of either kind. It bounds how
	// low the throughput can be set.
	Highest int `json:"highest,omitzero"`
	// Revision grows with every change; TS is the time of the last.
	Revision uint64 `json:"revision,omitzero"`
	TS       int64  `json:"ts,omitzero"`
}

// Limits of the service. A database's minimum grows with every container that shares it,
// beyond sharingContainers.
const (
	maxThroughput       = 1_000_000
	sharingContainers   = 25
	maxIncrementPercent = 100
)

// throughputRule says which values are valid, in RU/s. The minimum grows with the highest
// value ever provisioned, divided by divisor.
type throughputRule struct {
	least, step, divisor int
}

var (
	manualRule    = throughputRule{least: 400, step: 100, divisor: 100}
	autoscaleRule = throughputRule{least: 1_000, step: 1_000, divisor: 10}
)

// defaultThroughput is that of a container without throughput of its own, in a database
// that has none to share.
var defaultThroughput = Throughput{Manual: manualRule.least}

// minimum returns the lowest throughput that can be set. For manual throughput the
// service documents it under "Minimum throughput limits" of its service quotas
// (learn.microsoft.com/azure/cosmos-db/concepts-limits): the largest of 400, the highest
// ever provisioned / 100 and, for a shared database, 400 and 100 for every container
// beyond 25. For autoscale it is in the autoscale FAQ (…/cosmos-db/autoscale-faq): the
// largest of 1,000, the highest ever / 10, and 1,000 for every container beyond 25, in
// steps of 1,000. Here both are rounded up to a step. The part that grows with the
// storage, 1 RU/s for a GB, is left out.
func (r throughputRule) minimum(highest, sharing int) int {
	n := r.least + max(0, sharing-sharingContainers)*r.step
	return max(n, roundUp(roundUp(highest, r.divisor)/r.divisor, r.step))
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }

// check checks a requested value against the rule.
func (r throughputRule) check(n, minimum int) error {
	const rule = "The offer should have valid throughput values between %d and %d inclusive in increments of %d. "
	switch {
	case n < minimum:
		return invalid(rule+"Requested throughput %d is less than required minimum throughput %d.", minimum, maxThroughput, r.step, n, minimum)
	case n > maxThroughput:
		return invalid(rule+"Requested throughput %d is more than possible maximum throughput %d.", minimum, maxThroughput, r.step, n, maxThroughput)
	case n%r.step != 0:
		return invalid(rule+"Requested throughput %d is not a multiple of %d.", minimum, maxThroughput, r.step, n, r.step)
	}
	return nil
}

// ManualThroughput checks the throughput of a create.
func ManualThroughput(n int) (Throughput, error) {
	return throughputRequest{rule: manualRule, perSecond: n}.grant(0, 0)
}

// AutoscaleThroughput checks the autoscale settings of a create: {"maxThroughput":4000}.
// The error is ErrAutoscaleSettings if they have another form.
func AutoscaleThroughput(settings []byte) (Throughput, error) {
	r, err := parseAutoscale(settings)
	if err != nil {
		return Throughput{}, err
	}
	return r.grant(0, 0)
}

// throughputRequest is the throughput that a client asks for, before it is checked.
type throughputRequest struct {
	rule             throughputRule
	perSecond        int
	incrementPercent int
	fixed            bool // no policy raises the maximum
}

// grant returns the requested throughput, if it is valid.
func (r throughputRequest) grant(highest, sharing int) (Throughput, error) {
	if err := r.rule.check(r.perSecond, r.rule.minimum(highest, sharing)); err != nil {
		return Throughput{}, err
	}
	if r.rule == manualRule {
		return Throughput{Manual: r.perSecond}, nil
	}
	return Throughput{AutoscaleMax: r.perSecond, IncrementPercent: r.incrementPercent, Fixed: r.fixed}, nil
}

func parseAutoscale(settings []byte) (throughputRequest, error) {
	r := throughputRequest{rule: autoscaleRule}
	o, err := value.ParseObject(settings)
	if err != nil {
		return r, ErrAutoscaleSettings
	}
	raw, _ := o.Lookup("maxThroughput")
	if r.perSecond, err = asInt("", raw, math.MinInt32, math.MaxInt32); err != nil {
		return r, ErrAutoscaleSettings
	}
	raw, ok := o.At(value.Path{"autoUpgradePolicy", "throughputPolicy", "incrementPercent"})
	if absent(raw, ok) {
		r.fixed = true
		return r, nil
	}
	if r.incrementPercent, err = asInt("", raw, 0, maxIncrementPercent); err != nil {
		return r, ErrAutoscaleSettings
	}
	return r, nil
}

// provision returns the provision of a new resource.
func provision(t Throughput, ts int64) Provision {
	if t.None() {
		return Provision{}
	}
	return Provision{Throughput: t, Highest: t.PerSecond(), Revision: 1, TS: ts}
}

// with returns the provision after a change.
func (p Provision) with(t Throughput, ts int64) Provision {
	return Provision{Throughput: t, Highest: max(p.Highest, t.PerSecond()), Revision: p.Revision + 1, TS: ts}
}
