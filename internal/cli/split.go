// SPDX-License-Identifier: MIT

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
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
	fmt.Printf("splitting range %s into %s: %d items\n", begun.Range, strings.Join(begun.Ranges, " and "), begun.Items)
	for now := begun; ; {
		switch {
		case now.State == engine.SplitFailed:
			return fmt.Errorf("the range could not be split, and serves on as it was: %s", now.Error)
		case now.State == engine.SplitDone:
			_, err := fmt.Printf("split range %s into %s: %d items in %.1f s, in which writes waited for %.0f ms\n",
				now.Range, strings.Join(now.Ranges, " and "), now.Items, now.Seconds, 1000*now.PausedSeconds)
			return err
		case s.NoWait:
			return nil
		}
		time.Sleep(splitPause)
		next, err := c.Cluster.split(http.MethodGet, q)
		if err != nil {
			return err
		}
		if now = next; now.State == engine.SplitCopying {
			fmt.Fprintf(os.Stderr, "%d of %d items, %.0f s\n", now.Copied, now.Items, now.Seconds)
		}
	}
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
