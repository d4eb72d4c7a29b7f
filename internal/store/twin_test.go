// SPDX-License-Identifier: MIT

package store

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/catalog"
)

// twin is a naive model of a partition: a map of items, with the expired ones until they
// are replaced or purged, and nothing derived. It shares no code with the partition.
type twin struct {
	rid       catalog.ContainerRID
	index     int
	settings  twinSettings
	changedMs int64 // when the default last changed
	epoch     int   // how often the settings have changed
	nowMs     int64
	lsn       uint64
	n         int    // of the last write of the bundle under way, -1 outside of one
	created   uint64 // how many items were ever created
	items     map[string]*twinItem
	versions  map[twinVersion]*twinItem // all that ever existed
	etags     map[string]bool           // all that were ever given
	unique    bool                      // no two items of a partition key have the same u, nor the same v
}

type twinItem struct {
	pk, id       string
	ordinal, lsn uint64
	writtenMs    int64
	touchedMs    int64  // 0 if it was not touched since
	at           uint64 // lsn of its last write or touch
	ttl          int64
	atMs         int64 // the deadline that it names, 0 for none
	body, etag   string
	u, v         string

	final      bool // stays expired under all settings
	everDead   bool
	lostMs     int64 // when it was purged
	reported   bool  // its event was returned, last under the settings of reportedIn
	reportedIn int
}

// twinWrite is a write: ttl, more, u and v are JSON, "" for none. at is the deadline that the
// item names, in seconds, 0 for none.
type twinWrite struct {
	op                   Op
	pk, id, ttl, more    string
	newID                string // the new id of a replace, "" to keep it
	at                   int64
	u, v                 string
	ifMatch, ifNoneMatch string
}

// outcome is the expected outcome of a write.
type outcome struct {
	err     error
	badTTL  bool
	past    bool // the deadline has passed
	created bool
	body    string
	etag    string
	lsn     uint64
}

func newTwin(c *catalog.Container, index int) *twin {
	return &twin{
		rid: c.RID, index: index, nowMs: startMs, changedMs: startMs, n: -1,
		items: map[string]*twinItem{}, versions: map[twinVersion]*twinItem{}, etags: map[string]bool{},
	}
}

func (w twinWrite) name() string { return w.pk + "/" + w.id }

// renamed is the write with the new id.
func (w twinWrite) renamed() twinWrite {
	if w.newID != "" {
		w.id = w.newID
	}
	return w
}

// text is the item as the client sends it.
func (w twinWrite) text() string { return "{" + w.members() + "}" }

func (w twinWrite) members() string {
	text := `"id":"` + w.renamed().id + `","pk":"` + w.pk + `"`
	if w.at != 0 {
		text += fmt.Sprintf(`,"end":{"at":%d}`, w.at)
	}
	for _, p := range []struct{ name, value string }{{"ttl", w.ttl}, {"more", w.more}, {"u", w.u}, {"v", w.v}} {
		if p.value != "" {
			text += fmt.Sprintf(`,%q:%s`, p.name, p.value)
		}
	}
	return text
}

func (t *twin) isLive(i *twinItem) bool { return i != nil && !t.expiredAt(i, t.nowMs) }

func (t *twin) write(w twinWrite) outcome {
	ttl, ttlErr := strconv.ParseInt(w.ttl, 10, 64)
	valid := w.ttl == "" || ttlErr == nil && (ttl == -1 || ttl > 0 && ttl < 1<<31)
	badTTL := w.op != Delete && !valid && t.settings.ttl != 0
	if badTTL && w.op != Update && w.op != Undelete { // its item is not known before
		return outcome{badTTL: true}
	}
	if !valid {
		ttl = 0
	}
	old := t.items[w.name()]
	live := t.isLive(old)
	if w.op == Undelete {
		switch {
		case old == nil:
			return outcome{err: ErrNotFound}
		case live:
			return outcome{err: ErrLive}
		case t.settings.finality:
			return outcome{err: ErrFinal}
		}
		live = true // it is replaced
	}
	if err := t.refusal(w, old, live); err != nil {
		return outcome{err: err}
	}
	if badTTL {
		return outcome{badTTL: true}
	}
	if w.op == Delete {
		t.step()
		delete(t.items, w.name())
		return outcome{lsn: t.lsn}
	}
	atMs := int64(0)
	if t.settings.expireAt != "" && w.at != 0 {
		atMs = max(1000*w.at, t.nowMs)
		if 1000*w.at <= t.nowMs && t.settings.expireAt != "accept" {
			return outcome{past: true}
		}
	}
	if other := t.items[w.renamed().name()]; other != old && t.isLive(other) {
		return outcome{err: ErrExists}
	}
	if !t.makeWay(w) {
		return outcome{err: ErrNotUnique}
	}
	if other := t.items[w.renamed().name()]; other != nil && other != old {
		t.lose(other)
	}
	t.step()
	if old != nil && !live {
		t.lose(old)
	}
	next := &twinItem{pk: w.pk, id: w.renamed().id, lsn: t.lsn, at: t.lsn, writtenMs: t.nowMs, ttl: ttl, atMs: atMs, u: w.u, v: w.v}
	if live {
		next.ordinal = old.ordinal
	} else {
		t.created++
		next.ordinal = uint64(t.index)<<48 + t.created
	}
	next.etag = fmt.Sprintf(`"%08x-%04x-%04x-%04x-%012x"`, t.nowMs/1000, t.index, max(t.n, 0), t.lsn>>48, t.lsn&(1<<48-1))
	rid := t.itemRID(next.ordinal)
	next.body = fmt.Sprintf(`{%s,"_rid":"%s","_self":"dbs/%s/colls/%s/docs/%s/","_etag":"\%s\"","_attachments":"attachments/","_ts":%d}`,
		w.members(), rid, t.rid.Database, t.rid, rid, strings.TrimSuffix(next.etag, `"`), t.nowMs/1000)
	delete(t.items, w.name())
	t.items[w.renamed().name()] = next
	t.versions[twinVersion{next.ordinal, next.lsn}] = next
	return outcome{created: !live, body: next.body, etag: next.etag, lsn: t.lsn}
}

// slide restarts the countdown of an item, if a read after so many percent of its life does.
func (t *twin) slide(i *twinItem, percent int64) bool {
	ms, at := i.startMs(), i.expiresAt(t.settings.ttl)
	if !t.isLive(i) || i.atMs != 0 || at == math.MaxInt64 || t.nowMs == ms || (t.nowMs-ms)*100 < percent*(at-ms) {
		return false
	}
	t.step()
	next := *i
	next.at, next.touchedMs, next.reported, next.everDead = t.lsn, t.nowMs, false, false
	t.items[i.pk+"/"+i.id] = &next
	t.versions[twinVersion{next.ordinal, next.at}] = &next
	return true
}

// startMs is when the item's countdown began.
func (i *twinItem) startMs() int64 { return max(i.writtenMs, i.touchedMs) }

// makeWay removes the expired items that have the same u or v, unless a live one has them.
func (t *twin) makeWay(w twinWrite) bool {
	if !t.unique {
		return true
	}
	var expired []*twinItem
	for name, other := range t.items {
		if name == w.name() || other.pk != w.pk || other.u != w.u && other.v != w.v {
			continue
		}
		if t.isLive(other) {
			return false
		}
		expired = append(expired, other)
	}
	for _, other := range expired {
		t.lose(other)
	}
	return true
}

func (t *twin) refusal(w twinWrite, old *twinItem, live bool) error {
	if !live {
		if w.op == Replace || w.op == Delete || w.op == Update {
			return ErrNotFound
		}
		return nil
	}
	if w.op == Create {
		return ErrExists
	}
	if w.op == Undelete {
		return nil
	}
	if w.ifMatch != "" && w.ifMatch != "*" && w.ifMatch != old.etag {
		return ErrPrecondition
	}
	if w.ifNoneMatch == "*" || w.ifNoneMatch == old.etag {
		return ErrPrecondition
	}
	return nil
}

func (t *twin) itemRID(ordinal uint64) string {
	raw := binary.BigEndian.AppendUint32(nil, uint32(t.rid.Database))
	raw = binary.BigEndian.AppendUint32(raw, 1<<31+t.rid.Container)
	raw = binary.LittleEndian.AppendUint64(raw, ordinal)
	return strings.ReplaceAll(base64.StdEncoding.EncodeToString(raw), "/", "-")
}

// sorted returns the items after an ordinal, of one partition key or of all, in the order
// of their creation, expired or not.
func (t *twin) sorted(pk string, after uint64) []*twinItem {
	var items []*twinItem
	for _, i := range t.items {
		if i.ordinal > after && (pk == "" || pk == i.pk) {
			items = append(items, i)
		}
	}
	slices.SortFunc(items, func(a, b *twinItem) int { return int(int64(a.ordinal - b.ordinal)) })
	return items
}

// checkPage compares a page with the twin.
func (t *twin) checkPage(pk string, q List, page Page) error {
	var bodies []string
	var rest []*twinItem // after the page
	for _, i := range t.sorted(pk, q.After) {
		switch {
		case i.ordinal > page.Last:
			rest = append(rest, i)
		case t.isLive(i):
			bodies = append(bodies, i.body)
		}
	}
	if want := strings.Join(bodies, ","); string(page.Items) != want || page.Count != len(bodies) {
		return fmt.Errorf("a page up to %d has %d items, %s; there are %d, %s", page.Last, page.Count, page.Items, len(bodies), want)
	}
	if page.LSN != t.lsn {
		return fmt.Errorf("the page is of lsn %d, the partition at %d", page.LSN, t.lsn)
	}
	if page.Count > q.MaxItems || page.Count > 1 && len(page.Items) > q.MaxBytes {
		return fmt.Errorf("a page of %d items and %d bytes, when %d and %d are asked for", page.Count, len(page.Items), q.MaxItems, q.MaxBytes)
	}
	if page.More != (len(rest) > 0) {
		return fmt.Errorf("more is %v, and %d items follow", page.More, len(rest))
	}
	if page.More && page.Count < q.MaxItems && (page.Count == 0 || len(page.Items)+1+len(rest[0].body) <= q.MaxBytes) {
		return errors.New("a page ends though there is more, and room for it")
	}
	return nil
}

// buckets counts the items by class and second, as the counters should.
func (t *twin) buckets() map[bucketKey]bucket {
	counts := map[bucketKey]bucket{}
	for _, i := range t.items {
		second := i.startMs() / 1000
		keys := []bucketKey{{'i', 's', second}, {'i', 'm', second / 60 * 60}, {'i', 'h', second / 3600 * 3600}}
		switch {
		case i.atMs == 0 && i.ttl == -1:
			keys = []bucketKey{{'n', 's', 0}}
		case i.atMs > 0 || i.ttl > 0:
			if second = (i.startMs() + i.ttl*1000) / 1000; i.atMs > 0 {
				second = i.atMs / 1000
			}
			keys = []bucketKey{{'o', 's', second}, {'o', 'm', second / 60 * 60}, {'o', 'h', second / 3600 * 3600}}
		}
		for _, k := range keys {
			b := counts[k]
			b.Amount = b.Plus(Amount{1, int64(len(i.body))})
			if k.level == 's' && (b.firstLSN == 0 || i.at < b.firstLSN) {
				b.firstLSN = i.at
			}
			counts[k] = b
		}
	}
	return counts
}
