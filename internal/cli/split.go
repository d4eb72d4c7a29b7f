// SPDX-License-Identifier: MIT

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/engine"
)

type clusterSplit struct {
	Database  string `arg:"" help:"The database."`
	Container string `arg:"" help:"The container."`
	Range     string `arg:"" help:"The id of the range whose partition is split; mayfly ttl status DATABASE CONTAINER lists them."`
	NoWait    bool   `help:"Do not wait for the end: the split goes on in the server. GET /_mayfly/cluster/split shows how far it is."`
}

// splitPause is the time between two looks at a split.
const splitPause = time.Second

// Run begins a split, and reports its progress.
func (s clusterSplit) Run(c *commands) error {
	q := url.Values{"database": {s.Database}, "container": {s.Container}}
	begin := url.Values{"range": {s.Range}}
	for name := range q {
		begin[name] = q[name]
	}
	begun, err := c.Cluster.split(http.MethodPost, begin)
	if err != nil {
		return err
	}
	if s.NoWait || !c.Cluster.JSON {
		err := c.Cluster.show(func() error {
			_, err := fmt.Printf("splitting range %s into %s: %d items\n", begun.Range, strings.Join(begun.Ranges, " and "), begun.Items)
			return err
		}, begun)
		if err != nil || s.NoWait {
			return err
		}
	}
	w := &work{}
	w.begin("splitting range "+begun.Range, "items", begun.Items)
	end := showProgress(w)
	now := begun
	for now.State != engine.SplitFailed && now.State != engine.SplitDone && err == nil {
		time.Sleep(splitPause)
		if now, err = c.Cluster.split(http.MethodGet, q); err == nil {
			w.reach(now.Copied)
		}
	}
	end()
	if err != nil {
		return err
	}
	if now.State == engine.SplitFailed {
		return fmt.Errorf("the range could not be split, and serves on as it was: %s", now.Error)
	}
	return c.Cluster.show(func() error {
		_, err := fmt.Printf("split range %s into %s: %d items in %.1f s, in which writes waited for %.0f ms\n",
			now.Range, strings.Join(now.Ranges, " and "), now.Items, now.Seconds, 1000*now.PausedSeconds)
		return err
	}, now)
}

func (c *clusterCommand) split(method string, q url.Values) (s engine.SplitStatus, err error) {
	res, err := c.send(method, "cluster/split", q, nil, clusterTimeout)
	if err != nil {
		return s, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(io.LimitReader(res.Body, maxResponseBytes)).Decode(&s); err != nil {
		return s, fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	return s, nil
}
