// SPDX-License-Identifier: MIT

// How much a partition holds, how much of it is expired, and how much will be at a given
// time. These are sums over the counters, exact to the millisecond, and their cost does not
// depend on the number of items. A sum over a time adds up whole hours, the minutes at both
// ends, and the seconds at theirs. Only in the second that a cut falls into, single rows
// are read.

package store

import (
	"context"
	"encoding/binary"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
)

// Amount is a number of items and the bytes of their bodies.
type Amount struct {
	Items int64 `json:"items"`
	Bytes int64 `json:"bytes"`
}

// Plus returns the sum of both.
func (a Amount) Plus(b Amount) Amount { return Amount{a.Items + b.Items, a.Bytes + b.Bytes} }

func (a Amount) minus(b Amount) Amount { return Amount{a.Items - b.Items, a.Bytes - b.Bytes} }

// amount returns the item as an Amount, to be added (sign 1) or subtracted (sign -1).
func (h *header) amount(sign int64) Amount { return Amount{sign, sign * int64(h.size)} }

func (a Amount) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(a.Items))
	return binary.BigEndian.AppendUint64(dst, uint64(a.Bytes))
}

func decodeAmount(raw []byte) Amount {
	return Amount{int64(binary.BigEndian.Uint64(raw)), int64(binary.BigEndian.Uint64(raw[8:]))}
}

// countSeconds sums up the items of one kind with times in the seconds from, inclusive, to
// to, exclusive.
func (s stored) countSeconds(k ttlKind, from, to int64) (Amount, error) {
	return s.countLevel([]level{levelHour, levelMinute, levelSecond}, k.class(), from, to)
}

func (s stored) countLevel(levels []level, c class, from, to int64) (Amount, error) {
	if from >= to {
		return Amount{}, nil
	}
	n := levels[0].seconds()
	first, last := (from+n-1)/n*n, to/n*n
	if first > last { // from and to are in one bucket
		return s.countLevel(levels[1:], c, from, to)
	}
	total, err := s.countBuckets(bucketKey{c, levels[0], first}, last)
	if err != nil || len(levels) == 1 {
		return total, err
	}
	for _, end := range [2][2]int64{{from, first}, {last, to}} {
		a, err := s.countLevel(levels[1:], c, end[0], end[1])
		if err != nil {
			return Amount{}, err
		}
		total = total.Plus(a)
	}
	return total, nil
}

// countBuckets sums up the buckets of one level.
func (s stored) countBuckets(from bucketKey, to int64) (total Amount, err error) {
	upper := from
	upper.start = to
	for e, err := range s.snap.Scan(s.prefix.appendStatKey(nil, from), s.prefix.appendStatKey(nil, upper), kv.Forward) {
		var b bucket
		if err == nil {
			b, err = decodeBucket(e)
		}
		if err != nil {
			return Amount{}, err
		}
		total = total.Plus(b.Amount)
	}
	return total, nil
}

// expiredBy returns how much is expired by the cuts.
func (s stored) expiredBy(c cuts) (total Amount, err error) {
	for k := range expiring {
		expired, err := s.countBetween(k, -1, c[k])
		if err != nil {
			return Amount{}, err
		}
		total = total.Plus(expired)
	}
	return total, nil
}

// countBetween sums up the items of a kind after one cut and up to another.
func (s stored) countBetween(k ttlKind, fromMs, toMs int64) (Amount, error) {
	a, err := s.countSeconds(k, (fromMs+1)/1000, (toMs+1)/1000)
	if err != nil {
		return Amount{}, err
	}
	before, err := s.countInSecond(k, fromMs)
	if err != nil {
		return Amount{}, err
	}
	last, err := s.countInSecond(k, toMs)
	return a.Plus(last).minus(before), err
}

// countInSecond sums up the items of the second that a cut falls into, up to the cut. It is
// zero if the cut is the end of the second. Usually all items of the second are on one side
// of the cut; if not, their rows are read.
func (s stored) countInSecond(k ttlKind, cutMs int64) (total Amount, err error) {
	if cutMs < 0 || (cutMs+1)%1000 == 0 {
		return Amount{}, nil
	}
	second := cutMs / 1000
	b, err := s.bucketAt(bucketKey{k.class(), levelSecond, second})
	switch at := uint16(cutMs % 1000); {
	case err != nil || b.Items == 0 || at < b.firstMs:
		return Amount{}, err
	case at >= b.lastMs:
		return b.Amount, nil
	}
	for e, err := range s.order(k, mark{1000 * second, position{LSN: b.firstLSN}}) {
		row, err := k.parseRow(e, err)
		if err != nil {
			return Amount{}, err
		}
		if row.ms > cutMs {
			break
		}
		if row.kind == k && row.ms/1000 == second {
			total = total.Plus(Amount{1, row.size})
		}
	}
	return total, nil
}

// Usage is what a partition holds at one moment. Live is what clients see. Expired is not
// purged yet, and still takes space.
type Usage struct {
	Live    Amount `json:"live"`
	Expired Amount `json:"expiredPending"`
}

// Plus returns the sum of both.
func (u Usage) Plus(v Usage) Usage { return Usage{u.Live.Plus(v.Live), u.Expired.Plus(v.Expired)} }

// Usage returns what the partition holds, as of nowMs.
func (p *Partition) Usage(nowMs int64) (Usage, error) {
	nowMs = p.notBefore(nowMs)
	v, err := p.acquire()
	if err != nil {
		return Usage{}, err
	}
	defer p.release(v)
	return p.usageUnder(v, v.rules.cutsAt(nowMs))
}

// expiredCount is how much was expired and not yet purged when that was last counted.
type expiredCount struct {
	counted bool // false before the first count
	atMs    int64
	epoch   uint64 // of the settings at the count
	expired Amount
	purged  Amount // published.purged at the count
}

// estimateMs is how long LiveEstimate uses a count of expired items.
const estimateMs = 1000

// LiveEstimate returns how much is live, cheaply enough for every request. It includes all
// writes and purges. Items that expired within the last second may still be in it.
func (p *Partition) LiveEstimate(nowMs int64) (Amount, error) {
	nowMs = p.notBefore(nowMs)
	p.mu.Lock()
	live, known := p.liveLocked(nowMs)
	p.mu.Unlock()
	if known {
		return live, nil
	}
	return p.countLive(nowMs)
}

// liveLocked returns how much is live, if that is known without reading rows.
func (p *Partition) liveLocked(nowMs int64) (live Amount, known bool) {
	if p.mu.now.rules.inert() {
		return p.mu.now.meta.Amount, true
	}
	l := &p.mu.expiredCount
	if !l.counted || l.epoch != p.mu.now.container.Epoch || nowMs < l.atMs || nowMs-l.atMs >= estimateMs {
		return Amount{}, false
	}
	return p.mu.now.meta.minus(l.expired.minus(p.mu.now.purged.minus(l.purged))), true
}

// countLive counts what has expired, and keeps the result for liveLocked.
func (p *Partition) countLive(nowMs int64) (Amount, error) {
	p.mu.Lock()
	v, err := p.acquireLocked()
	l := expiredCount{counted: true, atMs: nowMs, epoch: p.mu.now.container.Epoch, purged: p.mu.now.purged}
	p.mu.Unlock()
	if err != nil {
		return Amount{}, err
	}
	defer p.release(v)
	u, err := p.usageUnder(v, v.rules.cutsAt(nowMs))
	if err != nil {
		return Amount{}, err
	}
	l.expired = u.Expired
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.expiredCount = l
	return u.Live, nil
}

func (p *Partition) usageUnder(v *view, c cuts) (Usage, error) {
	expired, err := v.expiredBy(c)
	if err != nil {
		return Usage{}, err
	}
	return Usage{Live: v.meta.Amount.minus(expired), Expired: expired}, nil
}

// WhatIf is the effect of another default TTL on a partition at one moment.
type WhatIf struct {
	// Live is what is live now. Expires is the part of it that would be expired, Returns
	// what is expired and would be live, and Remains what would be live in the end.
	Live    Amount `json:"live"`
	Expires Amount `json:"expires"`
	Returns Amount `json:"returns"`
	Remains Amount `json:"remains"`
}

// Plus returns the sum of both.
func (c WhatIf) Plus(d WhatIf) WhatIf {
	return WhatIf{c.Live.Plus(d.Live), c.Expires.Plus(d.Expires), c.Returns.Plus(d.Returns), c.Remains.Plus(d.Remains)}
}

// rulesWith returns the rules under another default TTL of the container.
func (s *published) rulesWith(containerDefault catalog.TTL, nowMs int64) rules {
	other := *s.container
	other.DefaultTTL = containerDefault
	return s.rules.finalise(&other, nowMs)
}

// WhatIf returns the effect that another default TTL of the container would have at nowMs.
// It changes nothing.
func (p *Partition) WhatIf(containerDefault catalog.TTL, nowMs int64) (WhatIf, error) {
	nowMs = p.notBefore(nowMs)
	v, err := p.acquire()
	if err != nil {
		return WhatIf{}, err
	}
	defer p.release(v)
	then := v.rulesWith(containerDefault, nowMs)
	now, next := v.rules.cutsAt(nowMs), then.cutsAt(nowMs)
	c := WhatIf{Live: v.meta.Amount, Remains: v.meta.Amount}
	for k := range expiring {
		was, err := v.countBetween(k, -1, now[k])
		if err != nil {
			return WhatIf{}, err
		}
		is, err := v.countBetween(k, -1, next[k])
		if err != nil {
			return WhatIf{}, err
		}
		c.Live, c.Remains = c.Live.minus(was), c.Remains.minus(is)
		if next[k] > now[k] {
			c.Expires = c.Expires.Plus(is.minus(was))
		} else {
			c.Returns = c.Returns.Plus(was.minus(is))
		}
	}
	return c, nil
}

// Outlook is how much of a partition expires when, if nothing is written.
type Outlook struct {
	// Expiring has, for each of the given moments, how much expires by then and not by the
	// moment before.
	Expiring []Amount
	// Later expires after the last of the moments. Never does not expire.
	Later, Never Amount
	// LastMs is when the last item expires. It is 0 if none does.
	LastMs int64
}

// Outlook returns how much of what is live at nowMs expires by each of the given moments,
// which are in ascending order and taken to be ends of seconds. containerDefault may differ
// from the present default TTL.
func (p *Partition) Outlook(ctx context.Context, containerDefault catalog.TTL, nowMs int64, untilMs []int64) (Outlook, error) {
	nowMs = p.notBefore(nowMs)
	v, err := p.acquire()
	if err != nil {
		return Outlook{}, err
	}
	defer p.release(v)
	r := v.rulesWith(containerDefault, nowMs)
	moments := []cuts{r.cutsAt(nowMs)}
	for _, until := range untilMs {
		moments = append(moments, r.cutsAt(endOfSecond(until)))
	}
	o := Outlook{Expiring: make([]Amount, len(untilMs)), Never: v.meta.Amount}
	for k := range expiring {
		if err := o.add(ctx, v, k, &r, moments); err != nil {
			return Outlook{}, err
		}
	}
	return o, nil
}

// add adds the items of one kind. The first of the moments is now.
func (o *Outlook) add(ctx context.Context, v *view, k ttlKind, r *rules, moments []cuts) error {
	gone, err := v.countBetween(k, -1, moments[0][k])
	if err != nil {
		return err
	}
	o.Never = o.Never.minus(gone)
	if !r.expires(k) {
		return nil
	}
	all, err := v.countSeconds(k, 0, endOfTimeSeconds)
	if err != nil {
		return err
	}
	rest := all.minus(gone)
	o.Never = o.Never.minus(rest)
	if rest.Items > 0 {
		lastMs, err := v.lastOf(k)
		if err != nil {
			return err
		}
		o.LastMs = max(o.LastMs, r.expiresAt(k, lastMs))
	}
	for i := range o.Expiring {
		if err := ctx.Err(); err != nil {
			return err
		}
		a, err := v.countBetween(k, moments[i][k], moments[i+1][k])
		if err != nil {
			return err
		}
		o.Expiring[i] = o.Expiring[i].Plus(a)
		rest = rest.minus(a)
	}
	o.Later = o.Later.Plus(rest)
	return nil
}

// endOfSecond returns the last millisecond of the second that ms is in.
func endOfSecond(ms int64) int64 { return ms - ms%1000 + 999 }

// endOfTimeSeconds is after all deadlines.
const endOfTimeSeconds = 1 << 40

// lastOf returns the latest time of the items of a kind, which has some. A bucket's bounds
// may be wider than its items are, so the rows of its second are read.
func (s stored) lastOf(k ttlKind) (lastMs int64, err error) {
	lower := s.prefix.appendStatKey(nil, bucketKey{k.class(), levelSecond, 0})
	upper := s.prefix.appendStatKey(nil, bucketKey{k.class(), levelSecond, endOfTimeSeconds})
	for e, err := range s.snap.Scan(lower, upper, kv.Reverse) {
		if err != nil {
			return 0, err
		}
		b, err := parseBucket(e)
		if err != nil {
			return 0, err
		}
		if b.firstMs == b.lastMs {
			return 1000*b.start + int64(b.lastMs), nil
		}
		return s.lastIn(k, b.start, b.firstLSN)
	}
	return 0, nil
}

// lastIn returns the latest time of the items of a kind in a second.
func (s stored) lastIn(k ttlKind, second int64, firstLSN uint64) (lastMs int64, err error) {
	for e, err := range s.order(k, mark{1000 * second, position{LSN: firstLSN}}) {
		row, err := k.parseRow(e, err)
		if err != nil {
			return 0, err
		}
		if row.ms/1000 > second {
			break
		}
		if row.kind == k && row.ms/1000 == second {
			lastMs = max(lastMs, row.ms)
		}
	}
	return lastMs, nil
}
