// SPDX-License-Identifier: MIT

// Offers: throughput as clients see it, a resource beside the container or the
// database that it is for. A container that shares its database's has none.

package catalog

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

// Offer is the throughput of a container or of a database as it is at one moment.
type Offer struct {
	Provision
	// Resource is the _self link of what the offer is for, and ResourceRID its rid.
	Resource, ResourceRID string
	// Database is what it is for, or where that is.
	Database DatabaseRID

	number  offerNumber
	sharing int // the containers that share it, if it is a database's
}

// offerNumber tells offers apart: twice the number of a database, or twice that of
// a container and one. Neither is ever given twice.
type offerNumber uint64

// An offer's rid has three bytes, from which SDKs know what it is. Numbers that
// do not fit, after eight million containers, take six.
const (
	offerRIDBytes     = 3
	longOfferRIDBytes = 6
	longOffer         = 1 << (8 * offerRIDBytes)

	// offerETags keeps the etags of offers apart from those of containers.
	offerETags = 1 << 63
)

func databaseOffer(r DatabaseRID) offerNumber   { return offerNumber(r) << 1 }
func containerOffer(r ContainerRID) offerNumber { return offerNumber(r.Container)<<1 | 1 }

func (n offerNumber) String() string {
	raw := binary.BigEndian.AppendUint64(nil, uint64(n))
	if n >= longOffer {
		return ridText.EncodeToString(raw[8-longOfferRIDBytes:])
	}
	return ridText.EncodeToString(raw[8-offerRIDBytes:])
}

func parseOfferRID(text string) (offerNumber, bool) {
	if len(text) > ridText.EncodedLen(longOfferRIDBytes) {
		return 0, false
	}
	raw, err := ridText.DecodeString(text)
	if err != nil || len(raw) > longOfferRIDBytes {
		return 0, false
	}
	var wide [8]byte
	copy(wide[len(wide)-len(raw):], raw)
	n := offerNumber(binary.BigEndian.Uint64(wide[:]))
	return n, n.String() == text // each has one rid
}

// RID returns the offer's rid, which is its id too.
func (o *Offer) RID() string { return o.number.String() }

// ETag returns the etag of this version of the offer.
func (o *Offer) ETag() string {
	return ETag(uint64(o.TS)<<32|o.Revision&math.MaxUint32, offerETags|uint64(o.number))
}

// Minimum returns how low the throughput can be set, if its kind stays.
func (o *Offer) Minimum() int { return o.rule().minimum(o.Highest, o.sharing) }

func (o *Offer) rule() throughputRule {
	if o.AutoscaleMax != 0 {
		return autoscaleRule
	}
	return manualRule
}

// Body returns the exact response.
func (o *Offer) Body() []byte {
	rid := o.RID()
	b := fmt.Appendf(nil, `{"resource":"%s","offerType":"Invalid","offerResourceId":"%s","offerVersion":"V2","content":`, o.Resource, o.ResourceRID)
	b = o.appendContent(b)
	return fmt.Appendf(b, `,"id":"%s","_rid":"%s","_self":"offers/%s/","_etag":%s,"_ts":%d}`, rid, rid, rid, strconv.Quote(o.ETag()), o.TS)
}

// appendContent appends what is provisioned. Autoscale shows, as the service does
// while nothing is asked of it, a tenth of its maximum as the throughput in use.
func (o *Offer) appendContent(dst []byte) []byte {
	inUse := o.Manual
	if o.AutoscaleMax != 0 {
		inUse = o.AutoscaleMax / autoscaleRule.divisor
	}
	dst = fmt.Appendf(dst, `{"offerThroughput":%d,"offerIsRUPerMinuteThroughputEnabled":false,`+
		`"offerMinimumThroughputParameters":{"maxThroughputEverProvisioned":%d,"maxConsumedStorageEverInKB":0}`, inUse, o.Highest)
	if o.AutoscaleMax == 0 {
		return append(dst, '}')
	}
	dst = fmt.Appendf(dst, `,"offerAutopilotSettings":{"maxThroughput":%d`, o.AutoscaleMax)
	if !o.Fixed {
		dst = fmt.Appendf(dst, `,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":%d}}`, o.IncrementPercent)
	}
	return append(dst, "}}"...)
}

// offer returns the database's offer, nil if it shares no throughput.
func (d *Database) offer() *Offer {
	if d.Throughput.None() {
		return nil
	}
	sharing := 0
	for _, ct := range d.byRID {
		if ct.Throughput.None() {
			sharing++
		}
	}
	rid := d.RID.String()
	return &Offer{
		Provision: d.Throughput, Resource: "dbs/" + rid + "/", ResourceRID: rid, Database: d.RID,
		number: databaseOffer(d.RID), sharing: sharing,
	}
}

// offer returns the container's own offer, nil if it shares its database's.
func (ct *Container) offer() *Offer {
	if ct.Throughput.None() {
		return nil
	}
	return &Offer{
		Provision: ct.Throughput, Resource: "dbs/" + ct.RID.Database.String() + "/colls/" + ct.RIDText + "/",
		ResourceRID: ct.RIDText, Database: ct.RID.Database, number: containerOffer(ct.RID),
	}
}

// Offers returns all offers, in the order of their rids.
func (c *Catalog) Offers() []*Offer {
	var all []*Offer
	for _, d := range c.state.Load().byRID {
		if o := d.offer(); o != nil {
			all = append(all, o)
		}
		for _, ct := range d.byRID {
			if o := ct.offer(); o != nil {
				all = append(all, o)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Offer) int { return cmp.Compare(a.number, b.number) })
	return all
}

// FirstOfferAfter returns the index of the first offer that follows the one with
// the given rid, which may be gone. It reports false for text that is no offer's
// rid.
func FirstOfferAfter(all []*Offer, rid string) (int, bool) {
	n, ok := parseOfferRID(rid)
	if !ok {
		return 0, false
	}
	i, _ := slices.BinarySearchFunc(all, n+1, func(o *Offer, n offerNumber) int { return cmp.Compare(o.number, n) })
	return i, true
}

// Offer finds an offer by its rid.
func (c *Catalog) Offer(rid string) (*Offer, error) {
	n, ok := parseOfferRID(rid)
	if !ok {
		return nil, ErrNotFound
	}
	d, ct := c.state.Load().offered(n)
	if d == nil {
		return nil, ErrNotFound
	}
	return offerOf(d, ct), nil
}

func offerOf(d *Database, ct *Container) *Offer {
	if ct != nil {
		return ct.offer()
	}
	return d.offer()
}

// offered returns what an offer is for: a database, or a container and its
// database; no database if there is no such offer.
func (s *state) offered(n offerNumber) (*Database, *Container) {
	if n&1 == 0 {
		if d := s.byRID[DatabaseRID(n>>1)]; d != nil && n == databaseOffer(d.RID) && d.offer() != nil {
			return d, nil
		}
		return nil, nil
	}
	for _, d := range s.byRID {
		ct := d.byRID[ContainerRID{d.RID, uint32(n >> 1)}]
		if ct != nil && n == containerOffer(ct.RID) && ct.offer() != nil {
			return d, ct
		}
	}
	return nil, nil
}

// OfferReplace is a request to change an offer.
type OfferReplace struct {
	RID     string
	Body    []byte
	IfMatch string
	// Migrate asks for the other kind of throughput, of which there is then as much as
	// there was of the first.
	Migrate Migration
}

// Migration is from one kind of throughput to the other.
type Migration int

// The migrations.
const (
	NoMigration Migration = iota
	ToAutoscale
	ToManual
)

// ReplaceOffer changes the throughput of what an offer is for, out of the body of
// a request; what it says decides between manual and autoscale, unless it asks for a
// migration. The number of physical partitions stays.
func (c *Catalog) ReplaceOffer(ctx context.Context, replace OfferReplace, nowMs int64) (*Offer, error) {
	n, ok := parseOfferRID(replace.RID)
	if !ok {
		return nil, ErrNotFound
	}
	c.changes.Lock()
	defer c.changes.Unlock()
	old := c.state.Load()
	d, ct := old.offered(n)
	if d == nil {
		return nil, ErrNotFound
	}
	was := offerOf(d, ct)
	if !Matches(replace.IfMatch, was.ETag()) {
		return nil, ErrPrecondition
	}
	r, err := parseOffer(replace.Body, was)
	if err != nil {
		return nil, err
	}
	if r, err = r.migrated(replace.Migrate, was); err != nil {
		return nil, err
	}
	t, err := r.grant(was.Highest, was.sharing)
	if err != nil {
		return nil, err
	}
	next, b := old.clone(), kv.Batch{}
	p := was.Provision.with(t, nowMs/1000)
	if ct != nil {
		changed := *ct
		changed.Throughput = p
		next.put(d.with(&changed))
		b.Set(containerKey(ct.RID), changed.encode())
		ct = &changed
	} else {
		changed := *d
		changed.Throughput = p
		next.put(&changed)
		b.Set(databaseKey(d.RID), changed.encode())
		d = &changed
	}
	return offerOf(d, ct), c.commit(ctx, &b, old, next)
}

// migrated returns the request for a migration that the client asks for beside its
// offer. An offer that is of the kind already is changed as if there were none.
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

// parseOffer reads what a replace asks for. Clients send back the whole of what
// they have read: an autoscale offer with the throughput in use beside it.
func parseOffer(body []byte, was *Offer) (throughputRequest, error) {
	r := throughputRequest{rule: manualRule}
	o, err := value.ParseObject(body)
	if err != nil {
		return r, invalid("The input content is invalid because it is not a well-formed JSON object: %v.", err)
	}
	named := false
	for i, p := range []struct{ name, is string }{
		{"id", was.RID()}, {"_rid", was.RID()}, {"resource", was.Resource}, {"offerResourceId", was.ResourceRID},
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
