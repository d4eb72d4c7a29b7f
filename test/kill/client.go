// SPDX-License-Identifier: MIT

// Signed requests.

package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// wellKnownKey is that of the service's emulators.
	wellKnownKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

	requestLimit  = 10 * time.Second
	maxReplyBytes = 4 << 20

	databaseLink  = "dbs/kill"
	containerLink = databaseLink + "/colls/items"
	// throughput of a container with four partitions.
	throughput = "21000"
)

// client is one connection to a server.
type client struct {
	endpoint string
	http     *http.Client
}

func newClient(endpoint string) *client {
	return &client{endpoint, &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}, Timeout: requestLimit}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// request is a request to the server. link is the part that the signature covers: the
// resource, or the owner of a feed.
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

// do sends a request. An error means that there is no complete answer: the server may have
// done the request, or not.
func (c *client) do(r request) (reply, error) {
	q, err := http.NewRequest(r.method, c.endpoint+"/"+r.path, bytes.NewReader(r.body))
	if err != nil {
		return reply{}, err
	}
	for name, value := range r.header {
		q.Header.Set(name, value)
	}
	date := time.Now().UTC().Format(http.TimeFormat)
	q.Header.Set("x-ms-date", date)
	q.Header.Set("Authorization", sign(r.method, r.kind, r.link, date))
	res, err := c.http.Do(q)
	if err != nil {
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

// createContainer creates the database and the container of the trial, with its
// scripts.
func createContainer(c *client) error {
	defer c.close()
	requests := []request{
		{method: "POST", kind: "dbs", path: "dbs", body: []byte(`{"id":"kill"}`)},
		{
			method: "POST", kind: "colls", link: databaseLink, path: databaseLink + "/colls",
			header: map[string]string{"x-ms-offer-throughput": throughput},
			body:   []byte(`{"id":"items","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":-1}`),
		},
	}
	for _, s := range scripts {
		// The scripts have line breaks, which JSON strings cannot have.
		body := strings.ReplaceAll(strings.ReplaceAll(s.body, "\n", " "), "\t", "")
		requests = append(requests, request{
			method: "POST", kind: s.kind, link: containerLink, path: containerLink + "/" + s.kind, body: []byte(body),
		})
	}
	for _, r := range requests {
		res, err := c.do(r)
		if err != nil {
			return err
		}
		if res.status != http.StatusCreated {
			return fmt.Errorf("%s /%s: %d %s", r.method, r.path, res.status, res.body)
		}
	}
	return nil
}

// now returns the database's time in milliseconds.
func (c *client) now() (int64, error) {
	r, err := http.NewRequest(http.MethodGet, c.endpoint+"/_mayfly/clock", nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+wellKnownKey)
	res, err := c.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	var status struct{ NowMs int64 }
	if err := json.NewDecoder(io.LimitReader(res.Body, maxReplyBytes)).Decode(&status); err != nil {
		return 0, err
	}
	if res.StatusCode != http.StatusOK || status.NowMs == 0 {
		return 0, fmt.Errorf("GET /_mayfly/clock: %s", res.Status)
	}
	return status.NowMs, nil
}
