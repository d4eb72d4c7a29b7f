// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

const (
	itemsPerWriter = 150
	keysPerWriter  = 20

	trialMs     = 3600_000 // longer than a trial takes
	longTTL     = 24 * 3600
	maxShortTTL = 3
	smallBytes  = 2 << 10
	largeBytes  = 64 << 10

	// sessionNotAvailable is the sub-status of a read in a session that is ahead.
	sessionNotAvailable = "1002"
)

// writer is one client with its own items. It outlives the servers.
type writer struct {
	number int
	random *rand.Rand
	items  []*item
	// bundles are items that are written several at a time.
	bundles []*bundle
	// version is in each body that is sent, so that all differ.
	version int
	// lastTS is the highest _ts that was seen, in seconds.
	lastTS int64
	// sessions holds the newest session token of each range.
	sessions map[string]string

	acknowledged int      // in this round
	bundled      int      // of them, several items at a time
	complaints   []string // since they were last printed
}

func newWriter(number int, random *rand.Rand) *writer {
	w := &writer{number: number, random: random, sessions: map[string]string{}}
	for i := range itemsPerWriter {
		w.items = append(w.items, &item{
			id: fmt.Sprintf("w%d-%d", number, i),
			pk: fmt.Sprintf("w%d-key%d", number, i%keysPerWriter),
		})
	}
	for i := range bundlesPerWriter {
		w.bundles = append(w.bundles, newBundle(number, i))
	}
	return w
}

func (w *writer) complain(about fmt.Stringer, format string, args ...any) {
	w.complaints = append(w.complaints, about.String()+": "+fmt.Sprintf(format, args...))
}

func (w *writer) doubts() (n int) {
	for _, it := range w.items {
		if it.doubt != nil {
			n++
		}
	}
	for _, b := range w.bundles {
		if b.doubt != nil {
			n++
		}
	}
	return n
}

// write writes until the server no longer answers, and returns the error.
func (w *writer) write(c *client) error {
	defer c.close()
	w.acknowledged, w.bundled = 0, 0
	for {
		var err error
		if w.random.IntN(bundleShare) == 0 {
			err = w.writeBundle(c, w.bundles[w.random.IntN(len(w.bundles))])
		} else {
			err = w.writeItem(c, w.items[w.random.IntN(len(w.items))])
		}
		if err != nil {
			return err
		}
	}
}

// writeItem sends one write of one item.
func (w *writer) writeItem(c *client, it *item) error {
	it.doubt = w.choose(it)
	it.doubt.possible = it.allows(it.doubt.op, w.now())
	res, err := c.do(it.request(*it.doubt))
	if err != nil {
		return err
	}
	w.note(it, res)
	return nil
}

// now is the time as far as the writer knows it: not before its last write.
func (w *writer) now() span { return span{w.lastTS * 1000, w.lastTS*1000 + trialMs} }

// choose chooses a write.
func (w *writer) choose(it *item) *write {
	o := []op{create, create, create, upsert, upsert, upsert, replace, replace, remove}[w.random.IntN(9)]
	if o == remove {
		return &write{op: o}
	}
	size := w.random.IntN(smallBytes)
	if w.random.IntN(20) == 0 {
		size = w.random.IntN(largeBytes)
	}
	w.version++
	properties := map[string]any{
		"id": it.id, "pk": it.pk, "version": w.version,
		"text": strings.Repeat(string(rune('a'+w.random.IntN(26))), size),
	}
	chosen := &write{op: o}
	switch w.random.IntN(4) {
	case 0:
		chosen.ttl = longTTL
	case 1:
		chosen.ttl = 1 + w.random.Int64N(maxShortTTL)
	}
	if chosen.ttl != 0 {
		properties["ttl"] = chosen.ttl
	}
	chosen.body = mustJSON(properties)
	return chosen
}

// request is the request of a write.
func (it *item) request(w write) request {
	key := map[string]string{"x-ms-documentdb-partitionkey": `["` + it.pk + `"]`}
	switch w.op {
	case create, upsert:
		if w.op == upsert {
			key["x-ms-documentdb-is-upsert"] = "True"
		}
		return request{method: http.MethodPost, kind: "docs", link: containerLink, path: containerLink + "/docs", header: key, body: w.body}
	case replace:
		return request{method: http.MethodPut, kind: "docs", link: it.link(), path: it.link(), header: key, body: w.body}
	}
	return request{method: http.MethodDelete, kind: "docs", link: it.link(), path: it.link(), header: key}
}

func (it *item) link() string { return containerLink + "/docs/" + it.id }

// note records the answer to the write in doubt.
func (w *writer) note(it *item, res reply) {
	asked := *it.doubt
	it.doubt = nil
	if !it.expects(asked.op, w.now(), res.status) {
		w.complain(it, "%s was answered with %d %s; known was %s", asked.op, res.status, brief(res.body), brief(it.body))
		return
	}
	switch res.status {
	case http.StatusNoContent:
		it.forget()
	case http.StatusOK, http.StatusCreated:
		if !sameProperties(res.body, asked.body) {
			w.complain(it, "%s of %s was answered with %s", asked.op, brief(asked.body), brief(res.body))
		}
		if err := it.keep(res.body, asked.ttl); err != nil {
			w.complain(it, "%v", err)
		}
		w.noteTime(it, res.body)
	default: // refused, as expected: nothing has changed
		return
	}
	w.acknowledged++
	w.noteSession(res)
}

// noteTime checks the time of an item that was just written.
func (w *writer) noteTime(about fmt.Stringer, body []byte) {
	ts, err := timeOf(body)
	if err != nil {
		w.complain(about, "%v", err)
		return
	}
	if ts < w.lastTS {
		w.complain(about, "the time went back: _ts %d after %d", ts, w.lastTS)
	}
	w.lastTS = max(w.lastTS, ts)
}

func (w *writer) noteSession(res reply) {
	w.sessions[res.header.Get("x-ms-documentdb-partitionkeyrangeid")] = res.header.Get("x-ms-session-token")
}

// readBack reads every item and compares it with what is known. It returns how many exist.
func (w *writer) readBack(c *client) int {
	defer c.close()
	there := 0
	for _, it := range w.items {
		found, err := w.readItem(c, it)
		if err != nil {
			w.complain(it, "it cannot be read: %v", err)
			return there
		}
		if found {
			there++
		}
	}
	for _, b := range w.bundles {
		found, err := w.readBundle(c, b)
		if err != nil {
			w.complain(b, "it cannot be read: %v", err)
			return there
		}
		there += found
	}
	return there
}

func (w *writer) readItem(c *client, it *item) (found bool, err error) {
	var now span
	if now.fromMs, err = c.now(); err != nil {
		return false, err
	}
	if now.fromMs < w.lastTS*1000 {
		w.complain(it, "the time went back: it is %d ms after a _ts of %d", now.fromMs, w.lastTS)
	}
	res, err := w.read(c, it, request{
		method: http.MethodGet, kind: "docs", link: it.link(), path: it.link(),
		header: map[string]string{"x-ms-documentdb-partitionkey": `["` + it.pk + `"]`},
	})
	if err != nil {
		return false, err
	}
	if now.toMs, err = c.now(); err != nil {
		return false, err
	}
	missing := res.status == http.StatusNotFound && res.header.Get("x-ms-substatus") == ""
	if !missing && res.status != http.StatusOK {
		w.complain(it, "a read was answered with %d %s", res.status, brief(res.body))
		return false, nil
	}
	if err := it.settle(now, res.body, missing); err != nil {
		w.complain(it, "%v", err)
	}
	return !missing, nil
}

// read reads in the session of all acknowledged writes: a server that has lost one is
// behind it, and refuses the read.
func (w *writer) read(c *client, about fmt.Stringer, r request) (reply, error) {
	if len(w.sessions) == 0 {
		return c.do(r)
	}
	r.header["x-ms-session-token"] = strings.Join(slices.Collect(maps.Values(w.sessions)), ",")
	res, err := c.do(r)
	if err != nil || res.header.Get("x-ms-substatus") != sessionNotAvailable {
		return res, err
	}
	w.complain(about, "the server is behind the session %v", w.sessions)
	clear(w.sessions)
	delete(r.header, "x-ms-session-token")
	return c.do(r)
}
