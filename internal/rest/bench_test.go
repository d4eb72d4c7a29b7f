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

// BenchmarkQuery measures queries that an index answers with one item, and with
// the first ten of an order, among items of 1 KiB with ten indexed properties.
func BenchmarkQuery(b *testing.B) {
	h := newContainer(b)
	const items = 10_000
	for i := range items {
		item := fmt.Appendf(nil, `{"id":"s%d","pk":"p001","a":%d,"b":"b%d","c":%d,"d":"d%d","e":%t,"f":%d,"g":"g%d","h":%d,"pad":"%s"}`,
			i, i, i%100, i%10, i, i%2 == 0, i, i, i, strings.Repeat("x", 800))
		serveOnce(b, h, signedRequest(b, "POST", "/dbs/d/colls/c/docs", item, pk("p001")), 201)
	}
	for _, c := range []struct{ name, query string }{
		{"equality", `{"query":"SELECT * FROM c WHERE c.a = @a","parameters":[{"name":"@a","value":%d}]}`},
		{"range", `{"query":"SELECT * FROM c WHERE c.f > @a OFFSET 0 LIMIT 10","parameters":[{"name":"@a","value":%d}]}`},
		{"order", `{"query":"SELECT * FROM c WHERE c.h > @a ORDER BY c.h OFFSET 0 LIMIT 10","parameters":[{"name":"@a","value":%d}]}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := signedRequest(b, "POST", "/dbs/d/colls/c/docs", nil, asQuery(pk("p001")))
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				body := fmt.Appendf(nil, c.query, i*7919%(items-100))
				i++
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
				serveOnce(b, h, r, 200)
			}
		})
	}
}
