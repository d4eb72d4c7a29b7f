// SPDX-License-Identifier: MIT

package rest

import (
	"strings"
	"testing"
)

// TestUnknownHeaderValues sends what the .NET SDK's tests send, and what SDKs do.
func TestUnknownHeaderValues(t *testing.T) {
	h := newItems(t, 1)
	f := func(name, text string, known bool) {
		t.Helper()
		header := pk("p")
		header[name] = text
		if known {
			call(t, h, "POST", docsPath, `{"id":"`+name+text+`","pk":"p"}`, header, 201)
			return
		}
		a := call(t, h, "POST", docsPath, `{"id":"`+name+text+`","pk":"p"}`, header, 400)
		if got := a.failureText(t, 400, 0); !strings.Contains(got, "'"+name+"'") {
			t.Errorf("%s: %s: %s", name, text, got)
		}
	}
	for _, directive := range []string{"Default", "Include", "Exclude", "exclude", "1"} {
		f("x-ms-indexing-directive", directive, true)
	}
	f("x-ms-indexing-directive", "Bad", false)
	f("x-ms-indexing-directive", "3", false)
	f("x-ms-documentdb-content-serialization-format", "JsonText", true)
	f("x-ms-documentdb-content-serialization-format", "Bad", false)
	for _, version := range []string{"2014-08-21", "2017-11-15", "2018-12-31", "2020-11-05", "2030-01-01"} {
		f("x-ms-version", version, true)
	}
	for _, version := range []string{"2015-01-01", "2017-12-31", "1", "latest", "2020-13-01"} {
		f("x-ms-version", version, false)
	}
}
