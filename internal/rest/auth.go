// SPDX-License-Identifier: MIT

// Who makes a request: signatures with a key, resource tokens and the tokens of
// principals. What each may do is in access.go.

package rest

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
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
	errPrincipalDate    = errors.New("the principal's token is not valid at the current time")
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
	mac  hash.Hash
	text []byte // so that the caller's need not be on the heap
	sum  [sha256.Size]byte
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

func newSigners(keys []string) ([]*signer, error) {
	var all []*signer
	for _, text := range keys {
		key, err := NewKey(text)
		if err != nil {
			return nil, err
		}
		all = append(all, newSigner(key))
	}
	return all, nil
}

// sign returns the signature of a text.
func (s *signer) sign(text []byte) [sha256.Size]byte {
	g := s.pool.Get().(*signing)
	defer s.pool.Put(g)
	g.mac.Reset()
	g.text = append(g.text[:0], text...)
	g.mac.Write(g.text)
	g.mac.Sum(g.sum[:0])
	return g.sum
}

// authorize verifies who makes a request: somebody who has a key and signed it
// lately, or the holder of a token.
func (h *Handler) authorize(r *http.Request, rt *route) (grant, error) {
	header := headerOf(r, "Authorization")
	if header == "" {
		return grant{}, errNoAuthorization
	}
	a, err := parseAuthorization(header)
	if err != nil {
		return grant{}, err
	}
	switch {
	case a.kind == "master" && a.version == "1.0":
		by, err := h.verify(r, rt, a.sig)
		return grant{by: by}, err
	case a.kind == "resource" && (a.version == "1" || a.version == "1.0"):
		t, err := h.parseToken(a.sig)
		if err == nil && !time.Now().Before(t.expires) {
			err = errTokenExpired
		}
		return grant{by: byToken, token: t}, err
	case a.kind == "aad" && a.version == "1.0":
		by, err := h.principal(a.sig, time.Now())
		return grant{by: by}, err
	}
	return grant{}, errBadAuthorization
}

// verify checks the signature of a request.
func (h *Handler) verify(r *http.Request, rt *route, sig string) (credential, error) {
	var sigRoom [2 * sha256.Size]byte
	given, err := base64.StdEncoding.AppendDecode(sigRoom[:0], []byte(sig))
	if err != nil {
		return 0, errBadAuthorization
	}
	msDate, date := headerOf(r, "X-Ms-Date"), ""
	when := msDate
	if msDate == "" {
		date = headerOf(r, "Date")
		when = date
	}
	var room [256]byte
	by, ok := h.signed(given, appendSigned(room[:0], r.Method, rt.kind, rt.link, msDate, date))
	if !ok {
		rid, isRID := signedRID(rt)
		if !isRID {
			return 0, errBadAuthorization
		}
		if by, ok = h.signed(given, appendSigned(room[:0], r.Method, rt.kind, rid, msDate, date)); !ok {
			return 0, errBadAuthorization
		}
	}
	return by, h.checkDate(when)
}

// signed compares in constant time, with every key.
func (h *Handler) signed(given, text []byte) (credential, bool) {
	full, reads := matches(h.signers, given, text), matches(h.readers, given, text)
	return keyCredential(full, reads)
}

func matches(signers []*signer, given, text []byte) int {
	ok := 0
	for _, s := range signers {
		want := s.sign(text)
		ok |= subtle.ConstantTimeCompare(given, want[:])
	}
	return ok
}

func keyCredential(full, reads int) (credential, bool) {
	switch {
	case full == 1:
		return byKey, true
	case reads == 1:
		return byReadOnlyKey, true
	}
	return 0, false
}

// authorization is an Authorization header that was taken apart.
type authorization struct {
	kind, version, sig string
}

// parseAuthorization reads type=…&ver=…&sig=…, which clients percent-encode in
// different ways, or not at all.
func parseAuthorization(header string) (authorization, error) {
	if len(header) > maxAuthorizationBytes {
		return authorization{}, errBadAuthorization
	}
	text, err := url.PathUnescape(header)
	if err != nil {
		return authorization{}, errBadAuthorization
	}
	var a authorization
	for part := range strings.SplitSeq(text, "&") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "type":
			a.kind = value
		case "ver":
			a.version = value
		case "sig":
			a.sig = value
		}
	}
	return a, nil
}

// appendSigned appends the text that is signed.
func appendSigned(text []byte, method, kind, link, msDate, date string) []byte {
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
	if !catalog.IsRID(last) && rt.kind != typeOffers {
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

// bearer verifies a key itself as a bearer token, for the pages under /_mayfly/.
func (h *Handler) bearer(r *http.Request) (credential, error) {
	header := headerOf(r, "Authorization")
	if header == "" {
		return 0, errNoAuthorization
	}
	text, ok := strings.CutPrefix(header, "Bearer ")
	if !ok {
		return 0, errBadAuthorization
	}
	return h.key(text)
}

// key says what a key opens.
func (h *Handler) key(text string) (credential, error) {
	by, ok := h.isKey(text)
	if !ok {
		return 0, errBadAuthorization
	}
	return by, nil
}

// isKey compares a text with every key, in constant time.
func (h *Handler) isKey(text string) (credential, bool) {
	given := sha256.Sum256([]byte(text))
	return keyCredential(among(h.keys, &given), among(h.readOnlyKeys, &given))
}

func among(keys []string, given *[sha256.Size]byte) int {
	match := 0
	for _, key := range keys {
		want := sha256.Sum256([]byte(key))
		match |= subtle.ConstantTimeCompare(given[:], want[:])
	}
	return match
}

// principalSkew is how far the clock of who issued a principal's token may be off.
const principalSkew = 5 * time.Minute

// principal verifies a principal's token in the manner of the emulators: a JSON web
// token that is good now, and whose third part is a key in place of a signature.
// Nobody is asked who the principal is.
func (h *Handler) principal(jwt string, now time.Time) (credential, error) {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return 0, errBadAuthorization
	}
	payload, err1 := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	key, err2 := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[2], "="))
	if err1 != nil || err2 != nil {
		return 0, errBadAuthorization
	}
	by, ok := h.isKey(string(key))
	if !ok {
		return 0, errBadAuthorization
	}
	var claims struct {
		Expires   float64 `json:"exp"`
		NotBefore float64 `json:"nbf"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return 0, errBadAuthorization
	}
	seconds := float64(now.Unix())
	if seconds >= claims.Expires+principalSkew.Seconds() || seconds < claims.NotBefore-principalSkew.Seconds() {
		return 0, errPrincipalDate
	}
	if by == byReadOnlyKey {
		return byReadOnlyPrincipal, nil
	}
	return byPrincipal, nil
}
