// SPDX-License-Identifier: MIT

// How much there is, how much of it is expired, and how much will be by when: sums
// over the counters, exact to the millisecond, and quick whatever the number of
// items. A sum over a time adds up whole hours, minutes at its ends, and seconds at
// theirs; in the second that a line falls into, the rows of that second are read.

package store

import (
	"context"
	"encoding/binary"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
)

// Amount is a number of items and the bytes of their bodies.
type Amount struct {
	Items, Bytes int64
}

// Plus returns the sum of both.
func (a Amount) Plus(b Amount) Amount { return Amount{a.Items + b.Items, a.Bytes + b.Bytes} }

func (a Amount) minus(b Amount) Amount { return Amount{a.Items - b.Items, a.Bytes - b.Bytes} }

// tally adds counters up.
type tally struct {
	snap   kv.Snapshot
	prefix *prefix
}

// sum adds up the seconds from, inclusive, to to, exclusive, of one class.
func (t *tally) sum(c class, from, to int64) (Amount, error) {
	return t.sumLevel([]level{levelHour, levelMinute, levelSecond}, c, from, to)
}

func (t *tally) sumLevel(levels []level, c class, from, to int64) (Amount, error) {
	if from >= to {
		return Amount{}, nil
	}
	n := levels[0].seconds()
	first, last := (from+n-1)/n*n, to/n*n
	if first > last { // both ends lie in one bucket
		return t.sumLevel(levels[1:], c, from, to)
	}
	total, err := t.scan(bucketKey{c, levels[0], first}, last)
	if err != nil || len(levels) == 1 {
		return total, err
	}
	for _, end := range [2][2]int64{{from, first}, {last, to}} {
		a, err := t.sumLevel(levels[1:], c, end[0], end[1])
		if err != nil {
			return Amount{}, err
		}
		total = total.Plus(a)
	}
	return total, nil
}

// scan adds up the buckets of one level.
func (t *tally) scan(from bucketKey, to int64) (Amount, error) {
	var total Amount
	upper := from
	upper.start = to
	for e, err := range t.snap.Scan(t.prefix.appendStatKey(nil, from), t.prefix.appendStatKey(nil, upper), kv.Forward) {
		if err != nil {
			return Amount{}, err
		}
		b, err := decodeBucket(e.Key, e.Value)
		if err != nil {
			return Amount{}, err
		}
		total = total.Plus(Amount{b.items, b.bytes})
	}
	return total, nil
}

// gone returns what is gone by the cuts.
func (t *tally) gone(c cuts) (Amount, error) {
	inherit, err := t.goneInheriting(c.inheritMs)
	if err != nil {
		return Amount{}, err
	}
	own, err := t.goneByOwn(c.ownMs)
	return inherit.Plus(own), err
}

func (t *tally) goneInheriting(cutMs int64) (Amount, error) {
	whole, err := t.sum(classInherits, 0, (cutMs+1)/1000)
	if err != nil {
		return Amount{}, err
	}
	rest, err := t.inheritsInSecond(cutMs)
	return whole.Plus(rest), err
}

func (t *tally) goneByOwn(cutMs int64) (Amount, error) {
	whole, err := t.sum(classOwn, 0, (cutMs+1)/1000)
	if err != nil {
		return Amount{}, err
	}
	rest, err := t.ownInSecond(cutMs)
	return whole.Plus(rest), err
}

// partly returns what of the second that a cut falls into lies before the cut, if
// that is not all of the second, and whether its rows have to be read for it: as a
// rule all its items lie on one side.
func (t *tally) partly(c class, cutMs int64) (whole Amount, firstLSN uint64, read bool, err error) {
	if cutMs < 0 || (cutMs+1)%1000 == 0 {
		return Amount{}, 0, false, nil
	}
	key := t.prefix.appendStatKey(nil, bucketKey{c, levelSecond, cutMs / 1000})
	raw, found, err := t.snap.Get(key)
	if err != nil || !found {
		return Amount{}, 0, false, err
	}
	b, err := decodeBucket(key, raw)
	switch at := uint16(cutMs % 1000); {
	case err != nil || at < b.firstMs:
		return Amount{}, 0, false, err
	case at >= b.lastMs:
		return Amount{b.items, b.bytes}, 0, false, nil
	}
	return Amount{}, b.firstLSN, true, nil
}

// inheritsInSecond returns what was written from the start of the cut's second up
// to the cut, if that is not the whole second.
func (t *tally) inheritsInSecond(cutMs int64) (Amount, error) {
	total, firstLSN, read, err := t.partly(classInherits, cutMs)
	if err != nil || !read {
		return total, err
	}
	_, upper := t.prefix.space(feedSpace)
	for e, err := range t.snap.Scan(t.prefix.appendFeedKey(nil, firstLSN, 0), upper, kv.Forward) {
		if err != nil {
			return Amount{}, err
		}
		f, err := parseFeedRow(e)
		if err != nil {
			return Amount{}, err
		}
		if f.writtenMs > cutMs {
			break
		}
		if f.kind == kindInherits && f.writtenMs/1000 == cutMs/1000 {
			total = total.Plus(Amount{1, f.size})
		}
	}
	return total, nil
}

func (t *tally) ownInSecond(cutMs int64) (Amount, error) {
	total, _, read, err := t.partly(classOwn, cutMs)
	if err != nil || !read {
		return total, err
	}
	lower := t.prefix.appendOwnKey(nil, cutMs-cutMs%1000, 0, 0)
	upper := t.prefix.appendOwnKey(nil, cutMs+1, 0, 0)
	for e, err := range t.snap.Scan(lower, upper, kv.Forward) {
		if err != nil {
			return Amount{}, err
		}
		if len(e.Value) != ownRowBytes {
			return Amount{}, corrupt(e.Key, "not an own row")
		}
		total = total.Plus(Amount{1, int64(binary.BigEndian.Uint32(e.Value[8:]))})
	}
	return total, nil
}

// Usage is what a partition holds at one moment.
type Usage struct {
	Live, Expired Amount
	LSN           uint64
}

// Usage returns what the partition holds, as of nowMs.
func (p *Partition) Usage(nowMs int64) (Usage, error) {
	v, err := p.acquire()
	if err != nil {
		return Usage{}, err
	}
	defer p.release(v)
	return p.usageUnder(v, v.rules.cutsAt(nowMs))
}

// deadLately is what had expired and was still there when that was last counted.
type deadLately struct {
	counted bool // ever
	atMs    int64
	epoch   uint64 // of the settings that it was counted by
	dead    Amount
	buried  Amount // the partition's of then
}

// latelyMs is for how long what has expired is not counted again for LiveLately.
const latelyMs = 1000

// LiveLately returns what is live, for those who ask with every request. It knows of
// every write, and of what had expired a second ago: what has done so since may still
// be in it.
func (p *Partition) LiveLately(nowMs int64) (Amount, error) {
	p.mu.Lock()
	live, known := p.liveLocked(nowMs)
	p.mu.Unlock()
	if known {
		return live, nil
	}
	return p.countLive(nowMs)
}

// liveLocked returns what is live, if that can be told without reading.
func (p *Partition) liveLocked(nowMs int64) (live Amount, known bool) {
	if p.mu.now.rules.inert() {
		return p.mu.now.total(), true
	}
	l := &p.mu.lately
	if !l.counted || l.epoch != p.mu.now.container.Epoch || nowMs < l.atMs || nowMs-l.atMs >= latelyMs {
		return Amount{}, false
	}
	return p.mu.now.total().minus(l.dead.minus(p.mu.now.buried.minus(l.buried))), true
}

// countLive counts what has expired, and notes it for liveLocked.
func (p *Partition) countLive(nowMs int64) (Amount, error) {
	p.mu.Lock()
	v, err := p.acquireLocked()
	l := deadLately{counted: true, atMs: nowMs, epoch: p.mu.now.container.Epoch, buried: p.mu.now.buried}
	p.mu.Unlock()
	if err != nil {
		return Amount{}, err
	}
	defer p.release(v)
	u, err := p.usageUnder(v, v.rules.cutsAt(nowMs))
	if err != nil {
		return Amount{}, err
	}
	l.dead = u.Expired
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.lately = l
	return u.Live, nil
}

func (p *Partition) usageUnder(v *view, c cuts) (Usage, error) {
	t := tally{v.snap, &p.prefix}
	dead, err := t.gone(c)
	if err != nil {
		return Usage{}, err
	}
	return Usage{Live: v.total().minus(dead), Expired: dead, LSN: v.meta.LSN}, nil
}

// Change is what another default TTL would do to a partition at one moment.
type Change struct {
	// Expires is what is live and would be gone, Returns what is gone and would
	// come back, Live what would be live then.
	Expires, Returns, Live Amount
}

// WhatIf says what another default TTL of the container would do at nowMs. It
// changes nothing.
func (p *Partition) WhatIf(containerDefault catalog.TTL, nowMs int64) (Change, error) {
	v, err := p.acquire()
	if err != nil {
		return Change{}, err
	}
	defer p.release(v)
	other := *v.container
	other.DefaultTTL = containerDefault
	then := v.rules.finalise(&other, nowMs)
	now := v.rules.cutsAt(nowMs)
	next := then.cutsAt(nowMs)
	t := tally{v.snap, &p.prefix}
	c := Change{Live: v.total()}
	for _, side := range []struct {
		gone            func(int64) (Amount, error)
		nowCut, nextCut int64
	}{{t.goneInheriting, now.inheritMs, next.inheritMs}, {t.goneByOwn, now.ownMs, next.ownMs}} {
		was, err := side.gone(side.nowCut)
		if err != nil {
			return Change{}, err
		}
		is, err := side.gone(side.nextCut)
		if err != nil {
			return Change{}, err
		}
		c.Live = c.Live.minus(is)
		if side.nextCut > side.nowCut {
			c.Expires = c.Expires.Plus(is.minus(was))
		} else {
			c.Returns = c.Returns.Plus(was.minus(is))
		}
	}
	return c, nil
}

// Outlook is what of a partition will expire when, if nothing is written.
type Outlook struct {
	// Expiring has, for each of the moments that were asked for, what expires by
	// then and not by the one before.
	Expiring []Amount
	// Later is what expires after the last of them, and Never what never does.
	Later, Never Amount
	// LastMs is about when the last item expires: within the hour. Zero if none
	// does.
	LastMs int64
}

// Outlook says what expires by each of the given moments, which grow, of what is
// live at nowMs. With a container default other than the present, it says what
// would. Moments are taken to be ends of seconds.
func (p *Partition) Outlook(ctx context.Context, containerDefault catalog.TTL, nowMs int64, untilMs []int64) (Outlook, error) {
	v, err := p.acquire()
	if err != nil {
		return Outlook{}, err
	}
	defer p.release(v)
	other := *v.container
	other.DefaultTTL = containerDefault
	r := v.rules.finalise(&other, nowMs)
	t := tally{v.snap, &p.prefix}
	moments := []cuts{r.cutsAt(nowMs)}
	for _, until := range untilMs {
		moments = append(moments, r.cutsAt(endOfSecond(until)))
	}
	o := Outlook{Expiring: make([]Amount, len(untilMs)), Never: v.total()}
	for _, s := range t.sides(&r) {
		if err := o.add(ctx, &t, s, moments); err != nil {
			return Outlook{}, err
		}
	}
	return o, nil
}

// side is one of the two kinds of items that expire.
type side struct {
	class    class
	cut      func(cuts) int64
	inSecond func(cutMs int64) (Amount, error)
	expires  bool  // all of it, at some time
	addMs    int64 // from the time that it is counted at to its deadline
}

func (t *tally) sides(r *rules) [2]side {
	return [2]side{
		{
			class: classInherits, cut: func(c cuts) int64 { return c.inheritMs }, inSecond: t.inheritsInSecond,
			expires: r.containerDefault > 0, addMs: 1000 * int64(r.containerDefault),
		},
		{
			class: classOwn, cut: func(c cuts) int64 { return c.ownMs }, inSecond: t.ownInSecond,
			expires: r.containerDefault != catalog.TTLAbsent,
		},
	}
}

// add adds what is to be said of one side. The first of the moments is now.
func (o *Outlook) add(ctx context.Context, t *tally, s side, moments []cuts) error {
	gone, err := t.between(s, -1, s.cut(moments[0]))
	if err != nil {
		return err
	}
	o.Never = o.Never.minus(gone)
	if !s.expires {
		return nil
	}
	all, err := t.sum(s.class, 0, endOfTimeSeconds)
	if err != nil {
		return err
	}
	rest := all.minus(gone)
	o.Never = o.Never.minus(rest)
	if rest.Items > 0 {
		lastMs, err := t.last(s.class)
		if err != nil {
			return err
		}
		o.LastMs = max(o.LastMs, lastMs+s.addMs)
	}
	for i := range o.Expiring {
		if err := ctx.Err(); err != nil {
			return err
		}
		a, err := t.between(s, s.cut(moments[i]), s.cut(moments[i+1]))
		if err != nil {
			return err
		}
		o.Expiring[i] = o.Expiring[i].Plus(a)
		rest = rest.minus(a)
	}
	o.Later = o.Later.Plus(rest)
	return nil
}

// between returns what of a side lies after one cut and up to another.
func (t *tally) between(s side, fromMs, toMs int64) (Amount, error) {
	a, err := t.sum(s.class, (fromMs+1)/1000, (toMs+1)/1000)
	if err != nil {
		return Amount{}, err
	}
	before, err := s.inSecond(fromMs)
	if err != nil {
		return Amount{}, err
	}
	last, err := s.inSecond(toMs)
	return a.Plus(last).minus(before), err
}

// endOfSecond returns the last millisecond of the second that ms is in.
func endOfSecond(ms int64) int64 { return ms - ms%1000 + 999 }

// endOfTimeSeconds is after every deadline that there can be.
const endOfTimeSeconds = 1 << 40

// last returns the end of the last hour in which there is anything of a class.
func (t *tally) last(c class) (int64, error) {
	lower := t.prefix.appendStatKey(nil, bucketKey{c, levelHour, 0})
	upper := t.prefix.appendStatKey(nil, bucketKey{c, levelHour, endOfTimeSeconds})
	for e, err := range t.snap.Scan(lower, upper, kv.Reverse) {
		if err != nil {
			return 0, err
		}
		k, err := parseStatKey(e.Key)
		return 1000*(k.start+k.level.seconds()) - 1, err
	}
	return 0, nil
}
