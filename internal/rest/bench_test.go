// SPDX-License-Identifier: MIT

package rest

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

func benchItem(i int) []byte {
	return fmt.Appendf(nil, `{"id":"s%d","pk":"p001","n":%d,"kind":"bench","tags":["a","b"],"pad":"%s"}`, i, i, strings.Repeat("x", 950))
}

func BenchmarkRead(b *testing.B) {
	h := newContainer(b)
	for i := range 1000 {
		serveOnce(b, h, signedRequest(b, "POST", "/dbs/d/colls/c/docs", benchItem(i), pk("p001")), 201)
	}
	r := signedRequest(b, "GET", "/dbs/d/colls/c/docs/s500", nil, pk("p001"))
	b.ReportAllocs()
	for b.Loop() {
		serveOnce(b, h, r, 200)
	}
}

func BenchmarkCreate(b *testing.B) {
	h := newContainer(b)
	r := signedRequest(b, "POST", "/dbs/d/colls/c/docs", nil, pk("p001"))
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		body := benchItem(i)
		i++
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		serveOnce(b, h, r, 201)
	}
}
