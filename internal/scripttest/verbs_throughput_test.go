// SPDX-License-Identifier: MIT

// Throughput, and the offers by which clients see it.

package scripttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// throughput returns the headers for the options throughput= and autoscale=: what
// a create asks for, otherwise if it has neither.
func (d *directive) throughput(otherwise string) map[string]string {
	manual, autoscale := d.option("throughput"), d.option("autoscale")
	switch {
	case manual == "none":
		manual = ""
	case manual == "" && autoscale == "":
		manual = otherwise
	}
	header := map[string]string{"X-Ms-Offer-Throughput": manual}
	if autoscale != "" {
		header["X-Ms-Cosmos-Offer-Autopilot-Settings"] = `{"maxThroughput":` + autoscale + `}`
	}
	return header
}

// offer is what a script shows of an offer.
type offer struct {
	RID      string `json:"_rid"`
	Resource string `json:"resource"`
	Content  struct {
		Throughput int  `json:"offerThroughput"`
		Pending    bool `json:"isOfferReplacePending"`
		Autoscale  *struct {
			Max int `json:"maxThroughput"`
		} `json:"offerAutopilotSettings"`
		Minimum struct {
			Highest int `json:"maxThroughputEverProvisioned"`
		} `json:"offerMinimumThroughputParameters"`
	} `json:"content"`
}

func (o *offer) String() string {
	text := strconv.Itoa(o.Content.Throughput) + " RU/s"
	if o.Content.Autoscale != nil {
		text += fmt.Sprintf(", autoscale to %d", o.Content.Autoscale.Max)
	}
	return text
}

func (d *directive) offer(body []byte) *offer {
	o := &offer{}
	if err := json.Unmarshal(body, o); err != nil {
		d.fatalf("not an offer: %v: %s", err, body)
	}
	return o
}

// showThroughput looks for the offer of a container, or of a database, as SDKs do:
// by the resource's link, and then by the offer's rid.
//
//	throughput c2
//	----
//	200 400 RU/s, at least 400, highest 400
//
//	throughput database=db
//	----
//	none
func showThroughput(s *script, d *directive) string {
	rid := s.offerRID(d, s.offeredPath(d))
	if rid == "" {
		return "none"
	}
	return s.offerLine(d, s.settled(d, rid, s.conditions(d)))
}

// setThroughput replaces an offer.
//
//	set-throughput c2 manual=500
//	----
//	200 500 RU/s, at least 400, highest 500
//
// If partitions are split for it, it waits for their end, and says so. It takes manual=500, autoscale=4000, or the body as it is in the lines below, with the
// offer's id unless unnamed is given, and
//
//	migrate=autoscale    a header that asks for the other kind; so does migrate=manual
//	database=d2    the throughput that a database shares
//	etag=e         keep the answer's etag
//	if-match=e     a condition: a kept etag, *, or one in quotes
func setThroughput(s *script, d *directive) string {
	var body []byte
	if n := d.option("manual"); n != "" {
		body = []byte(`{"content":{"offerThroughput":` + n + `}}`)
	}
	if n := d.option("autoscale"); n != "" {
		body = []byte(`{"content":{"offerAutopilotSettings":{"maxThroughput":` + n + `}}}`)
	}
	if lines := d.lines(); len(lines) > 0 {
		body = []byte(strings.Join(lines, "\n"))
	}
	header, unnamed := s.conditions(d), d.flag("unnamed")
	for _, kind := range d.options("migrate") {
		header[map[string]string{"autoscale": "X-Ms-Cosmos-Migrate-Offer-To-Autopilot", "manual": "X-Ms-Cosmos-Migrate-Offer-To-Manual-Throughput"}[kind]] = "true"
	}
	rid := s.offerRID(d, s.offeredPath(d))
	if rid == "" {
		return "none"
	}
	if after, ok := bytes.CutPrefix(body, []byte("{")); ok && !unnamed {
		body = append([]byte(`{"id":`+quoted(rid)+`,`), after...)
	}
	a := s.send(d, request{method: http.MethodPut, path: []string{"offers", rid}, header: header, body: body})
	line := s.offerLine(d, a)
	if a.status == http.StatusOK && d.offer(a.body).Content.Pending {
		s.settled(d, rid, nil)
		line += ", after splits"
	}
	return line
}

// offeredPath is the path of the directive's container or database.
func (s *script) offeredPath(d *directive) []string {
	if database := d.option("database"); database != "" {
		return databasePath(database)
	}
	return containerPath(d.database(), d.word(defaultContainer))
}

func (s *script) offerRID(d *directive, path []string) string {
	a := s.send(d, request{method: http.MethodGet, path: path})
	if a.status != http.StatusOK {
		d.fatalf("read %v: %d %s", path, a.status, a.body)
	}
	self, _ := lookup(a.body, "_self")
	found := s.sendOfferQuery(d, fmt.Sprintf("SELECT * FROM root r WHERE r.resource = '%s'", unquoted(self)))
	switch offers := s.page(d, found, "Offers"); len(offers) {
	case 0:
		return ""
	case 1:
		return d.offer(offers[0]).RID
	}
	d.fatalf("more than one offer for %s: %s", self, found.body)
	return ""
}

func (s *script) sendOfferQuery(d *directive, query string) answer {
	return s.send(d, request{
		method: http.MethodPost, path: []string{"offers"}, body: []byte(`{"query":` + quoted(query) + `,"parameters":[]}`),
		header: map[string]string{"Content-Type": "application/query+json", "X-Ms-Documentdb-Isquery": "True"},
	})
}

func (s *script) offerLine(d *directive, a answer) string {
	if a.status != http.StatusOK {
		return s.line(d, a, view{})
	}
	s.keep(d, a)
	o := d.offer(a.body)
	if a.header.Get("X-Ms-Offer-Replace-Pending") != strconv.FormatBool(o.Content.Pending) {
		d.fatalf("whether a replace is pending: %v, %s", a.header, a.body)
	}
	return fmt.Sprintf("200 %s, at least %s, highest %d", o, a.header.Get("X-Ms-Cosmos-Min-Throughput"), o.Content.Minimum.Highest)
}

// settled reads an offer until no replace of it is pending, as SDKs do.
func (s *script) settled(d *directive, rid string, header map[string]string) answer {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		a := s.send(d, request{method: http.MethodGet, path: []string{"offers", rid}, header: header})
		if a.status != http.StatusOK || !d.offer(a.body).Content.Pending {
			return a
		}
		if time.Since(began) > time.Minute {
			d.fatalf("the replace of an offer takes more than a minute: %s", a.body)
		}
	}
}

// listOffers lists all offers.
//
//	offers
//	----
//	200, 1 item
//	dbs/rid1/colls/rid2/ 400 RU/s
func listOffers(s *script, d *directive) string {
	return s.offers(d, s.send(d, request{method: http.MethodGet, path: []string{"offers"}}))
}

// queryOffers sends a query, which stands in the lines below.
//
//	query-offers
//	SELECT * FROM c
//	----
//	200, 1 item
//	dbs/rid1/colls/rid2/ 400 RU/s
func queryOffers(s *script, d *directive) string {
	return s.offers(d, s.sendOfferQuery(d, strings.Join(d.lines(), "\n")))
}

func (s *script) offers(d *directive, a answer) string {
	if a.status != http.StatusOK {
		return s.line(d, a, view{})
	}
	all := s.page(d, a, "Offers")
	head := fmt.Sprintf("200, %d items", len(all))
	if len(all) == 1 {
		head = "200, 1 item"
	}
	lines := []string{head}
	for _, body := range all {
		o := d.offer(body)
		resource := unquoted([]byte(s.stable(member{"_self", []byte(quoted(o.Resource))})))
		lines = append(lines, resource+" "+o.String())
	}
	return strings.Join(lines, "\n")
}
