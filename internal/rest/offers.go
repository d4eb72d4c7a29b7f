// SPDX-License-Identifier: MIT

// Offers: throughput as clients read and change it.

package rest

import (
	"net/http"
	"strconv"

	"github.com/mayflydb/mayfly/internal/catalog"
)

const (
	headerMinThroughput  = "X-Ms-Cosmos-Min-Throughput"
	headerReplacePending = "X-Ms-Offer-Replace-Pending"
	// What asks for the other kind of throughput.
	headerToAutoscale = "X-Ms-Cosmos-Migrate-Offer-To-Autopilot"
	headerToManual    = "X-Ms-Cosmos-Migrate-Offer-To-Manual-Throughput"
)

func (x *exchange) serveOffers(rt *route) error {
	switch {
	case rt.feed && x.r.Method == http.MethodGet:
		return x.listOffers(x.h.engine.Offers())
	case rt.feed && x.r.Method == http.MethodPost && x.isQuery():
		return x.queryOffers()
	case !rt.feed && x.r.Method == http.MethodGet:
		o, err := x.h.engine.Offer(rt.id)
		if err != nil {
			return err
		}
		x.setOffer(o)
		x.writeIfModified(o.ETag(), o.Body())
		return nil
	case !rt.feed && x.r.Method == http.MethodPut:
		return x.replaceOffer(rt)
	}
	return errMethod
}

func (x *exchange) listOffers(all []*catalog.Offer) error {
	return x.writeFeed(&feed{
		kind: "Offers", n: len(all),
		resource: func(i int) (rid string, body []byte) { return all[i].RID(), all[i].Body() },
		after:    func(rid string) (int, bool) { return catalog.FirstOfferAfter(all, rid) },
	})
}

// queryOffers answers the queries by which SDKs find an offer, and any other.
func (x *exchange) queryOffers() error {
	var bodies [][]byte
	for _, o := range x.h.engine.Offers() {
		bodies = append(bodies, o.Body())
	}
	return x.queryResources("", "Offers", bodies)
}

func (x *exchange) replaceOffer(rt *route) error {
	body, err := x.body()
	if err != nil {
		return err
	}
	r := catalog.OfferReplace{RID: rt.id, Body: body, IfMatch: x.header("If-Match")}
	toAutoscale, toManual := x.flag(headerToAutoscale), x.flag(headerToManual)
	switch {
	case toAutoscale && toManual:
		return &badRequestError{"The headers " + headerToAutoscale + " and " + headerToManual + " cannot be given together."}
	case toAutoscale:
		r.Migrate = catalog.ToAutoscale
	case toManual:
		r.Migrate = catalog.ToManual
	}
	o, err := x.h.engine.ReplaceOffer(x.r.Context(), r)
	if err != nil {
		return err
	}
	x.setOffer(o)
	x.writeResource(http.StatusOK, o.ETag(), o.Body())
	return nil
}

// setOffer sets the headers that go with an offer. A change holds at once: none is
// ever pending.
func (x *exchange) setOffer(o *catalog.Offer) {
	x.set(headerMinThroughput, strconv.Itoa(o.Minimum()))
	x.set(headerReplacePending, "false")
}
