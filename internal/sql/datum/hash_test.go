// SPDX-License-Identifier: MIT

package datum

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/value"
)

// The hashes in testdata were computed by the .NET SDK.
func TestHashIsThatOfClients(t *testing.T) {
	table, err := os.ReadFile("testdata/client-hash.tsv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(table)), "\n")
	for _, line := range lines[1:] {
		cells := strings.Split(strings.TrimSuffix(line, "\r"), "\t")
		low, _ := strconv.ParseInt(cells[1], 10, 64)
		high, _ := strconv.ParseInt(cells[2], 10, 64)
		want := value.Hash{Low: uint64(low), High: uint64(high)}
		if got := Raw([]byte(cells[0])).Hash(); got != want {
			t.Errorf("%s: %d %d, want %d %d", cells[0], int64(got.Low), int64(got.High), low, high)
		}
	}
	if len(lines) < 29 {
		t.Errorf("%d lines only", len(lines))
	}
}

// Arrays come before objects, and each in the order of the hash: its low half from the
// lowest byte on, then the high one.
func TestOrderOfArraysAndObjects(t *testing.T) {
	got := []string{`{"":""}`, `[10,20]`, `[20,10]`, `[]`, `[null]`, `[[]]`}
	slices.SortFunc(got, func(a, b string) int { return Compare(Raw([]byte(a)), Raw([]byte(b))) })
	// The lowest bytes are 12, 41, 7c, 82 and b0.
	if want := []string{`[20,10]`, `[null]`, `[[]]`, `[]`, `[10,20]`, `{"":""}`}; !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}

// What a client sends to go on after a value stands for the value in every order.
func TestResumedValuesAreOrderedAsTheValues(t *testing.T) {
	texts := []string{"", "null", "false", "true", "-1", "1", `""`, `"a"`, "[]", "[1]", `[[1],{}]`, "{}", `{"a":1}`, `{"type":"array","low":1,"high":2}`}
	for _, a := range texts {
		x := Raw([]byte(a))
		sent, ok := Resumed(Raw(x.AppendResume(nil)))
		if !ok || x.kind < KindArray && !Equal(x, sent) {
			t.Errorf("%s is sent as %s and read as %s, %v", x, x.AppendResume(nil), sent, ok)
		}
		for _, b := range texts {
			y := Raw([]byte(b))
			if got, want := Compare(sent, y.Ordered()), Compare(x, y); got != want {
				t.Errorf("%s to %s is %d, and as it is sent %d", x, y, want, got)
			}
		}
	}
	for _, bad := range []string{
		"", "[1]", "[[]]", "{}", `{"type":"array"}`, `{"type":"array","low":1}`, `{"type":"array","low":1,"high":2,"x":3}`,
		`{"type":"string","low":1,"high":2}`, `{"type":"array","low":"1","high":2}`, `{"type":"array","low":1.5,"high":2}`,
		`{"type":"array","low":9223372036854775808,"high":2}`, `{"type":1,"low":1,"high":2}`, `{"low":1,"high":2,"x":"array"}`,
	} {
		if v, ok := Resumed(Raw([]byte(bad))); ok {
			t.Errorf("%s was read as %s", bad, v)
		}
	}
}
