// SPDX-License-Identifier: MIT

package scripttest

import (
	"bytes"
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/mayflydb/mayfly/internal/kv"
)

func TestRunsOfCharacters(t *testing.T) {
	d := &directive{T: t, data: &datadriven.TestData{}}
	f := func(short, long string) {
		t.Helper()
		if got := d.expand(short); got != long {
			t.Errorf("%s becomes %d bytes, want %d", short, len(got), len(long))
		}
		if got := collapse(long); got != short {
			t.Errorf("%d bytes become %s, want %s", len(long), got, short)
		}
	}
	f("", "")
	f("plain", "plain")
	f("<x*40>", strings.Repeat("x", 40))
	f(`{"id":"<x*1023>"}`, `{"id":"`+strings.Repeat("x", 1023)+`"}`)
	f("<é*50>x", strings.Repeat("é", 50)+"x")
	f("<[*127><]*127>", strings.Repeat("[", 127)+strings.Repeat("]", 127))
	f(strings.Repeat("x", 39), strings.Repeat("x", 39))
}

func TestPaddedToTheByte(t *testing.T) {
	for _, size := range []int{30, 100, 2097152} {
		got := padded([]byte(`{"id":"a"}`), size)
		if len(got) != size || !bytes.HasPrefix(got, []byte(`{"id":"a","pad":"x`)) || !bytes.HasSuffix(got, []byte(`x"}`)) {
			t.Errorf("padded to %d bytes, it has %d: %.40s", size, len(got), got)
		}
	}
}

func TestPartitionKeyOfAnItem(t *testing.T) {
	d := &directive{T: t, data: &datadriven.TestData{}, used: map[string]bool{}}
	f := func(definition, item, want string) {
		t.Helper()
		s := &script{keys: map[string]string{"db/c": definition}}
		if got := s.partitionKey(d, "db", "c", []byte(item)); got != want {
			t.Errorf("%s of %s is %s, want %s", definition, item, got, want)
		}
	}
	f("", `{"id":"a"}`, `["a"]`)
	f(`{"paths":["/pk"]}`, `{"id":"a","pk":7}`, `[7]`)
	f(`{"paths":["/pk"]}`, `{"id":"a"}`, `[{}]`)
	f(`{"paths":["/pk"]}`, `{"id":"a","pk":null}`, `[null]`)
	f(`{"paths":["/pk"]}`, `{"id":"a","pk":"é😀"}`, `["\u00e9\ud83d\ude00"]`)
	f(`{"paths":["/pk"]}`, `{"id":"a","pk":[1]}`, `[{}]`)
	f(`{"paths":["/a/b","/c"]}`, `{"a":{"b":"x"},"c":true}`, `["x",true]`)
	f(`{"paths":["/a/b"]}`, `{"a":1}`, `[{}]`)
}

func TestJSONApart(t *testing.T) {
	f := func(object string, want ...member) {
		t.Helper()
		if got := members([]byte(object)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s has members %q, want %q", object, got, want)
		}
	}
	m := func(name, raw string) member { return member{name, []byte(raw)} }
	f(`{}`)
	f(`[]`)
	f(` { } `)
	f(`{"a":1}`, m("a", `1`))
	f(` { "a" : 1 , "b" : [ 2 , {"c":3} ] } `, m("a", `1`), m("b", `[ 2 , {"c":3} ]`))
	f(`{"a\"}":"\\","b":"\"","c":{"d":"}"},"e":null}`, m(`a"}`, `"\\"`), m("b", `"\""`), m("c", `{"d":"}"}`), m("e", `null`))
	f(`{"a":{},"b":[],"c":-1.5e3}`, m("a", `{}`), m("b", `[]`), m("c", `-1.5e3`))
	for _, text := range []string{``, `{`, `{"a`, `{"a"`, `{"a":`, `{"a":[`, `{]}`, `{,}`, `{"a":"\`} {
		members([]byte(text)) // it comes to an end
	}
	want := [][]byte{[]byte(`1`), []byte(`"],"`), []byte(`[[]]`), []byte(`{"a":1}`)}
	if got := elements([]byte(`[1, "],",[[]] ,{"a":1}]`)); !reflect.DeepEqual(got, want) {
		t.Errorf("elements %q, want %q", got, want)
	}
}

// TestCheckMissesNothing removes each of the rows of items, one at a time; each time, check
// reports a problem.
func TestCheckMissesNothing(t *testing.T) {
	m := newMachine()
	p := &inProcess{machine: m}
	s := &script{server: p, machine: m, throughput: onePartition}
	t.Cleanup(func() {
		if err := s.server.stop(); err != nil {
			t.Error(err)
		}
	})
	datadriven.RunTestFromString(t, "container ttl=60\n----\n201 {\"id\":\"c\",\"defaultTtl\":60}\n", s.run)
	before := rows(t, p)
	datadriven.RunTestFromString(t, "create repeat=2 {\"id\":\"i%d\"} {\"id\":\"o%d\",\"ttl\":5} {\"id\":\"n%d\",\"ttl\":-1}\n----\n201, 6 times\n", s.run)
	if got := s.checked(t); got != allIsWell {
		t.Fatalf("with nothing missing: %s", got)
	}
	tried := 0
	for key, value := range rows(t, p) {
		if _, old := before[key]; old {
			continue
		}
		var remove, restore kv.Batch
		remove.Delete([]byte(key), 0)
		restore.Set([]byte(key), []byte(value))
		commit(t, p, &remove)
		if got := s.checked(t); got == allIsWell {
			t.Errorf("without the row %x all is well", key)
		}
		commit(t, p, &restore)
		tried++
	}
	if tried == 0 {
		t.Error("items are made of no rows")
	}
	if got := s.checked(t); got != allIsWell {
		t.Errorf("with all put back: %s", got)
	}
}

func rows(t *testing.T, p *inProcess) map[string]string {
	t.Helper()
	snap, err := p.db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	all := map[string]string{}
	for e, err := range snap.Scan(nil, []byte{0xff}, kv.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		all[string(e.Key)] = string(e.Value)
	}
	return all
}

func commit(t *testing.T, p *inProcess, b *kv.Batch) {
	t.Helper()
	if err := p.db.Commit(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}
