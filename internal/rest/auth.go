// SPDX-License-Identifier: MIT

// Signatures with a master key.

package rest

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
)

var (
	errNoAuthorization  = errors.New("required Header authorization is missing. Ensure a valid Authorization token is passed")
	errBadAuthorization = errors.New("the input authorization token can't serve the request. Please check that the expected payload is built as per the protocol, and check the key being used")
	errDate             = errors.New("the authorization token is not valid at the current time")
)

const (
	// maxDateSkew is how far a request's date may be from the wall clock.
	maxDateSkew = 15 * time.Minute
	// maxAuthorizationBytes bounds what is decoded.
	maxAuthorizationBytes = 4 << 10
)

// signer computes signatures with one key.
type signer struct {
	pool sync.Pool // of *signing
}

// signing is what it takes to compute one signature, kept for the next.
type signing struct {
	mac hash.Hash
	sum [sha256.Size]byte
}

// NewKey checks a master key, which is base64, and returns its bytes.
func NewKey(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("the key is not base64: %w", err)
	}
	if len(key) == 0 {
		return nil, errors.New("the key is empty")
	}
	return key, nil
}

func newSigner(key []byte) *signer {
	return &signer{pool: sync.Pool{New: func() any { return &signing{mac: hmac.New(sha256.New, key)} }}}
}

// sign returns the signature of a text.
func (s *signer) sign(text []byte) [sha256.Size]byte {
	g := s.pool.Get().(*signing)
	defer s.pool.Put(g)
	g.mac.Reset()
	g.mac.Write(text)
	g.mac.Sum(g.sum[:0])
	return g.sum
}

// authorize verifies that a request was signed with a master key, lately.
func (h *Handler) authorize(r *http.Request, rt *route) error {
	header := headerOf(r, "Authorization")
	if header == "" {
		return errNoAuthorization
	}
	given, err := masterSignature(header)
	if err != nil {
		return err
	}
	msDate, date := headerOf(r, "X-Ms-Date"), ""
	when := msDate
	if msDate == "" {
		date = headerOf(r, "Date")
		when = date
	}
	if !h.signed(given, signedText(r.Method, rt.kind, rt.link, msDate, date)) {
		rid, ok := signedRID(rt)
		if !ok || !h.signed(given, signedText(r.Method, rt.kind, rid, msDate, date)) {
			return errBadAuthorization
		}
	}
	return h.checkDate(when)
}

// signed compares in constant time, with every key.
func (h *Handler) signed(given, text []byte) bool {
	ok := 0
	for _, s := range h.signers {
		want := s.sign(text)
		ok |= subtle.ConstantTimeCompare(given, want[:])
	}
	return ok == 1
}

// masterSignature takes the signature out of an Authorization header, which
// clients percent-encode in different ways, or not at all.
func masterSignature(header string) ([]byte, error) {
	if len(header) > maxAuthorizationBytes {
		return nil, errBadAuthorization
	}
	token, err := url.PathUnescape(header)
	if err != nil {
		return nil, errBadAuthorization
	}
	var kind, version, sig string
	for part := range strings.SplitSeq(token, "&") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "type":
			kind = value
		case "ver":
			version = value
		case "sig":
			sig = value
		}
	}
	raw, err := base64.StdEncoding.DecodeString(sig)
	if err != nil || kind != "master" || version != "1.0" {
		return nil, errBadAuthorization
	}
	return raw, nil
}

func signedText(method, kind, link, msDate, date string) []byte {
	text := make([]byte, 0, 256)
	text = appendLower(text, method)
	text = append(append(text, '\n'), kind...)
	text = append(append(text, '\n'), link...)
	text = appendLower(append(text, '\n'), msDate)
	text = appendLower(append(text, '\n'), date)
	return append(text, '\n')
}

func appendLower(dst []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// signedRID returns what clients sign when they address a resource by rids: the
// last rid alone, in lower case.
func signedRID(rt *route) (string, bool) {
	i := strings.LastIndexByte(rt.link, '/')
	last := rt.link[i+1:]
	if _, ok := catalog.ParseRID(last); !ok && rt.kind != typeOffers {
		return "", false
	}
	return strings.ToLower(last), true
}

// checkedDate is a date that was found good, and until when it is.
type checkedDate struct {
	text        string
	first, last time.Time
}

// checkDate compares with the wall clock, not with the database's time, which a
// test may have moved. Most requests of one second carry the same text, which is
// taken apart once.
func (h *Handler) checkDate(text string) error {
	now := time.Now()
	d := h.lastDate.Load()
	if d == nil || d.text != text {
		// Some clients send the date as they sign it, in lower case.
		upper := strings.ToUpper(text)
		t, err := http.ParseTime(upper)
		if err != nil {
			// The Go SDK writes UTC where RFC 1123 wants GMT.
			if t, err = time.Parse(time.RFC1123, upper); err != nil {
				return errBadAuthorization
			}
		}
		d = &checkedDate{text, t.Add(-maxDateSkew), t.Add(maxDateSkew)}
		h.lastDate.Store(d)
	}
	if now.Before(d.first) || now.After(d.last) {
		return errDate
	}
	return nil
}

// bearer verifies the master key itself as a bearer token, for the pages under
// /_mayfly/.
func (h *Handler) bearer(r *http.Request) error {
	header := headerOf(r, "Authorization")
	if header == "" {
		return errNoAuthorization
	}
	token, ok := strings.CutPrefix(header, "Bearer ")
	if !ok {
		return errBadAuthorization
	}
	given := sha256.Sum256([]byte(token))
	match := 0
	for _, key := range h.keys {
		want := sha256.Sum256([]byte(key))
		match |= subtle.ConstantTimeCompare(given[:], want[:])
	}
	if match != 1 {
		return errBadAuthorization
	}
	return nil
}
