// SPDX-License-Identifier: MIT

// A writer's knowledge of an item, and its consequences.

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// item is one item as its only writer knows it.
type item struct {
	id, pk string
	// body is the item's exact bytes in the last answer; nil if the item does not exist.
	body []byte
	ts   int64 // its _ts, in seconds
	ttl  int64 // in seconds, 0 for none
	// doubt is a write without an answer, or nil.
	doubt *write
}

// write is a request to write an item.
type write struct {
	op   op
	ttl  int64
	body []byte // nil for a delete
	// possible says whether the write may succeed, by what was known when it was sent.
	possible bool
}

type op string

const (
	create  op = "create"
	upsert  op = "upsert"
	replace op = "replace"
	remove  op = "delete"
)

func (it *item) String() string { return "item " + it.id }

// life is whether an item exists, as far as that is known.
type life int

const (
	dead life = iota
	unsure
	alive
)

// span bounds the database's time, in milliseconds.
type span struct{ fromMs, toMs int64 }

// life determines whether the item exists at some time within now, apart from its doubt.
// _ts has whole seconds, so only the second of an item's write is known.
func (it *item) life(now span) life {
	switch {
	case it.body == nil:
		return dead
	case it.ttl == 0, now.toMs < (it.ts+it.ttl)*1000:
		return alive
	case now.fromMs >= (it.ts+it.ttl)*1000+999:
		return dead
	}
	return unsure
}

// status is the status of an operation on an item that exists, and on one that does not.
var status = map[op]map[life]int{
	create:  {alive: 409, dead: 201},
	upsert:  {alive: 200, dead: 201},
	replace: {alive: 200, dead: 404},
	remove:  {alive: 204, dead: 404},
}

// expects reports whether an answer to an operation agrees with what is known.
func (it *item) expects(o op, now span, answered int) bool {
	l := it.life(now)
	return l != dead && answered == status[o][alive] || l != alive && answered == status[o][dead]
}

// allows reports whether an operation may succeed, by what is known.
func (it *item) allows(o op, now span) bool {
	switch o {
	case create:
		return it.life(now) != alive
	case replace, remove:
		return it.life(now) != dead
	}
	return true
}

// keep records a body as the present one.
func (it *item) keep(body []byte, ttl int64) error {
	ts, err := timeOf(body)
	if err != nil {
		return err
	}
	it.body, it.ts, it.ttl = body, ts, ttl
	return nil
}

// timeOf returns the _ts of an item.
func timeOf(body []byte) (int64, error) {
	var system struct {
		TS int64 `json:"_ts"`
	}
	if err := json.Unmarshal(body, &system); err != nil {
		return 0, fmt.Errorf("the body %s: %w", brief(body), err)
	}
	return system.TS, nil
}

func (it *item) forget() { it.body = nil }

// settle compares what was read with what is known, and ends the doubt. missing says that
// the server has no such item.
func (it *item) settle(now span, read []byte, missing bool) error {
	doubt := it.doubt
	done := doubt != nil && doubt.possible
	it.doubt = nil
	if missing {
		expired := done && doubt.body != nil && doubt.ttl != 0
		if it.life(now) == alive && !(done && doubt.op == remove) && !expired {
			return fmt.Errorf("it is missing, and %s was acknowledged", brief(it.body))
		}
		it.forget()
		return nil
	}
	switch {
	case it.body != nil && bytes.Equal(read, it.body):
		if it.life(now) == dead {
			return fmt.Errorf("it is there, and had expired: %s", brief(read))
		}
		return nil
	case done && doubt.body != nil && sameProperties(read, doubt.body):
		return it.keep(read, doubt.ttl)
	case it.body == nil:
		return fmt.Errorf("it is there, and its absence was acknowledged: %s", brief(read))
	}
	return fmt.Errorf("it is %s, and %s was acknowledged", brief(read), brief(it.body))
}

// sameProperties reports whether an answer has all properties that were sent, and no others
// but the system properties.
func sameProperties(answer, sent []byte) bool {
	var got, want map[string]any
	if json.Unmarshal(answer, &got) != nil || json.Unmarshal(sent, &want) != nil {
		return false
	}
	for _, name := range []string{"_rid", "_self", "_etag", "_attachments", "_ts"} {
		if _, there := got[name]; !there {
			return false
		}
		delete(got, name)
	}
	return reflect.DeepEqual(got, want)
}

// brief shortens a body for a message.
func brief(body []byte) string {
	const most = 160
	if len(body) <= most {
		return string(body)
	}
	return fmt.Sprintf("%s… (%d bytes)", body[:most], len(body))
}
