// SPDX-License-Identifier: MIT

package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/binaryjson"
	"github.com/mayflydb/mayfly/internal/engine"
)

// binaryOf returns a text in binary JSON.
func binaryOf(t testing.TB, text string) string {
	t.Helper()
	document, err := binaryjson.Encode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

// binaryHeaders are those of the .NET SDK with AZURE_COSMOS_BINARY_ENCODING_ENABLED.
func binaryHeaders(key, accepts string) map[string]string {
	h := pk(key)
	maps.Copy(h, dotnetHeaders(map[string]string{
		"x-ms-documentdb-content-serialization-format": "CosmosBinary", "x-ms-cosmos-supported-serialization-formats": accepts,
	}))
	return h
}

func TestItemsInBinaryJSON(t *testing.T) {
	h := newContainer(t)
	a := call(t, h, "POST", testDocs, binaryOf(t, `{"id":"a","pk":"p","n":1.5,"ttl":60}`), binaryHeaders("p", "CosmosBinary"), 201)
	if got := a.header.Get("Content-Type"); got != contentBinary {
		t.Errorf("content type %q", got)
	}
	text, err := binaryjson.Decode(a.body, engine.MaxItemBytes)
	if err != nil {
		t.Fatalf("%x: %v", a.body, err)
	}
	var item map[string]any
	if err := json.Unmarshal(text, &item); err != nil {
		t.Fatal(err)
	}
	if item["id"] != "a" || item["n"] != 1.5 || item["_etag"] != a.header.Get("ETag") {
		t.Errorf("got %s", text)
	}
	stored := call(t, h, "GET", testDocs+"/a", "", pk("p"), 200).body
	if !bytes.Equal(stored, text) {
		t.Errorf("stored as %s", stored)
	}
	for _, accepts := range []string{"JsonText,CosmosBinary", "JsonText", ""} {
		if a := call(t, h, "GET", testDocs+"/a", "", binaryHeaders("p", accepts), 200); !json.Valid(a.body) {
			t.Errorf("a client that accepts %q got %x", accepts, a.body)
		}
	}
	a = call(t, h, "GET", testDocs+"/none", "", binaryHeaders("p", "CosmosBinary"), 404)
	if a.failureText(t, 404, 0) == "" {
		t.Errorf("an error is not text: %s", a.body)
	}
}

func TestMalformedBinaryJSON(t *testing.T) {
	h := newContainer(t)
	a := call(t, h, "POST", testDocs, "\x80\xe2\x0a", binaryHeaders("p", "CosmosBinary"), 400)
	if got := a.failureText(t, 400, 0); !strings.Contains(got, "binary JSON") {
		t.Errorf("got %q", got)
	}
	long := strings.Repeat("a", 60_000)
	references := "\x80\xe4\x00\x00\x00\x00" + "\xc1\x60\xea" + long + strings.Repeat("\xc4\x06\x00", 10_000)
	n := len(references) - 6
	document := references[:2] + string([]byte{byte(n), byte(n >> 8), byte(n >> 16), 0}) + references[6:]
	call(t, h, "POST", testDocs, document, binaryHeaders("p", "CosmosBinary"), 413)
	if use := h.memory.Use(); use.Held != 0 {
		t.Errorf("memory is held: %+v", use)
	}
}

// The rows of a batch from .NET may hold items in binary JSON.
func TestBinaryJSONInAHybridBatch(t *testing.T) {
	h := newContainer(t)
	upsert := func(body string) string {
		return fmt.Sprintf("81 7054E17F 43 14000000 02000000 %02X %x", len(body), body)
	}
	a := call(t, h, "POST", testDocs, hybridStream(t, upsert(binaryOf(t, `{"id":"1","pk":"a","n":7}`))), batchHeaders(), 200)
	if r := hybridResults(t, a.body); len(r) != 1 || r[0].status != 201 {
		t.Fatalf("got %+v", r)
	}
	if a := call(t, h, "GET", testDocs+"/1", "", pk("a"), 200); !strings.Contains(string(a.body), `"n":7`) {
		t.Errorf("stored as %s", a.body)
	}
	call(t, h, "POST", testDocs, hybridStream(t, upsert("\x80\xe2\x09")), batchHeaders(), 400)
}
