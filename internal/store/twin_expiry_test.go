// SPDX-License-Identifier: MIT

package store

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/catalog"
)

// twinSettings are the settings of the container that a history changes.
type twinSettings struct {
	ttl      int64 // 0 for none
	finality bool
	policy   string // the indexing policy, "" for the default
	grace    int64  // in seconds, 0 for none
	inFeed   bool   // the change feed shows touches
	expireAt string // the expireAtPast of the container, "" if items name no deadlines
}

// members are the settings' properties in a container's definition.
func (s twinSettings) members() string {
	text := `,"defaultTtl":null`
	if s.ttl != 0 {
		text = fmt.Sprintf(`,"defaultTtl":%d`, s.ttl)
	}
	if s.finality {
		text += `,"ttlFinality":true`
	}
	if s.grace != 0 {
		text += fmt.Sprintf(`,"undeleteGraceSeconds":%d`, s.grace)
	}
	if s.inFeed {
		text += `,"slidingTtlInChangeFeed":true`
	}
	if s.expireAt != "" {
		text += fmt.Sprintf(`,"expireAtPath":"/end/at","expireAtPast":%q`, s.expireAt)
	}
	if s.policy != "" {
		text += `,"indexingPolicy":` + s.policy
	}
	return text
}

// twinVersion identifies a version of an item.
type twinVersion struct{ ordinal, lsn uint64 }

// expiresAt returns when an item expires under a default, MaxInt64 for never.
func (i *twinItem) expiresAt(containerDefault int64) int64 {
	seconds := i.ttl
	if seconds == 0 {
		seconds = containerDefault
	}
	switch {
	case i.atMs != 0 && containerDefault != 0:
		return i.atMs
	case containerDefault == 0 || seconds == -1:
		return math.MaxInt64
	}
	return i.startMs() + seconds*1000
}

// expiredAt reports whether an item is expired at a moment, under the present settings.
func (t *twin) expiredAt(i *twinItem, ms int64) bool {
	return i.final || i.expiresAt(t.settings.ttl) <= ms
}

// purgeable reports whether purge may remove an item.
func (t *twin) purgeable(i *twinItem) bool { return t.expiredAt(i, t.nowMs-1000*t.settings.grace) }

// configure applies new settings.
func (t *twin) configure(s twinSettings) {
	for _, i := range t.items {
		i.final = s.finality && t.expiredAt(i, t.nowMs)
	}
	if s.ttl != t.settings.ttl {
		t.changedMs = t.nowMs
	}
	t.settings = s
	t.epoch++
}

// passTime records which items have expired by now. It is called after every step.
func (t *twin) passTime() {
	for _, i := range t.items {
		i.everDead = i.everDead || t.expiredAt(i, t.nowMs)
	}
}

// lose removes an expired item that was purged.
func (t *twin) lose(i *twinItem) {
	i.everDead = true
	i.lostMs = t.nowMs
	delete(t.items, i.pk+"/"+i.id)
}

// usage is what the partition holds at a moment.
func (t *twin) usage(ms int64) Usage {
	var u Usage
	for _, i := range t.items {
		if t.expiredAt(i, ms) {
			u.Expired = u.Expired.Plus(i.amount())
		} else {
			u.Live = u.Live.Plus(i.amount())
		}
	}
	return u
}

func (i *twinItem) amount() Amount { return Amount{1, int64(len(i.body))} }

// supposed returns the twin as it would be under another default, set now.
func (t *twin) supposed(containerDefault int64) *twin {
	other := &twin{nowMs: t.nowMs, lsn: t.lsn, settings: t.settings, items: map[string]*twinItem{}}
	for name, i := range t.items {
		c := *i
		other.items[name] = &c
	}
	s := t.settings
	s.ttl = containerDefault
	other.configure(s)
	return other
}

// change is the WhatIf of becoming the other twin.
func (t *twin) change(other *twin) WhatIf {
	var c WhatIf
	for name, i := range other.items {
		is, was := other.isLive(i), t.isLive(t.items[name])
		if was {
			c.Live = c.Live.Plus(i.amount())
		}
		if is {
			c.Remains = c.Remains.Plus(i.amount())
		}
		switch {
		case was && !is:
			c.Expires = c.Expires.Plus(i.amount())
		case is && !was:
			c.Returns = c.Returns.Plus(i.amount())
		}
	}
	return c
}

// checkOutlook compares an outlook with the items. The moments are ends of seconds.
func (t *twin) checkOutlook(got Outlook, untilMs []int64) error {
	want := Outlook{Expiring: make([]Amount, len(untilMs))}
	var last int64
	for _, i := range t.items {
		at := i.expiresAt(t.settings.ttl)
		if t.expiredAt(i, t.nowMs) {
			continue
		}
		if at != math.MaxInt64 {
			last = max(last, at)
		}
		n := slices.IndexFunc(untilMs, func(until int64) bool { return at <= until/1000*1000+999 })
		switch {
		case at == math.MaxInt64:
			want.Never = want.Never.Plus(i.amount())
		case n < 0:
			want.Later = want.Later.Plus(i.amount())
		default:
			want.Expiring[n] = want.Expiring[n].Plus(i.amount())
		}
	}
	if !slices.Equal(got.Expiring, want.Expiring) || got.Later != want.Later || got.Never != want.Never {
		return fmt.Errorf("got %+v, want %+v", got, want)
	}
	if got.LastMs != last {
		return fmt.Errorf("the last expires at %d, want %d", got.LastMs, last)
	}
	return nil
}

// expiry is the Expiry of a stored item.
func (t *twin) expiry(i *twinItem) Expiry {
	f := Expiry{
		WrittenMs: i.writtenMs, TouchedMs: i.touchedMs, Own: catalog.TTL(i.ttl), Default: catalog.TTL(t.settings.ttl),
		DeadlineMs: i.expiresAt(t.settings.ttl), Expired: t.expiredAt(i, t.nowMs), Named: i.atMs != 0,
	}
	f.Final = f.Expired && f.DeadlineMs > t.nowMs
	return f
}

// oldest returns when the first expired item expired, and whether there is one. A final one
// expired when the default changed, or before.
func (t *twin) oldest() (goneMs int64, found, exact bool) {
	goneMs, exact = math.MaxInt64, true
	for _, i := range t.items {
		if t.purgeable(i) {
			found = true
			exact = exact && !i.final
			goneMs = min(goneMs, max(i.expiresAt(t.settings.ttl)+1000*t.settings.grace, t.changedMs))
		}
	}
	return goneMs, found, exact
}

// firstDeadline returns when the next item may be purged.
func (t *twin) firstDeadline() int64 {
	first := int64(math.MaxInt64)
	for _, i := range t.items {
		if at := i.expiresAt(t.settings.ttl); at != math.MaxInt64 {
			first = min(first, at+1000*t.settings.grace)
		}
		if i.final {
			first = min(first, t.nowMs)
		}
	}
	return first
}

// receive checks and records an event that a reader received.
func (t *twin) receive(e Event, last EventKey) error {
	i := t.versions[twinVersion{e.Ordinal, e.Key.LSN}]
	switch {
	case i == nil:
		return fmt.Errorf("%+v is of no version of an item", e)
	case !i.everDead:
		return fmt.Errorf("%+v: %s/%s, lsn %d, never expired", e, i.pk, i.id, i.lsn)
	case e.ID != i.id || strings.Trim(e.PartitionKey.String(), `[]"`) != i.pk || e.WrittenMs != i.writtenMs || e.Named != (i.atMs != 0) || !e.Named && int64(e.TTL) != i.ttl:
		return fmt.Errorf("got %+v, want %+v", e, i)
	case e.Key.compare(last) <= 0:
		return fmt.Errorf("%+v comes after %+v", e.Key, last)
	case e.Key.GoneMs >= t.nowMs || e.Key.DeadlineMs > e.Key.GoneMs:
		return fmt.Errorf("%+v at %d", e.Key, t.nowMs)
	case t.items[i.pk+"/"+i.id] == i && !i.final && e.Key.GoneMs >= t.changedMs && e.Key.DeadlineMs != i.expiresAt(t.settings.ttl):
		return fmt.Errorf("%+v of an item that expires at %d", e.Key, i.expiresAt(t.settings.ttl))
	case i.reported && i.reportedIn == t.epoch:
		return fmt.Errorf("%+v is returned twice", e)
	}
	i.reported, i.reportedIn = true, t.epoch
	return nil
}

// unreported returns a version whose event a reader of all events should have received. A final
// one is reported when it is purged.
func (t *twin) unreported() *twinItem {
	for _, i := range t.versions {
		present := t.items[i.pk+"/"+i.id] == i
		gone := max(i.expiresAt(t.settings.ttl), t.changedMs)
		if !i.reported && (present && gone < t.nowMs || i.lostMs > 0 && i.lostMs < t.nowMs) {
			return i
		}
	}
	return nil
}
