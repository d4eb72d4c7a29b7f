// SPDX-License-Identifier: MIT

// Partitions that split while something goes wrong. Each split leaves the parent or its two
// children, with everything that they had: the load's items, and the ballast, which nobody
// changes and which makes a split take its time.

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// ballast is how many items nobody changes, in so many logical partitions of each
	// container, and ballastBytes the size of one.
	ballast      = 2000
	ballastKeys  = 40
	ballastBytes = 500
	splitTries   = 20
	splitPause   = 100 * time.Millisecond
	// settleLimit is how long a split may take that nothing happens to.
	settleLimit = 30 * time.Second
)

// addBallast fills a container.
func (t *trial) addBallast(c *container) error {
	for k := range ballastKeys {
		pk := fmt.Sprintf("ballast%d", k)
		var operations []map[string]any
		for i := range ballast / ballastKeys {
			operations = append(operations, map[string]any{"operationType": "Create", "resourceBody": map[string]any{
				"id": fmt.Sprintf("b%d-%d", k, i), "pk": pk, "gen": -1, "ttl": -1, "ballast": strings.Repeat("x", ballastBytes),
			}})
		}
		header := keyHeader(pk)
		header["x-ms-cosmos-is-batch-request"], header["x-ms-cosmos-batch-atomic"] = "true", "true"
		res, err := t.client.do(context.Background(), t.nodes[0], request{
			method: http.MethodPost, kind: "docs", link: c.link(), path: c.link() + "/docs", header: header, body: mustJSON(operations),
		})
		if err != nil || res.status != http.StatusOK {
			return fmt.Errorf("fill container %s: %d %s: %w", c.name, res.status, brief(res.body), err)
		}
	}
	return nil
}

// countBallast returns how many items of the ballast are there, each of which counts once.
func (t *trial) countBallast(c *container, n *node) (int, error) {
	body := mustJSON(map[string]any{"query": "SELECT VALUE c.id FROM c WHERE c.gen = -1", "parameters": []any{}})
	ids := map[string]bool{}
	for next := ""; ; {
		header := map[string]string{
			"Content-Type": "application/query+json", "x-ms-documentdb-isquery": "True", "x-ms-documentdb-query-enablecrosspartition": "True", "x-ms-max-item-count": "1000",
		}
		if next != "" {
			header["x-ms-continuation"] = next
		}
		res, err := t.client.do(context.Background(), n, request{method: http.MethodPost, kind: "docs", link: c.link(), path: c.link() + "/docs", body: body, header: header})
		var page struct{ Documents []string }
		if err == nil && res.status != http.StatusOK {
			err = fmt.Errorf("%d %s", res.status, brief(res.body))
		}
		if err = errors.Join(err, json.Unmarshal(res.body, &page)); err != nil {
			return 0, fmt.Errorf("count the ballast of %s through node %s: %w", c.name, n.name, err)
		}
		for _, id := range page.Documents {
			if ids[id] {
				t.load.record.violation("a query of %s through node %s shows item %s twice", c.name, n.name, id)
			}
			ids[id] = true
		}
		if next = res.header.Get("x-ms-continuation"); next == "" {
			return len(ids), nil
		}
	}
}

// span is a range of a container, as clients see it.
type span struct {
	ID      string   `json:"id"`
	Min     string   `json:"minInclusive"`
	Max     string   `json:"maxExclusive"`
	Parents []string `json:"parents"`
}

// spans returns the ranges of a container.
func (t *trial) spans(ctx context.Context, c *container, n *node) ([]span, error) {
	res, err := t.client.do(ctx, n, request{method: http.MethodGet, kind: "pkranges", link: c.link(), path: c.link() + "/pkranges"})
	var feed struct{ PartitionKeyRanges []span }
	if err == nil && res.status != http.StatusOK {
		err = fmt.Errorf("%d %s", res.status, brief(res.body))
	}
	if err == nil {
		err = json.Unmarshal(res.body, &feed)
	}
	if err == nil && len(feed.PartitionKeyRanges) == 0 {
		err = errors.New("there are none")
	}
	if err != nil {
		return nil, fmt.Errorf("the ranges of %s through node %s: %w", c.name, n.name, err)
	}
	return feed.PartitionKeyRanges, nil
}

// splitting is a split that was begun.
type splitting struct {
	container *container
	node      string // which splits
	id        string
	children  []string
}

// beginSplit begins to split one of the largest ranges of a container, through any node.
func (t *trial) beginSplit() (*splitting, error) {
	ctx, cancel := context.WithTimeout(context.Background(), giveUp)
	defer cancel()
	c := t.load.containers[t.random.IntN(len(t.load.containers))]
	var last error
	for range splitTries {
		n := t.nodes[t.random.IntN(len(t.nodes))]
		s, err := t.trySplit(ctx, c, n)
		if err == nil {
			t.splits = append(t.splits, s)
			return s, nil
		}
		last = err
		time.Sleep(splitPause)
	}
	return nil, fmt.Errorf("no split began after %d attempts: %w", splitTries, last)
}

func (t *trial) trySplit(ctx context.Context, c *container, n *node) (*splitting, error) {
	all, err := t.spans(ctx, c, n)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b span) int { return cmp.Compare(len(a.Parents), len(b.Parents)) })
	s := &splitting{container: c, id: all[0].ID}
	page := "cluster/split?" + url.Values{"database": {"faults"}, "container": {c.name}, "range": {s.id}}.Encode()
	res, err := t.client.admin(ctx, n, http.MethodPost, page, nil)
	var status struct {
		Node   string
		Ranges []string
	}
	if err == nil && res.status != http.StatusOK {
		err = fmt.Errorf("%d %s", res.status, brief(res.body))
	}
	if err == nil {
		err = json.Unmarshal(res.body, &status)
	}
	if err != nil || len(status.Ranges) != 2 {
		return nil, fmt.Errorf("split range %s of %s through node %s: %w", s.id, c.name, n.name, err)
	}
	s.node, s.children = status.Node, status.Ranges
	return s, nil
}

// judgeSplits waits until no split is under way, and looks at what became of them: the parent
// or both children, in ranges without gaps, which have all of the ballast.
func (t *trial) judgeSplits() error {
	ctx, cancel := context.WithTimeout(context.Background(), giveUp)
	defer cancel()
	for _, c := range t.load.containers {
		n := t.nodes[0]
		if _, err := t.settle(c, n); err != nil {
			return err
		}
		all, err := t.spans(ctx, c, n)
		if err != nil {
			return err
		}
		if !covers(all) {
			t.load.record.violation("the ranges of %s have a gap or an overlap: %+v", c.name, all)
		}
		for _, s := range t.splits {
			if s.container != c {
				continue
			}
			what, ok := s.left(all)
			if t.load.record.count("splits " + what); !ok {
				t.load.record.violation("the split of range %s of %s into %v has left %+v", s.id, c.name, s.children, all)
			}
		}
		for _, n := range t.nodes {
			if got, err := t.countBallast(c, n); err != nil {
				return err
			} else if got != ballast {
				t.load.record.violation("%s has %d items of its ballast through node %s, not %d", c.name, got, n.name, ballast)
			}
		}
	}
	return nil
}

// covers reports whether ranges cover all keys, each key once.
func covers(all []span) bool {
	at := ""
	for _, s := range all {
		if s.Min != at {
			return false
		}
		at = s.Max
	}
	return at == "FF"
}

// left says what became of a split, by the ranges that there are later; false if that must not
// be: the parent beside a child, one child without the other, or neither.
func (s *splitting) left(all []span) (what string, ok bool) {
	is := func(id string) bool { return slices.ContainsFunc(all, func(s span) bool { return s.ID == id }) }
	was := func(id string) bool {
		return is(id) || slices.ContainsFunc(all, func(s span) bool { return slices.Contains(s.Parents, id) })
	}
	parent, low, high := is(s.id), was(s.children[0]), was(s.children[1])
	switch {
	case !parent && low && high:
		return "done", true
	case was(s.id) && !low && !high: // the parent is there, or a later split of it was done
		return "abandoned", true
	}
	return "half done", false
}

// settle waits until no split of a container is under way, and returns how long the last took.
func (t *trial) settle(c *container, n *node) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), giveUp)
	defer cancel()
	page := "cluster/split?" + url.Values{"database": {"faults"}, "container": {c.name}}.Encode()
	for began := time.Now(); ; time.Sleep(splitPause) {
		res, err := t.client.admin(ctx, n, http.MethodGet, page, nil)
		var status struct {
			State   string
			Seconds float64
		}
		switch {
		case err == nil && res.status == http.StatusNotFound: // the nodes that split were restarted
			return 0, nil
		case err == nil && res.status == http.StatusOK && json.Unmarshal(res.body, &status) == nil && status.State != "copying":
			return time.Duration(status.Seconds * float64(time.Second)), nil
		case time.Since(began) > settleLimit:
			return 0, fmt.Errorf("a split of %s does not end: %d %s %w", c.name, res.status, brief(res.body), err)
		}
	}
}
