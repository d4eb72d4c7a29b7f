// SPDX-License-Identifier: MIT

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxResponseBytes bounds an answer that is no list.
const maxResponseBytes = 1 << 20

// running is a running server, of which a command asks something.
type running struct {
	Endpoint string  `default:"http://127.0.0.1:8081" env:"MAYFLY_ENDPOINT" placeholder:"URL" help:"The running server (${default})."`
	Key      string  `env:"MAYFLY_KEY" placeholder:"BASE64" help:"Its master key. Default: the well-known key."`
	KeyFile  keyFile `env:"MAYFLY_KEY_FILE" placeholder:"FILE" help:"File with that key."`
}

// send sends a request for one of Mayfly's own pages and returns its answer, or an error if
// the server refused it.
func (s *running) send(method, page string, q url.Values, body []byte, timeout time.Duration) (*http.Response, error) {
	key, err := s.KeyFile.orWellKnown(s.Key)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequest(method, strings.TrimRight(s.Endpoint, "/")+"/_mayfly/"+page+"?"+q.Encode(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	res, err := (&http.Client{Timeout: timeout}).Do(r)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the address, which is long with its parameters
		}
		return nil, fmt.Errorf("cannot reach the server at %s: %w: is it running? Name it with --endpoint or MAYFLY_ENDPOINT", s.Endpoint, err)
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxResponseBytes))
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%s: %s%s", res.Status, refusal(answer), advice(res.StatusCode, page))
}

// advice returns a sentence about what to do after a refusal.
func advice(status int, page string) string {
	switch {
	case status == http.StatusUnauthorized:
		return " Give the server's key with --key or MAYFLY_KEY."
	case status == http.StatusNotFound && strings.HasPrefix(page, "ttl/") && page != "ttl/explain" && page != "ttl/undelete":
		return " To list all containers: mayfly ttl status"
	case status == http.StatusGone:
		return " Use --from=kept or --from=now in place of --cursor."
	}
	return ""
}

// refusal returns the sentence in an error's body, whose message holds JSON and a trailer.
func refusal(body []byte) string {
	var failure struct{ Message string }
	if err := json.Unmarshal(body, &failure); err != nil {
		return string(body)
	}
	inner, _, _ := strings.Cut(strings.TrimPrefix(failure.Message, "Message: "), "\r\n")
	var list struct{ Errors []string }
	if err := json.Unmarshal([]byte(inner), &list); err != nil || len(list.Errors) == 0 {
		return failure.Message
	}
	return strings.Join(list.Errors, " ")
}
