// SPDX-License-Identifier: MIT

// Requests as an SDK makes them, and checks of all answers.

package scripttest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/mayflydb/mayfly"
)

// request is one request of the protocol.
type request struct {
	method string
	// path is dbs, {db}, colls, {container} and so on: a resource if it ends with
	// a name, the list of them if it ends with a kind.
	path   []string
	header map[string]string
	body   []byte
}

func databasePath(database string) []string { return []string{"dbs", database} }

func containerPath(database, container string) []string {
	return []string{"dbs", database, "colls", container}
}

// send signs and sends a request, and checks the answer.
func (s *script) send(d *directive, r request) answer {
	d.Helper()
	header := http.Header{}
	for name, value := range r.header {
		if value != "" {
			header.Set(name, value)
		}
	}
	date := time.Now().UTC().Format(http.TimeFormat)
	header.Set("X-Ms-Date", date)
	header.Set("X-Ms-Version", "2020-07-15")
	if auth := s.authorization(d, &r, date); auth != "" {
		header.Set("Authorization", auth)
	}
	var target strings.Builder
	if len(r.path) == 0 {
		target.WriteString("/")
	}
	for _, segment := range r.path {
		target.WriteString("/" + url.PathEscape(segment))
	}
	a, err := s.server.send(r.method, target.String(), header, r.body)
	if err != nil {
		d.fatalf("%s %s: %v", r.method, target.String(), err)
	}
	if err := a.wellFormed(); err != nil {
		d.fatalf("%s %s: the answer %d %s is not well-formed: %v", r.method, target.String(), a.status, a.body, err)
	}
	return a
}

// signature is the value of the Authorization header: it proves that an owner of the key
// made this request on this date.
func (r *request) signature(d *directive, date string) string {
	key, err := base64.StdEncoding.DecodeString(mayfly.WellKnownKey)
	if err != nil {
		d.fatalf("the key: %v", err)
	}
	link, kind := r.path, ""
	if len(link) > 0 {
		kind = link[(len(link)-1)&^1]
	}
	if kind == "operations" { // it is signed as one on the container
		link, kind = r.path[:4], r.path[2]
	}
	if len(link)%2 == 1 { // a list is signed as its owner
		link = link[:len(link)-1]
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s\n%s\n%s\n%s\n\n", strings.ToLower(r.method), kind, strings.Join(link, "/"), strings.ToLower(date))
	return "type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// wellFormed checks what the protocol guarantees for every answer.
func (a *answer) wellFormed() error {
	if a.header.Get("X-Ms-Activity-Id") == "" {
		return fmt.Errorf("it has no activity id")
	}
	if charge, err := strconv.ParseFloat(a.charge(), 64); err != nil || charge <= 0 {
		return fmt.Errorf("its charge is %q", a.charge())
	}
	switch {
	case a.status == http.StatusNoContent || a.status == http.StatusNotModified:
		if len(a.body) > 0 {
			return fmt.Errorf("it has a body")
		}
		return nil
	case a.status >= http.StatusBadRequest:
		_, err := a.errorText()
		return err
	case len(a.body) == 0 || a.isHybrid():
		return nil
	}
	if !json.Valid(a.body) {
		return fmt.Errorf("it is not JSON")
	}
	raw, found := lookup(a.body, "_etag")
	if header := a.header.Get("Etag"); found && string(raw) != quoted(header) {
		return fmt.Errorf("its etag is %s in the header and %s in the body", header, raw)
	}
	return nil
}

func (a *answer) charge() string { return a.header.Get("X-Ms-Request-Charge") }

// errorText returns the message in an error's body:
//
//	{"code":"NotFound","message":"Message: {\"Errors\":[\"…\"]}\r\nActivityId: …"}
func (a *answer) errorText() (string, error) {
	var e struct{ Code, Message string }
	if err := json.Unmarshal(a.body, &e); err != nil {
		return "", err
	}
	if want := strings.ReplaceAll(http.StatusText(a.status), " ", ""); e.Code != want {
		return "", fmt.Errorf("the code is %q, want %q", e.Code, want)
	}
	first, trailer, ok := strings.Cut(e.Message, "\r\n")
	if !ok || !strings.HasPrefix(trailer, "ActivityId: "+a.header.Get("X-Ms-Activity-Id")+", Request URI: /") {
		return "", fmt.Errorf("the message is not the service's: %q", e.Message)
	}
	inner, ok := strings.CutPrefix(first, "Message: ")
	if ok {
		return refusalText([]byte(inner))
	}
	if !strings.HasSuffix(trailer, ", Gateway Failed to Retrieve Query Plan") { // the message is plain text
		return "", fmt.Errorf("the message is not the service's: %q", e.Message)
	}
	return first, nil
}

// unexplained cuts what an answer with 404 says beyond the service's text: which resource is
// missing. TestMissingResourcesAreNamed of package rest is about that.
func unexplained(text string) string {
	const service = "https://aka.ms/cosmosdb-tsg-not-found"
	if i := strings.Index(text, service+". There is no "); i >= 0 {
		return text[:i+len(service)]
	}
	return text
}

// refusalText parses an error's message: one sentence or, for a query, one or more with a
// code and, unless that is a number, with a position in the query.
func refusalText(message []byte) (string, error) {
	if !json.Valid(message) || len(members(message)) != 1 || len(elements(members(message)[0].raw)) == 0 {
		return "", fmt.Errorf("the message does not hold an error: %q", message)
	}
	list := members(message)[0]
	all := elements(list.raw)
	if list.name == "Errors" && len(all) == 1 {
		return unexplained(unquoted(all[0])), nil
	}
	var lines []string
	for _, one := range all {
		var e struct {
			Severity string
			Location *struct{ Start, End *int }
			Code     json.RawMessage
			Message  string
		}
		err := json.Unmarshal(one, &e)
		if err != nil || list.name != "errors" || e.Severity != "Error" || e.Message == "" {
			return "", fmt.Errorf("the message does not hold errors of a query: %v: %q", err, message)
		}
		if _, err := strconv.Atoi(string(e.Code)); err == nil && e.Location == nil {
			lines = append(lines, fmt.Sprintf("%s: %s", e.Code, e.Message))
			continue
		}
		if e.Location == nil || e.Location.Start == nil || e.Location.End == nil {
			return "", fmt.Errorf("an error does not say where it is: %q", message)
		}
		lines = append(lines, fmt.Sprintf("%s at %d-%d: %s", unquoted(e.Code), *e.Location.Start, *e.Location.End, e.Message))
	}
	return strings.Join(lines, "\n    "), nil
}

// ascii escapes characters beyond ASCII as SDKs do in headers.
func ascii(text string) string {
	var out strings.Builder
	for _, r := range text {
		if r < 0x80 {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String()
}
