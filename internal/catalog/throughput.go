// SPDX-License-Identifier: MIT

// Throughput: what is provisioned for a container, or for a database whose
// containers share it. It decides how many physical partitions a container is
// made with; a later change never moves them.

package catalog

import (
	"math"

	"github.com/mayflydb/mayfly/internal/value"
)

// Throughput is what may be spent in a second, in request units: manual,
// autoscale up to a maximum, or neither.
type Throughput struct {
	Manual       int `json:"manual,omitzero"`
	AutoscaleMax int `json:"autoscaleMax,omitzero"`
	// IncrementPercent goes with autoscale. It is kept and shown: in the service
	// it raises the maximum as storage grows.
	IncrementPercent int `json:"incrementPercent,omitzero"`
	// Fixed goes with autoscale that has no such policy, not even one of zero percent.
	Fixed bool `json:"fixed,omitzero"`
}

// None reports that there is neither manual nor autoscale throughput.
func (t Throughput) None() bool { return t.Manual == 0 && t.AutoscaleMax == 0 }

// PerSecond returns the most that may be spent in a second.
func (t Throughput) PerSecond() int { return max(t.Manual, t.AutoscaleMax) }

// Provision is a throughput with its history.
type Provision struct {
	Throughput
	// Highest is the most that was ever provisioned, of either kind: it bounds how
	// low the throughput can be set.
	Highest int `json:"highest,omitzero"`
	// Revision grows with every change; TS is the time of the last.
	Revision uint64 `json:"revision,omitzero"`
	TS       int64  `json:"ts,omitzero"`
}

// Limits of the service. A database's lowest throughput grows with every container
// beyond sharingContainers that shares it.
const (
	maxThroughput       = 1_000_000
	sharingContainers   = 25
	maxIncrementPercent = 100
)

// throughputRule says what may be asked for, in RU/s. The lowest value grows with
// the highest that was ever provisioned, divided by divisor.
type throughputRule struct {
	least, step, divisor int
}

var (
	manualRule    = throughputRule{least: 400, step: 100, divisor: 100}
	autoscaleRule = throughputRule{least: 1_000, step: 1_000, divisor: 10}
)

// defaultThroughput is what a container has for which nobody asked for any, in a
// database that has none to share.
var defaultThroughput = Throughput{Manual: manualRule.least}

// minimum returns how low the throughput may be set. For manual throughput the
// service documents it under "Minimum throughput limits" of its service quotas
// (learn.microsoft.com/azure/cosmos-db/concepts-limits): the largest of 400, the
// highest ever provisioned / 100 and, for a shared database, 400 and 100 for every
// container beyond 25. For autoscale it is in the autoscale FAQ
// (…/cosmos-db/autoscale-faq): the largest of 1,000, the highest ever / 10, and
// 1,000 for every container beyond 25, in steps of 1,000. Here both are rounded up
// to a step, and the part that grows with the storage, 1 RU/s for a GB, is left out.
func (r throughputRule) minimum(highest, sharing int) int {
	n := r.least + max(0, sharing-sharingContainers)*r.step
	return max(n, roundUp(roundUp(highest, r.divisor)/r.divisor, r.step))
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }

// check compares a value that was asked for with the rule.
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

// ManualThroughput checks what a client asks for when it creates something.
func ManualThroughput(n int) (Throughput, error) {
	return throughputRequest{rule: manualRule, perSecond: n}.grant(0, 0)
}

// AutoscaleThroughput checks what a client asks for when it creates something:
// {"maxThroughput":4000}. The error is ErrAutoscaleSettings if it is nothing of
// this kind.
func AutoscaleThroughput(settings []byte) (Throughput, error) {
	r, err := parseAutoscale(settings)
	if err != nil {
		return Throughput{}, err
	}
	return r.grant(0, 0)
}

// throughputRequest is what a client asks for, before it is compared with what it
// may have.
type throughputRequest struct {
	rule             throughputRule
	perSecond        int
	incrementPercent int
	fixed            bool // there is no policy that raises the maximum
}

// grant returns the throughput that was asked for, if it may be had.
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

// provision returns what a new resource starts with.
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
