// SPDX-License-Identifier: MIT

// Reading the head of a plain request. A request that could be read in two ways, or whose
// body does not end after an announced length, is not plain.

package rest

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

// errNotPlain says that net/http has to read a request.
var errNotPlain = errors.New("the request is not plain")

// maxLaneFields is how many headers a plain request may have.
const maxLaneFields = 64

// plainMethods are the methods of plain requests, with what follows them.
var plainMethods = []string{"GET /", "POST /", "PUT /", "DELETE /", "PATCH /", "HEAD /"}

// notPlain are the headers with which net/http has more to do than to pass them on.
var notPlain = map[string]bool{
	"Expect": true, "Pragma": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// laneHead is what the head of a request says. The next request of the connection uses it
// again: clients send the same headers with every request, so mostly only values change.
type laneHead struct {
	method, target, host string
	url                  url.URL
	length               int64 // of the body

	names  []string // of the headers, as the client spells them
	values [maxLaneFields]string
	header http.Header                            // of slices of values
	at     struct{ host, length, connection int } // where these are in values, or -1
}

// headEnd returns the length of the head that b begins with, including its empty line, or
// 0 if the head is not complete. The first scanned bytes were searched before.
func headEnd(b []byte, scanned int) int {
	from := max(scanned-3, 0)
	if i := bytes.Index(b[from:], []byte("\r\n\r\n")); i >= 0 {
		return from + i + 4
	}
	return 0
}

// mayBecomePlain reports whether b may be the start of the head of a plain request. Lines
// that end without a carriage return would never become a complete one.
func mayBecomePlain(b []byte) bool {
	for i, c := range b {
		if c == '\n' && (i == 0 || b[i-1] != '\r') {
			return false
		}
	}
	for _, method := range plainMethods {
		if n := min(len(method), len(b)); string(b[:n]) == method[:n] {
			return true
		}
	}
	return false
}

// parse reads a head with its empty line. It keeps nothing of b.
func (h *laneHead) parse(b []byte) error {
	line, rest, _ := strings.Cut(string(b), "\r\n")
	if !h.parseLine(line) {
		return errNotPlain
	}
	n, same := 0, h.header != nil
	for ; rest != "\r\n"; n++ {
		line, rest, _ = strings.Cut(rest, "\r\n")
		name, value, ok := strings.Cut(line, ":")
		if !ok || n == maxLaneFields {
			return errNotPlain
		}
		if h.values[n] = strings.Trim(value, " \t"); !isPlainValue(h.values[n]) {
			return errNotPlain
		}
		switch {
		case n == len(h.names):
			h.names, same = append(h.names, strings.Clone(name)), false
		case h.names[n] != name:
			h.names[n], same = strings.Clone(name), false
		}
	}
	if n < len(h.names) {
		h.names, same = h.names[:n], false
	}
	if !same && !h.learn() || !h.parseFraming() {
		return errNotPlain
	}
	return nil
}

// parseLine reads the first line.
func (h *laneHead) parseLine(line string) (ok bool) {
	line, ok = strings.CutSuffix(line, " HTTP/1.1")
	if !ok || !mayBecomePlain([]byte(line)) {
		return false
	}
	h.method, h.target, _ = strings.Cut(line, " ")
	if strings.HasPrefix(h.target, adminPrefix) && h.target != peerPath || strings.HasPrefix(h.target, explorerPrefix) {
		return false // some of these pages last, and are sent as they are made
	}
	simple := true
	for i := range len(h.target) {
		c := h.target[i]
		if c <= ' ' || c > '~' {
			return false
		}
		simple = simple && isSimpleInPath[c]
	}
	if simple {
		h.url = url.URL{Path: h.target}
		return true
	}
	u, err := url.ParseRequestURI(h.target)
	if err == nil {
		h.url = *u
	}
	return err == nil
}

// isSimpleInPath has the bytes that mean themselves in a path and are never escaped there.
var isSimpleInPath = func() (set [256]bool) {
	for c := range set {
		set[c] = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("-._~$&+,/:;=@", rune(c))
	}
	return set
}()

func isPlainValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// learn makes the map for the headers that the client has begun to send.
func (h *laneHead) learn() bool {
	h.header = make(http.Header, len(h.names))
	h.at.host, h.at.length, h.at.connection = -1, -1, -1
	for i, name := range h.names {
		for j := range len(name) {
			if c := name[j]; c != '-' && c != '_' && !('a' <= c|0x20 && c|0x20 <= 'z') && !('0' <= c && c <= '9') {
				return false
			}
		}
		key := textproto.CanonicalMIMEHeaderKey(name)
		if _, twice := h.header[key]; twice || name == "" || notPlain[key] {
			return false
		}
		switch key {
		case "Host":
			if h.at.host >= 0 {
				return false
			}
			h.at.host = i
			continue // as in net/http, it is not in the map
		case headerContentLength:
			h.at.length = i
		case "Connection":
			h.at.connection = i
		}
		h.header[key] = h.values[i : i+1 : i+1]
	}
	return true
}

// parseFraming reads the headers that are about the connection.
func (h *laneHead) parseFraming() bool {
	if h.at.host < 0 || h.at.connection >= 0 && !strings.EqualFold(h.values[h.at.connection], "keep-alive") {
		return false
	}
	h.host = h.values[h.at.host]
	for i := range len(h.host) {
		if c := h.host[i]; !isSimpleInPath[c] && c != '[' && c != ']' || c == '/' {
			return false
		}
	}
	if h.length = 0; h.at.length >= 0 {
		n, err := strconv.ParseUint(h.values[h.at.length], 10, 63)
		if err != nil {
			return false
		}
		h.length = int64(n)
	}
	return true
}

// request returns the request, without its body.
func (h *laneHead) request(ctx context.Context) *http.Request {
	u := h.url
	r := http.Request{
		Method: h.method, URL: &u, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h.header,
		ContentLength: h.length, Host: h.host, RequestURI: h.target, Body: http.NoBody,
	}
	return r.WithContext(ctx)
}
