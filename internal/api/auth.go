// SPDX-License-Identifier: MIT

// Authentication: signatures with a key, resource tokens, and tokens of principals. What
// each credential allows is in access.go.

package api

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
)

// WellKnownKey is the key of the service's emulators. It is public.
const WellKnownKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

// The errors by which authentication fails.
var (
	ErrNoAuthorization  = Refuse(401, 0, "Required Header authorization is missing. Ensure a valid Authorization token is passed.")
	ErrBadAuthorization = Refuse(401, 0, "The input authorization token can't serve the request. Please check that the expected payload is built as per the protocol, and check the key being used.")
	ErrPrincipalDate    = Refuse(401, 0, "The Entra ID token is not valid at the current time: it has expired, or is not valid yet.")
	ErrDate             = Refuse(403, 0, "The authorization token is not valid at the current time: its date is more than 15 minutes from the server's. Check the clocks of both machines.")
	ErrTokenExpired     = Refuse(403, 0, "The input authorization token is not valid at the current time. Please create another token and retry.")
)

// authenticationFailures are these errors with their names in metrics.
var authenticationFailures = []struct {
	err  error
	name string
}{
	{ErrBadAuthorization, "wrong"}, {ErrNoAuthorization, "missing"}, {ErrDate, "date"}, {ErrPrincipalDate, "date"}, {ErrTokenExpired, "expired"},
}

// AuthenticationFailure returns the name of an error of authentication in metrics.
func AuthenticationFailure(err error) string {
	for _, f := range authenticationFailures {
		if errors.Is(err, f.err) {
			return f.name
		}
	}
	return ""
}

// AuthenticationFailures returns all these names.
func AuthenticationFailures() (names []string) {
	for _, f := range authenticationFailures {
		names = append(names, f.name)
	}
	return names
}

// wrongSignature is ErrBadAuthorization with the text that should have been signed.
type wrongSignature struct{ *Failure }

func (w *wrongSignature) Unwrap() []error { return []error{w.Failure, ErrBadAuthorization} }

// signedPayload begins the part of a message that shows what should have been signed.
const signedPayload = " Server used the following payload to sign: '"

// maxSignedShown is how much of the text that should have been signed is shown.
const maxSignedShown = 1 << 10

// explainSignature says what the server has signed, as the service does, and whether the
// client has the key of the emulators where the server has another.
func (ks *Keys) explainSignature(p *Proof, given []byte) error {
	text := p.appendSigned(nil, p.Link)
	f := *ErrBadAuthorization.(*Failure)
	payload := signedPayload + strings.ToValidUTF8(string(text[:min(len(text), maxSignedShown)]), "") + "'"
	if known, err := newKey(ByKey, WellKnownKey); err == nil {
		if want := known.sign(text); subtle.ConstantTimeCompare(given, want[:]) == 1 {
			f.Text += " The request is signed with the well-known key of the emulators, but this server has a key of its own."
		}
	}
	f.Text += payload
	return &wrongSignature{&f}
}

const (
	// maxDateSkew is how far a request's date may be from the wall clock.
	maxDateSkew = 15 * time.Minute
	// maxAuthorizationBytes bounds the length of the header that is decoded.
	maxAuthorizationBytes = 4 << 10
)

// Keys are the account's keys. They verify credentials, and sign resource tokens.
type Keys struct {
	all      []*key // those that may write come first
	lastDate atomic.Pointer[checkedDate]
}

// NewKeys returns keys that may write, at least one, and others that only allow reads.
// All are in base64.
func NewKeys(writing, readOnly []string) (*Keys, error) {
	if len(writing) == 0 {
		return nil, errors.New("there is no master key")
	}
	ks := &Keys{}
	for by, texts := range [][]string{ByKey: writing, ByReadOnlyKey: readOnly} {
		for _, text := range texts {
			k, err := newKey(Credential(by), text)
			if err != nil {
				return nil, err
			}
			ks.all = append(ks.all, k)
		}
	}
	return ks, nil
}

// Proof is the credential of a request, and what a signature covers.
type Proof struct {
	Authorization string
	Method        string // as the client signs it: that of HTTP, in any case
	Resource      Resource
	Link          string // of the resource itself, or of the owner of a list
	// MsDate is the date that the protocol defines. Date is that of HTTP, for requests
	// without the other.
	MsDate, Date string
}

// key is one of the account's keys.
type key struct {
	by     Credential // ByKey or ByReadOnlyKey
	text   string
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

func newKey(by Credential, text string) (*key, error) {
	secret, err := ParseKey(text)
	if err != nil {
		return nil, err
	}
	k := &key{by: by, text: text, digest: sha256.Sum256([]byte(text))}
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
func (ks *Keys) opened(matches func(*key) int) (Credential, error) {
	var found [2]int // ByKey, ByReadOnlyKey
	for _, k := range ks.all {
		found[k.by] |= matches(k)
	}
	for by, match := range found {
		if match == 1 {
			return Credential(by), nil
		}
	}
	return 0, ErrBadAuthorization
}

// Fingerprints returns what tells keys apart in the log, without showing any of them.
func (ks *Keys) Fingerprints() []string {
	all := make([]string, len(ks.all))
	for i, k := range ks.all {
		all[i] = credentialNames[k.by] + " " + hex.EncodeToString(k.digest[:4])
	}
	return all
}

// signed returns the credential of the key that signed a text.
func (ks *Keys) signed(given, text []byte) (Credential, error) {
	return ks.opened(func(k *key) int {
		want := k.sign(text)
		return subtle.ConstantTimeCompare(given, want[:])
	})
}

// Key returns the credential of a key that is itself in the request.
func (ks *Keys) Key(text string) (Credential, error) {
	given := sha256.Sum256([]byte(text))
	return ks.opened(func(k *key) int { return subtle.ConstantTimeCompare(given[:], k.digest[:]) })
}

// Text returns a key with the rights of a credential, for a request of this server to
// another node.
func (ks *Keys) Text(by Credential) string { return ks.having(by).text }

// Sign returns the authorization of a request that is made with such a key.
func (ks *Keys) Sign(by Credential, p *Proof) string {
	sum := ks.having(by).sign(p.appendSigned(nil, p.Link))
	return "type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(sum[:])
}

// having returns the first key with the rights of a credential that one of them has given.
func (ks *Keys) having(by Credential) *key {
	for _, k := range ks.all {
		if k.by == by {
			return k
		}
	}
	panic("no key has these rights")
}

// Authorize verifies the credential of a request: a recent signature with a key, a
// resource token, or a principal's token. now is by the wall clock. Admit decides whether
// the credential allows the request.
func (ks *Keys) Authorize(p *Proof, now time.Time) (Grant, error) {
	if p.Authorization == "" {
		return Grant{}, ErrNoAuthorization
	}
	a, err := parseAuthorization(p.Authorization)
	if err != nil {
		return Grant{}, err
	}
	switch {
	case a.kind == "master" && a.version == "1.0":
		by, err := ks.verify(p, a.sig, now)
		return Grant{By: by}, err
	case a.kind == "resource" && (a.version == "1" || a.version == "1.0"):
		t, err := ks.parseToken(a.sig)
		if err == nil && !now.Before(t.expires) {
			err = ErrTokenExpired
		}
		return Grant{By: ByToken, Permission: t.permission, Container: t.container}, err
	case a.kind == "aad" && a.version == "1.0":
		by, err := ks.principal(a.sig, now)
		return Grant{By: by}, err
	}
	return Grant{}, ErrBadAuthorization
}

// verify checks the signature of a request.
func (ks *Keys) verify(p *Proof, sig string, now time.Time) (Credential, error) {
	var sigRoom [2 * sha256.Size]byte
	given, err := base64.StdEncoding.AppendDecode(sigRoom[:0], []byte(sig))
	if err != nil {
		return 0, ErrBadAuthorization
	}
	var room [256]byte
	by, err := ks.signed(given, p.appendSigned(room[:0], p.Link))
	if err != nil {
		rid, isRID := p.signedRID()
		if !isRID {
			return 0, ks.explainSignature(p, given)
		}
		if by, err = ks.signed(given, p.appendSigned(room[:0], rid)); err != nil {
			return 0, ks.explainSignature(p, given)
		}
	}
	return by, ks.checkDate(cmp.Or(p.MsDate, p.Date), now)
}

// authorization is a parsed Authorization header.
type authorization struct {
	kind, version, sig string
}

// parseAuthorization reads type=…&ver=…&sig=…, which clients percent-encode in
// different ways, or not at all.
func parseAuthorization(header string) (authorization, error) {
	if len(header) > maxAuthorizationBytes {
		return authorization{}, ErrBadAuthorization
	}
	text, err := url.PathUnescape(header)
	if err != nil {
		return authorization{}, ErrBadAuthorization
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

// appendSigned appends the text that is signed, with a link in one of its forms.
func (p *Proof) appendSigned(text []byte, link string) []byte {
	text = appendLower(text, p.Method)
	text = append(append(text, '\n'), p.Resource.Word()...)
	text = append(append(text, '\n'), link...)
	text = appendLower(append(text, '\n'), p.MsDate)
	text = appendLower(append(text, '\n'), p.Date)
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
func (p *Proof) signedRID() (string, bool) {
	i := strings.LastIndexByte(p.Link, '/')
	last := p.Link[i+1:]
	if !catalog.IsRID(last) && p.Resource != Offers {
		return "", false
	}
	return strings.ToLower(last), true
}

// checkedDate is a valid date and the interval in which it is valid.
type checkedDate struct {
	text        string
	first, last time.Time
}

// dateForms are the forms of a date: those of HTTP, and that of the Go SDK, which writes
// UTC where RFC 1123 wants GMT.
var dateForms = []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC, time.RFC1123}

// checkDate compares a date with the wall clock, not with the database's time, which a
// test may have moved. Most requests of one second carry the same text, so the last one
// that was parsed is kept.
func (ks *Keys) checkDate(text string, now time.Time) error {
	d := ks.lastDate.Load()
	if d == nil || d.text != text {
		upper := strings.ToUpper(text) // some clients send the date as they sign it, in lower case
		t, err := time.Time{}, ErrBadAuthorization
		for i := 0; i < len(dateForms) && err != nil; i++ {
			t, err = time.Parse(dateForms[i], upper)
		}
		if err != nil {
			return ErrBadAuthorization
		}
		d = &checkedDate{text, t.Add(-maxDateSkew), t.Add(maxDateSkew)}
		ks.lastDate.Store(d)
	}
	if now.Before(d.first) || now.After(d.last) {
		return ErrDate
	}
	return nil
}

// principalSkew is how far the clock of a token's issuer may be off.
const principalSkew = 5 * time.Minute

// principal verifies a principal's token as the emulators do: a JSON web token that is
// valid now, with a key as its third part in place of a signature. The principal's
// identity is not checked.
func (ks *Keys) principal(jwt string, now time.Time) (Credential, error) {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return 0, ErrBadAuthorization
	}
	payload, err1 := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	key, err2 := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[2], "="))
	if err1 != nil || err2 != nil {
		return 0, ErrBadAuthorization
	}
	by, err := ks.Key(string(key))
	if err != nil {
		return 0, err
	}
	var claims struct {
		Expires   float64 `json:"exp"`
		NotBefore float64 `json:"nbf"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return 0, ErrBadAuthorization
	}
	seconds := float64(now.Unix())
	if seconds >= claims.Expires+principalSkew.Seconds() || seconds < claims.NotBefore-principalSkew.Seconds() {
		return 0, ErrPrincipalDate
	}
	if by == ByReadOnlyKey {
		return ByReadOnlyPrincipal, nil
	}
	return ByPrincipal, nil
}

const (
	// maxFailuresAtOnce is more than a client with a wrong key makes: it has a connection
	// or two, and stops at the first refusal.
	maxFailuresAtOnce = 10
	failureEvery      = time.Second
)

// Failures are the requests of a connection without a credential, or with a wrong one.
// Each connection may make maxFailuresAtOnce of them, and then one in a second. An
// attacker who tries keys faster needs many connections, and their number is limited.
// Only refusals wait: a client with a valid credential never does, on any connection.
type Failures struct {
	mu sync.Mutex
	// paidUntil is when the failures so far would have happened at the permitted rate.
	paidUntil time.Time
}

// Add records a failure, and returns how long its answer has to wait.
func (f *Failures) Add(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.paidUntil.Before(now) {
		f.paidUntil = now
	}
	f.paidUntil = f.paidUntil.Add(failureEvery)
	return f.paidUntil.Sub(now) - maxFailuresAtOnce*failureEvery
}
