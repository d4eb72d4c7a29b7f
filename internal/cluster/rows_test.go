// SPDX-License-Identifier: MIT

package cluster

import (
	"encoding/hex"
	"errors"
	"testing"
)

// TestRowsStay decodes rows that existing data has: node rows of both versions, and an owner
// row.
func TestRowsStay(t *testing.T) {
	node := nodeRow{Serving, 5, 7, 9000, 0, "http://a", "West"}
	for version, kept := range map[string]string{
		"1": "010100000000000000050000000000000007000000000000232808687474703a2f2f610457657374",
		"2": "020100000000000000050000000000000007000000000000232808" + "08687474703a2f2f610457657374",
	} {
		raw, err := hex.DecodeString(kept)
		if err != nil {
			t.Fatal(err)
		}
		want := node
		if version == "2" {
			want.format = 8
		}
		if got, err := decodeNode(appendSum(raw)); err != nil || got != want {
			t.Errorf("node row of version %s: got %+v, %v, want %+v", version, got, err, want)
		}
	}
	node.format = 8
	good := node.encode()
	if got, err := decodeNode(good); err != nil || got != node {
		t.Errorf("got %+v, %v, want %+v", got, err, node)
	}
	for n := range good {
		if _, err := decodeNode(good[:n]); !errors.Is(err, ErrBadRow) {
			t.Errorf("the first %d bytes: %v, want ErrBadRow", n, err)
		}
	}
	good[0]++
	if _, err := decodeNode(good); !errors.Is(err, ErrNewerRow) {
		t.Errorf("the next version: %v, want ErrNewerRow", err)
	}
	owner := ownerRow{"a", 5, 3, 9000}
	if got, err := decodeOwner(owner.encode()); err != nil || got != owner {
		t.Errorf("got %+v, %v, want %+v", got, err, owner)
	}
}
