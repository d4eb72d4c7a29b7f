// SPDX-License-Identifier: MIT

// Requests that the SDK does not make, signed here.

package compat

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// reply is an answer to a request of our own.
type reply struct {
	status int
	header http.Header
	body   properties
}

// request sends a signed request. link is what the signature covers: the
// resource, or the owner of a feed.
func (s *server) request(t *testing.T, method, kind, link, path string, header http.Header, body string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(limited(t), method, s.http()+"/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	date := time.Now().UTC().Format(http.TimeFormat)
	r.Header.Set("x-ms-date", date)
	r.Header.Set("x-ms-version", "2020-07-15")
	r.Header.Set("Authorization", sign(t, method, kind, link, date))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxReplyBytes))
	if err != nil {
		t.Fatal(err)
	}
	got := reply{status: res.StatusCode, header: res.Header}
	if len(answer) > 0 {
		if err := json.Unmarshal(answer, &got.body); err != nil {
			t.Fatalf("%s %s answered %q: %v", method, path, answer, err)
		}
	}
	return got
}

func sign(t *testing.T, method, kind, link, date string) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(wellKnownKey)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	io.WriteString(mac, strings.ToLower(method)+"\n"+kind+"\n"+link+"\n"+strings.ToLower(date)+"\n\n")
	return url.QueryEscape("type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}
