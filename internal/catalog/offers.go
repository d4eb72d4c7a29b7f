// SPDX-License-Identifier: MIT

// Offers: throughput as clients see it, a resource of its own for a container or a
// database. A container that shares its database's throughput has none.

package catalog

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

// Offer is the throughput of a container or of a database at one moment. Its id is its
// rid.
type Offer struct {
	Resource
	Provision
	// Link is the _self link of the offer's resource, and ResourceRID its rid.
	Link, ResourceRID string
	// Database is the offer's resource, or the database of its container.
	Database DatabaseRID

	// Pending says that partitions are still to be split, so that they carry the throughput.
	Pending bool

	sharing int // the containers that share it, if it is a database's
}

// An offer's rid has three bytes, by which SDKs recognise it. Numbers that do not fit,
// after eight million containers, take six.
const (
	offerRIDBytes     = 3
	longOfferRIDBytes = 6
	longOffer         = 1 << (8 * offerRIDBytes)
)

// offerNumber identifies an offer: twice the number of a database, or twice that of a
// container plus one. Neither number is ever reused.
func offerNumber(r *Resource) uint64 {
	if r.kind == Containers {
		return r.number()<<1 | 1
	}
	return r.number() << 1
}

func offerRID(n uint64) string {
	raw := binary.BigEndian.AppendUint64(nil, n)
	if n >= longOffer {
		return ridText.EncodeToString(raw[8-longOfferRIDBytes:])
	}
	return ridText.EncodeToString(raw[8-offerRIDBytes:])
}

func parseOfferRID(text string) (uint64, bool) {
	if len(text) > ridText.EncodedLen(longOfferRIDBytes) {
		return 0, false
	}
	raw, err := ridText.DecodeString(text)
	if err != nil || len(raw) > longOfferRIDBytes {
		return 0, false
	}
	var wide [8]byte
	copy(wide[len(wide)-len(raw):], raw)
	n := binary.BigEndian.Uint64(wide[:])
	return n, offerRID(n) == text // each offer has one rid
}

// Minimum returns the lowest throughput that can be set, for the same kind.
func (o *Offer) Minimum() int { return o.rule().minimum(o.Highest, o.sharing) }

func (o *Offer) rule() throughputRule {
	if o.AutoscaleMax != 0 {
		return autoscaleRule
	}
	return manualRule
}

func (o *Offer) render(Any, Options) {
	b := fmt.Appendf(nil, `{"resource":"%s","offerType":"Invalid","offerResourceId":"%s","offerVersion":"V2","content":`, o.Link, o.ResourceRID)
	b = fmt.Appendf(o.appendContent(b), `,"id":"%s"`, o.ID)
	o.Body = append(o.appendSystem(b), '}')
}

// appendContent appends what is provisioned. For autoscale it shows a tenth of the
// maximum as the throughput in use, as the service does without load.
func (o *Offer) appendContent(dst []byte) []byte {
	inUse := o.Manual
	if o.AutoscaleMax != 0 {
		inUse = o.AutoscaleMax / autoscaleRule.divisor
	}
	dst = fmt.Appendf(dst, `{"offerThroughput":%d,"offerIsRUPerMinuteThroughputEnabled":false,`, inUse)
	if o.Pending {
		dst = append(dst, `"isOfferReplacePending":true,`...)
	}
	dst = fmt.Appendf(dst, `"offerMinimumThroughputParameters":{"maxThroughputEverProvisioned":%d,"maxConsumedStorageEverInKB":0}`, o.Highest)
	if o.AutoscaleMax == 0 {
		return append(dst, '}')
	}
	dst = fmt.Appendf(dst, `,"offerAutopilotSettings":{"maxThroughput":%d`, o.AutoscaleMax)
	if !o.Fixed {
		dst = fmt.Appendf(dst, `,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":%d}}`, o.IncrementPercent)
	}
	return append(dst, "}}"...)
}

// provisioned returns the throughput of a database or of a container; nil for others.
func provisioned(r Any) *Provision {
	switch r := r.(type) {
	case *Database:
		return &r.Throughput
	case *Container:
		return &r.Throughput
	}
	return nil
}

// offerOf returns the offer of a database or of a container; nil if it has no throughput
// of its own.
func offerOf(r Any) *Offer {
	p, n := provisioned(r), r.Common()
	if p == nil || p.None() {
		return nil
	}
	o := &Offer{Provision: *p, Link: n.self, ResourceRID: n.RIDText, Database: DatabaseRID(n.path[0])}
	if ct, ok := r.(*Container); ok {
		o.Pending = ct.Growing()
	}
	for _, ct := range n.below[Containers].numbers() {
		if provisioned(ct).None() {
			o.sharing++
		}
	}
	number := offerNumber(n)
	o.Resource = Resource{ID: offerRID(number), TS: p.TS, kind: Offers, path: path{number}, revision: p.Revision}
	show(o, &Resource{}, Options{})
	return o
}

// offers returns all offers, in the order of their rids.
func (s *state) offers() []Any {
	var list []Any
	s.account.walk(func(_ *Resource, r Any) {
		if o := offerOf(r); o != nil {
			list = append(list, o)
		}
	})
	slices.SortFunc(list, func(a, b Any) int { return cmp.Compare(a.Common().number(), b.Common().number()) })
	return list
}

// offered returns the resource of an offer; nil if there is no such offer.
func (s *state) offered(rid string) Any {
	n, ok := parseOfferRID(rid)
	if !ok {
		return nil
	}
	if n&1 == 0 {
		return s.at(Databases, path{n >> 1})
	}
	for _, d := range s.account.below[Databases].numbers() {
		if ct := d.Common().below[Containers].numbers()[n>>1]; ct != nil {
			return ct
		}
	}
	return nil
}

// offer finds an offer by its rid.
func (s *state) offer(rid string) (*Offer, error) {
	if r := s.offered(rid); r != nil {
		if o := offerOf(r); o != nil {
			return o, nil
		}
	}
	return nil, ErrNotFound
}

// Migration is a change from one kind of throughput to the other.
type Migration int

// The migrations.
const (
	NoMigration Migration = iota
	ToAutoscale
	ToManual
)

// writeOffer changes the throughput of an offer's resource. The body decides between
// manual and autoscale, unless the write asks for a migration. If the container's physical
// partitions do not carry it, they are to be split.
func (c *Catalog) writeOffer(ctx context.Context, w *Write) (o *Offer, err error) {
	err = c.change(func() (err error) {
		o, err = c.replaceOffer(ctx, w)
		return err
	})
	return o, err
}

func (c *Catalog) replaceOffer(ctx context.Context, w *Write) (*Offer, error) {
	old := c.state.Load()
	was, err := old.offer(w.ID)
	if err != nil {
		return nil, err
	}
	if !Matches(w.IfMatch, was.ETag) {
		return nil, ErrPrecondition
	}
	r, err := parseOffer(w.Body, was)
	if err != nil {
		return nil, err
	}
	if r, err = r.migrated(w.Migrate, was); err != nil {
		return nil, err
	}
	t, err := r.grant(was.Highest, was.sharing)
	if err != nil {
		return nil, err
	}
	next, b, subject := *old, kv.Batch{}, old.offered(w.ID).Common()
	changed := next.altered(subject.kind, subject.path)
	*provisioned(changed) = was.with(t, w.NowMs/1000)
	if ct, ok := changed.(*Container); ok {
		ct.followThroughput()
	}
	changed.Common().setRows(&b, false, changed.record())
	return offerOf(changed), c.commit(ctx, &b, old, &next)
}

// migrated returns the request that a migration turns r into. A migration to the kind
// that the offer already has is ignored.
func (r throughputRequest) migrated(m Migration, was *Offer) (throughputRequest, error) {
	switch {
	case m == ToAutoscale && was.AutoscaleMax == 0:
		if r.rule == autoscaleRule {
			return r, invalid("x-ms-cosmos-migrate-offer-to-autopilot must be supplied and offercontent must not contain autopilotSettings for migration from manual throughput to autoscale.")
		}
		least := autoscaleRule.minimum(was.Highest, was.sharing)
		return throughputRequest{rule: autoscaleRule, fixed: true, perSecond: max(least, roundUp(was.Manual, autoscaleRule.step))}, nil
	case m == ToManual && was.AutoscaleMax != 0:
		return throughputRequest{rule: manualRule, perSecond: was.AutoscaleMax}, nil
	}
	return r, nil
}

// parseOffer parses a replace. Clients send back all that they have read, so an autoscale
// offer comes with the throughput in use.
func parseOffer(body []byte, was *Offer) (throughputRequest, error) {
	r := throughputRequest{rule: manualRule}
	o, err := value.ParseObject(body)
	if err != nil {
		return r, invalid("The input content is invalid because it is not a well-formed JSON object: %v.", err)
	}
	named := false
	for i, p := range []struct{ name, is string }{
		{"id", was.ID}, {"_rid", was.ID}, {"resource", was.Link}, {"offerResourceId", was.ResourceRID},
	} {
		raw, ok := o.Lookup(p.name)
		if absent(raw, ok) {
			continue
		}
		named = named || i < 2
		text, err := asString(p.name, raw)
		if err != nil {
			return r, err
		}
		if text != p.is {
			return r, invalid("The '%s' of an offer cannot be changed: it is '%s', not '%s'.", p.name, p.is, value.Clip(text))
		}
	}
	if !named {
		return r, invalid("The input content is invalid because the required properties - 'id; ' - are missing")
	}
	raw, ok := o.Lookup("content")
	if absent(raw, ok) {
		return r, invalid("The input content is invalid because the required properties - 'content; ' - are missing")
	}
	content, err := asObject("content", raw)
	if err != nil {
		return r, err
	}
	if raw, ok := content.Lookup("offerAutopilotSettings"); !absent(raw, ok) {
		r, err = parseAutoscale(raw)
		if err != nil {
			return r, invalid("The input content is invalid because 'content.offerAutopilotSettings' is not of the form {\"maxThroughput\":4000}.")
		}
		return r, nil
	}
	raw, _ = content.Lookup("offerThroughput")
	if r.perSecond, err = asInt("", raw, math.MinInt32, math.MaxInt32); err != nil {
		return r, invalid("One of the specified inputs is invalid: 'content.offerThroughput' must be an integer.")
	}
	return r, nil
}
