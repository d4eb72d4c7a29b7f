// SPDX-License-Identifier: MIT

// Authentication: signatures with a key, resource tokens, and tokens of principals. What
// each credential allows is in access.go of package api.

package rest

import (
	"cmp"
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

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
)

var (
	errNoAuthorization  = api.Refuse(401, 0, "Required Header authorization is missing. Ensure a valid Authorization token is passed.")
	errBadAuthorization = api.Refuse(401, 0, "The input authorization token can't serve the request. Please check that the expected payload is built as per the protocol, and check the key being used.")
	errPrincipalDate    = api.Refuse(401, 0, "The Entra ID token is not valid at the current time: it has expired, or is not valid yet.")
	errDate             = api.Refuse(403, 0, "The authorization token is not valid at the current time: its date is more than 15 minutes from the server's. Check the clocks of both machines.")
	errTokenExpired     = api.Refuse(403, 0, "The input authorization token is not valid at the current time. Please create another token and retry.")
)

const (
	// maxDateSkew is how far a request's date may be from the wall clock.
	maxDateSkew = 15 * time.Minute
	// maxAuthorizationBytes bounds the length of the header that is decoded.
	maxAuthorizationBytes = 4 << 10
)

// key is one of the account's keys.
type key struct {
	by     api.Credential    // api.ByKey or api.ByReadOnlyKey
	digest [sha256.Size]byte // of its text
	pool   sync.Pool         // of *signing
}

// signing is the state for computing one signature, reused for the next.
type signing struct {
	mac  hash.Hash
	text []byte // a copy here keeps the caller's on the stack
	sum  [sha256.Size]byte
}

// ParseKey checks a master key, which is base64, and returns its bytes.
func ParseKey(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("the key is not base64: %w", err)
	}
	if len(key) == 0 {
		return nil, errors.New("the key is empty")
	}
	return key, nil
}

func newKey(by api.Credential, text string) (*key, error) {
	secret, err := ParseKey(text)
	if err != nil {
		return nil, err
	}
	k := &key{by: by, digest: sha256.Sum256([]byte(text))}
	k.pool.New = func() any { return &signing{mac: hmac.New(sha256.New, secret)} }
	return k, nil
}

// sign returns the signature of a text.
func (k *key) sign(text []byte) [sha256.Size]byte {
	g := k.pool.Get().(*signing)
	defer k.pool.Put(g)
	g.mac.Reset()
	g.text = append(g.text[:0], text...)
	g.mac.Write(g.text)
	g.mac.Sum(g.sum[:0])
	return g.sum
}

// opened returns the credential of the key for which matches returns 1. It compares all
// keys, and matches runs in constant time.
func (h *Handler) opened(matches func(*key) int) (api.Credential, error) {
	var found [2]int // api.ByKey, api.ByReadOnlyKey
	for _, k := range h.keys {
		found[k.by] |= matches(k)
	}
	for by, match := range found {
		if match == 1 {
			return api.Credential(by), nil
		}
	}
	return 0, errBadAuthorization
}

// signed returns the credential of the key that signed a text.
func (h *Handler) signed(given, text []byte) (api.Credential, error) {
	return h.opened(func(k *key) int {
		want := k.sign(text)
		return subtle.ConstantTimeCompare(given, want[:])
	})
}

// key returns the credential of a key that is itself in the request.
func (h *Handler) key(text string) (api.Credential, error) {
	given := sha256.Sum256([]byte(text))
	return h.opened(func(k *key) int { return subtle.ConstantTimeCompare(given[:], k.digest[:]) })
}

// authorize verifies the credential of a request: a recent signature with a key, a
// resource token, or a principal's token.
func (h *Handler) authorize(r *http.Request, rt *route) (api.Grant, error) {
	header := headerOf(r, "Authorization")
	if header == "" {
		return api.Grant{}, errNoAuthorization
	}
	a, err := parseAuthorization(header)
	if err != nil {
		return api.Grant{}, err
	}
	switch {
	case a.kind == "master" && a.version == "1.0":
		by, err := h.verify(r, rt, a.sig)
		return api.Grant{By: by}, err
	case a.kind == "resource" && (a.version == "1" || a.version == "1.0"):
		t, err := h.parseToken(a.sig)
		if err == nil && !time.Now().Before(t.expires) {
			err = errTokenExpired
		}
		return api.Grant{By: api.ByToken, Permission: t.permission, Container: t.container}, err
	case a.kind == "aad" && a.version == "1.0":
		by, err := h.principal(a.sig, time.Now())
		return api.Grant{By: by}, err
	}
	return api.Grant{}, errBadAuthorization
}

// verify checks the signature of a request.
func (h *Handler) verify(r *http.Request, rt *route, sig string) (api.Credential, error) {
	var sigRoom [2 * sha256.Size]byte
	given, err := base64.StdEncoding.AppendDecode(sigRoom[:0], []byte(sig))
	if err != nil {
		return 0, errBadAuthorization
	}
	msDate, date := headerOf(r, "X-Ms-Date"), ""
	if msDate == "" {
		date = headerOf(r, "Date")
	}
	var room [256]byte
	by, err := h.signed(given, appendSigned(room[:0], r.Method, rt.kind.Word(), rt.link, msDate, date))
	if err != nil {
		rid, isRID := signedRID(rt)
		if !isRID {
			return 0, err
		}
		if by, err = h.signed(given, appendSigned(room[:0], r.Method, rt.kind.Word(), rid, msDate, date)); err != nil {
			return 0, err
		}
	}
	return by, h.checkDate(cmp.Or(msDate, date))
}

// authorization is a parsed Authorization header.
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

// signedRID returns what clients sign when they address a resource by rids: the last rid
// alone, in lower case.
func signedRID(rt *route) (string, bool) {
	i := strings.LastIndexByte(rt.link, '/')
	last := rt.link[i+1:]
	if !catalog.IsRID(last) && rt.kind != api.Offers {
		return "", false
	}
	return strings.ToLower(last), true
}

// checkedDate is a valid date and the interval in which it is valid.
type checkedDate struct {
	text        string
	first, last time.Time
}

// checkDate compares a date with the wall clock, not with the database's time, which a
// test may have moved. Most requests of one second carry the same text, so the last one
// that was parsed is kept.
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

// bearer verifies a key that is sent as a bearer token, for the pages under /_mayfly/.
func (h *Handler) bearer(r *http.Request) (api.Credential, error) {
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

// principalSkew is how far the clock of a token's issuer may be off.
const principalSkew = 5 * time.Minute

// principal verifies a principal's token as the emulators do: a JSON web token that is
// valid now, with a key as its third part in place of a signature. The principal's
// identity is not checked.
func (h *Handler) principal(jwt string, now time.Time) (api.Credential, error) {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return 0, errBadAuthorization
	}
	payload, err1 := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	key, err2 := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[2], "="))
	if err1 != nil || err2 != nil {
		return 0, errBadAuthorization
	}
	by, err := h.key(string(key))
	if err != nil {
		return 0, err
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
	if by == api.ByReadOnlyKey {
		return api.ByReadOnlyPrincipal, nil
	}
	return api.ByPrincipal, nil
}
