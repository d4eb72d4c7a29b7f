// SPDX-License-Identifier: MIT

// Writes of several items at once: how they are chosen, sent and answered.

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
)

const (
	bundlesPerWriter = 6
	itemsPerBundle   = 4
	// bundleShare: one in so many writes is of a bundle.
	bundleShare = 2
	// doomShare: one in so many of those must fail.
	doomShare = 4
)

// scripts are the container's scripts: a procedure that does a list of operations, and
// triggers that each write one more item, whose id is made from the written one's.
var scripts = []struct{ kind, body string }{
	{"sprocs", `{"id":"several","body":"function(writes, doomed) {
		const done = [];
		const next = i => {
			if (i === writes.length) {
				if (doomed) throw new Error('doomed');
				return __.response.setBody(done);
			}
			const w = writes[i], link = __.getAltLink() + '/docs/' + w.id;
			const then = (err, item) => { if (err) throw err; done.push(w.op === 'delete' ? null : item); next(i + 1) };
			const accepted = {
				create: () => __.createDocument(__.getSelfLink(), w.item, then),
				upsert: () => __.upsertDocument(__.getSelfLink(), w.item, then),
				replace: () => __.replaceDocument(link, w.item, then),
				delete: () => __.deleteDocument(link, then),
			}[w.op]();
			if (!accepted) throw new Error('not accepted');
		};
		next(0);
	}"}`},
	{"triggers", `{"id":"before","triggerType":"Pre","triggerOperation":"All","body":"function() {
		const item = getContext().getRequest().getBody();
		__.upsertDocument(__.getSelfLink(), {id: item.before, pk: item.pk, version: item.version, words: item.words});
	}"}`},
	{"triggers", `{"id":"after","triggerType":"Post","triggerOperation":"All","body":"function() {
		const item = getContext().getResponse().getBody();
		__.upsertDocument(__.getSelfLink(), {id: item.after, pk: item.pk, version: item.version, words: item.words}, err => {
			if (err || item.doomed) throw err || new Error('doomed');
		});
	}"}`},
}

func newBundle(writer, number int) *bundle {
	b := &bundle{pk: fmt.Sprintf("w%d-bundle%d", writer, number)}
	for i := range itemsPerBundle {
		b.members = append(b.members, &member{id: fmt.Sprintf("%s-%d", b.pk, i)})
	}
	return b
}

// writeBundle sends one write of several items.
func (w *writer) writeBundle(c *client, b *bundle) error {
	b.doubt = w.chooseBundle(b)
	res, err := c.do(b.request())
	if err != nil {
		return err
	}
	w.noteBundle(b, res)
	return nil
}

// chooseBundle chooses a write of several items.
func (w *writer) chooseBundle(b *bundle) *bundleWrite {
	chosen := &bundleWrite{way: []way{batched, procedure, triggered}[w.random.IntN(3)]}
	if w.random.IntN(doomShare) == 0 {
		chosen.doom = impossible
		if chosen.way != batched && w.random.IntN(2) == 0 {
			chosen.doom = thrown
		}
	}
	w.version++
	if chosen.way == triggered {
		w.chooseTriggered(b, chosen)
		return chosen
	}
	n := 2 + w.random.IntN(len(b.members)-1)
	for _, i := range w.random.Perm(len(b.members))[:n] {
		chosen.changes = append(chosen.changes, w.choosePossible(b, b.members[i]))
	}
	if chosen.doom == impossible {
		c := &chosen.changes[w.random.IntN(n)]
		*c = change{c.member, notNow(c.member), w.bundleBody(b, c.member, nil)}
	}
	return chosen
}

// choosePossible chooses a change that can succeed.
func (w *writer) choosePossible(b *bundle, m *member) change {
	ops := []op{create, upsert}
	if m.sent != nil {
		ops = []op{upsert, replace, remove}
	}
	c := change{member: m, op: ops[w.random.IntN(len(ops))]}
	if c.op != remove {
		c.body = w.bundleBody(b, m, nil)
	}
	return c
}

// notNow returns an operation that cannot succeed on an item in its present state.
func notNow(m *member) op {
	if m.sent != nil {
		return create
	}
	return replace
}

// chooseTriggered chooses a write of the first item, whose triggers write the next two.
func (w *writer) chooseTriggered(b *bundle, chosen *bundleWrite) {
	main, before, after := b.members[0], b.members[1], b.members[2]
	o := upsert
	switch {
	case chosen.doom == impossible:
		o = notNow(main)
	case main.sent == nil && w.random.IntN(2) == 0:
		o = create
	case main.sent != nil && w.random.IntN(2) == 0:
		o = replace
	}
	more := map[string]any{"before": before.id, "after": after.id}
	if chosen.doom == thrown {
		more["doomed"] = true
	}
	chosen.changes = []change{
		{main, o, w.bundleBody(b, main, more)},
		{before, upsert, w.bundleBody(b, before, nil)},
		{after, upsert, w.bundleBody(b, after, nil)},
	}
}

// bundleBody is an item in one write of its bundle. The version identifies the write. It
// comes before the words, since messages show the start of a body.
func (w *writer) bundleBody(b *bundle, m *member, more map[string]any) []byte {
	properties := map[string]any{
		"id": m.id, "pk": b.pk, "version": w.version,
		"words": strings.Repeat(string(rune('a'+w.version%26)), w.version*37%smallBytes),
	}
	maps.Copy(properties, more)
	return mustJSON(properties)
}

// mustJSON encodes texts, numbers and lists.
func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// request is the request of the write in doubt.
func (b *bundle) request() request {
	header := map[string]string{"x-ms-documentdb-partitionkey": `["` + b.pk + `"]`}
	feed := request{method: http.MethodPost, kind: "docs", link: containerLink, path: containerLink + "/docs", header: header}
	switch b.doubt.way {
	case batched:
		header["x-ms-cosmos-is-batch-request"] = "True"
		header["x-ms-cosmos-batch-atomic"] = "True"
		feed.body = b.doubt.batchBody()
		return feed
	case procedure:
		link := containerLink + "/sprocs/several"
		return request{method: http.MethodPost, kind: "sprocs", link: link, path: link, header: header, body: b.doubt.procedureBody()}
	}
	main := b.doubt.changes[0]
	header["x-ms-documentdb-pre-trigger-include"] = "before"
	header["x-ms-documentdb-post-trigger-include"] = "after"
	feed.body = main.body
	switch main.op {
	case replace:
		link := containerLink + "/docs/" + main.member.id
		return request{method: http.MethodPut, kind: "docs", link: link, path: link, header: header, body: main.body}
	case upsert:
		header["x-ms-documentdb-is-upsert"] = "True"
	}
	return feed
}

var batchOperations = map[op]string{create: "Create", upsert: "Upsert", replace: "Replace", remove: "Delete"}

func (w *bundleWrite) batchBody() []byte {
	var ops []map[string]any
	for _, c := range w.changes {
		o := map[string]any{"operationType": batchOperations[c.op]}
		if c.op == replace || c.op == remove {
			o["id"] = c.member.id
		}
		if c.body != nil {
			o["resourceBody"] = json.RawMessage(c.body)
		}
		ops = append(ops, o)
	}
	return mustJSON(ops)
}

func (w *bundleWrite) procedureBody() []byte {
	var writes []map[string]any
	for _, c := range w.changes {
		writes = append(writes, map[string]any{"op": c.op, "id": c.member.id, "item": json.RawMessage(c.body)})
	}
	return mustJSON([]any{writes, w.doom == thrown})
}

// answer is the status that a write must be answered with, before it is recorded.
func (w *bundleWrite) answer() int {
	main := w.changes[0]
	switch {
	case w.doom == none && w.way == triggered && main.member.sent == nil:
		return http.StatusCreated
	case w.doom == none:
		return http.StatusOK
	case w.way == batched:
		return http.StatusMultiStatus
	case w.way == procedure || w.doom == thrown:
		return http.StatusBadRequest
	case main.op == create:
		return http.StatusConflict
	}
	return http.StatusNotFound
}

// noteBundle records the answer to the write in doubt.
func (w *writer) noteBundle(b *bundle, res reply) {
	asked := b.doubt
	b.doubt = nil
	if want := asked.answer(); res.status != want {
		w.complain(b, "%s was answered with %d %s, not with %d", asked, res.status, brief(res.body), want)
		return
	}
	if asked.doom != none {
		return
	}
	shown, err := asked.shown(res.body)
	if err != nil {
		w.complain(b, "%s was answered with %s: %v", asked, brief(res.body), err)
	}
	b.apply(asked)
	for i, body := range shown {
		m := asked.changes[i].member
		if m.body = body; body == nil {
			continue
		}
		if !sameProperties(body, m.sent) {
			w.complain(b, "%s: the write of %s was answered with %s", asked, brief(m.sent), brief(body))
		}
		w.noteTime(b, body)
	}
	w.acknowledged++
	w.bundled++
	w.noteSession(res)
}

// shown returns the items in an answer, in the order of the changes, as far as it has them;
// nil for a deleted one.
func (w *bundleWrite) shown(answer []byte) ([][]byte, error) {
	var bodies []json.RawMessage
	switch w.way {
	case triggered:
		return [][]byte{answer}, nil
	case procedure:
		if err := json.Unmarshal(answer, &bodies); err != nil {
			return nil, err
		}
	case batched:
		var results []struct{ ResourceBody json.RawMessage }
		if err := json.Unmarshal(answer, &results); err != nil {
			return nil, err
		}
		for _, r := range results {
			bodies = append(bodies, r.ResourceBody)
		}
	}
	if len(bodies) != len(w.changes) {
		return nil, fmt.Errorf("it has %d results, not %d", len(bodies), len(w.changes))
	}
	shown := make([][]byte, len(bodies))
	for i, c := range w.changes {
		if c.op != remove {
			shown[i] = bodies[i]
		}
	}
	return shown, nil
}

// readBundle lists the items of the bundle's partition key, and compares them with what the
// writer knows. It returns their number.
func (w *writer) readBundle(c *client, b *bundle) (int, error) {
	res, err := w.read(c, b, request{
		method: http.MethodGet, kind: "docs", link: containerLink, path: containerLink + "/docs",
		header: map[string]string{"x-ms-documentdb-partitionkey": `["` + b.pk + `"]`},
	})
	if err != nil {
		return 0, err
	}
	var page struct{ Documents []json.RawMessage }
	if err := json.Unmarshal(res.body, &page); err != nil || res.status != http.StatusOK {
		w.complain(b, "a list was answered with %d %s", res.status, brief(res.body))
		return 0, nil
	}
	read := map[string][]byte{}
	for _, body := range page.Documents {
		var item struct{ ID string }
		if err := json.Unmarshal(body, &item); err != nil {
			w.complain(b, "%s is listed", brief(body))
			return 0, nil
		}
		read[item.ID] = body
	}
	if err := b.settle(read); err != nil {
		w.complain(b, "%v", err)
	}
	return len(read), nil
}
