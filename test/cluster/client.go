// SPDX-License-Identifier: MIT

// Signed requests, and what their answers say.

package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// wellKnownKey is that of the service's emulators.
	wellKnownKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

	// requestLimit is longer than a node looks for an owner.
	requestLimit  = 12 * time.Second
	maxReplyBytes = 4 << 20
)

// client is the connections of one client to all nodes.
type client struct{ http *http.Client }

// newClient makes the client of nodes. It goes to each in the place where that runs.
func newClient(nodes []*node) *client {
	dial := func(_ context.Context, network, address string) (net.Conn, error) {
		for _, n := range nodes {
			if n.listen == address {
				return n.place.dial(network, address)
			}
		}
		return nil, fmt.Errorf("no node listens at %s", address)
	}
	return &client{&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4, DialContext: dial}, Timeout: requestLimit}}
}

// request is a request to a node. link is the part that the signature covers: the resource,
// or the owner of a feed.
type request struct {
	method, kind, link, path string
	header                   map[string]string
	body                     []byte
}

// reply is a complete answer.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// errNotSent: the request has not reached the node.
var errNotSent = errors.New("the request was not sent")

// do sends a request, with a date by the node's wall clock. An error that is not errNotSent
// means that there is no complete answer: the node may have done the request, or not.
func (c *client) do(ctx context.Context, n *node, r request) (reply, error) {
	return c.dated(ctx, n, r, time.Now().Add(n.offset))
}

func (c *client) dated(ctx context.Context, n *node, r request, at time.Time) (reply, error) {
	q, err := http.NewRequestWithContext(ctx, r.method, n.endpoint()+"/"+r.path, bytes.NewReader(r.body))
	if err != nil {
		return reply{}, err
	}
	for name, value := range r.header {
		q.Header.Set(name, value)
	}
	date := at.UTC().Format(http.TimeFormat)
	q.Header.Set("x-ms-date", date)
	q.Header.Set("Authorization", sign(r.method, r.kind, r.link, date))
	res, err := c.http.Do(q)
	if err != nil {
		if failed := (*net.OpError)(nil); errors.As(err, &failed) && failed.Op == "dial" {
			err = fmt.Errorf("%w: %w", errNotSent, err)
		}
		return reply{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxReplyBytes))
	if err != nil {
		return reply{}, err
	}
	return reply{res.StatusCode, res.Header, body}, nil
}

func sign(method, kind, link, date string) string {
	key, err := base64.StdEncoding.DecodeString(wellKnownKey)
	if err != nil {
		panic(err) // a constant
	}
	mac := hmac.New(sha256.New, key)
	io.WriteString(mac, strings.ToLower(method)+"\n"+kind+"\n"+link+"\n"+strings.ToLower(date)+"\n\n")
	return url.QueryEscape("type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// admin asks for one of Mayfly's own pages.
func (c *client) admin(ctx context.Context, n *node, method, page string, body []byte) (reply, error) {
	r, err := http.NewRequestWithContext(ctx, method, n.endpoint()+"/_mayfly/"+page, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("Authorization", "Bearer "+wellKnownKey)
	res, err := c.http.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxReplyBytes))
	return reply{res.StatusCode, res.Header, text}, err
}

// isReady reports whether a node says that it can serve.
func (c *client) isReady(n *node) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	res, err := c.admin(ctx, n, http.MethodGet, "ready", nil)
	return err == nil && res.status == http.StatusOK
}

// moment is between which times of the database an answer was made, in milliseconds.
type moment struct{ lo, hi int64 }

func (r *reply) moment() (m moment, err error) {
	text := r.header.Get("x-mayfly-moment")
	lo, hi, ok := strings.Cut(text, "-")
	if ok {
		m.lo, err = strconv.ParseInt(lo, 10, 64)
	}
	if ok && err == nil {
		m.hi, err = strconv.ParseInt(hi, 10, 64)
	}
	if !ok || err != nil {
		return m, fmt.Errorf("an answer with status %d has the moment %q: %s", r.status, text, brief(r.body))
	}
	return m, nil
}

func (r *reply) lsn() (uint64, error) { return strconv.ParseUint(r.header.Get("lsn"), 10, 64) }

// content is an item as clients see it. V is different in each write.
type content struct {
	ID   string `json:"id"`
	PK   string `json:"pk"`
	Gen  int    `json:"gen"`
	V    int64  `json:"v"`
	TTL  int    `json:"ttl,omitempty"`
	TS   int64  `json:"_ts,omitempty"`
	ETag string `json:"_etag,omitempty"`
}

func brief(b []byte) string {
	const most = 300
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}

func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

func keyHeader(pk string) map[string]string {
	return map[string]string{"x-ms-documentdb-partitionkey": `["` + pk + `"]`}
}
