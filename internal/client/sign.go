// SPDX-License-Identifier: MIT

package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// signer signs requests with a master key.
type signer struct {
	text   string
	secret []byte
}

func newSigner(key string) (*signer, error) {
	key = strings.Join(strings.Fields(key), "") // openssl breaks a long key into lines
	secret, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(secret) == 0 {
		return nil, errors.New("the key is not in base64")
	}
	return &signer{key, secret}, nil
}

// sign adds the date and the signature.
func (s *signer) sign(r *http.Request, kind, link string, now time.Time) {
	date := now.UTC().Format(http.TimeFormat)
	mac := hmac.New(sha256.New, s.secret)
	fmt.Fprintf(mac, "%s\n%s\n%s\n%s\n\n", strings.ToLower(r.Method), strings.ToLower(kind), link, strings.ToLower(date))
	token := "type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	r.Header.Set("X-Ms-Date", date)
	r.Header.Set("Authorization", url.QueryEscape(token))
}

// IsConnection reports whether a text is meant to be a connection string.
func IsConnection(text string) bool {
	return strings.Contains(strings.ToLower(text), "accountendpoint=")
}

// ParseConnection returns what a connection string names, as in
// AccountEndpoint=https://localhost:8081/;AccountKey=…;
func ParseConnection(text string) (endpoint, key string, err error) {
	for part := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch strings.ToLower(name) {
		case "accountendpoint":
			endpoint = value
		case "accountkey":
			key = value
		}
	}
	if endpoint == "" || key == "" {
		return "", "", errors.New("a connection string has the form AccountEndpoint=https://…;AccountKey=…;")
	}
	return endpoint, key, nil
}
