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
	o, err := x.h.engine.ReplaceOffer(x.r.Context(), rt.id, body, x.header("If-Match"))
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
