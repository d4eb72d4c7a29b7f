// SPDX-License-Identifier: MIT

// What open partitions take: connections and memory, of a node and of PostgreSQL.

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// sizeClients use all partitions, for sizeTime.
	sizeClients = 16
	sizeTime    = 10 * time.Second
	// idleTime is after which a node has given back what nobody uses.
	idleTime = 30 * time.Second
	// partitionRU is the throughput of one partition, and partitionsAtOnce are a container's.
	partitionRU      = 6000
	partitionsAtOnce = 50
)

// measure prints what 10, 100 and 500 open partitions take on one node that has so many
// connections at most.
func (t *trial) measure(connections int) error {
	defer t.tearDown()
	if t.engine != "postgres" {
		return errors.New("-sizes measures PostgreSQL only")
	}
	t.more = []string{"--connections", strconv.Itoa(connections)}
	if err := t.setUp(1); err != nil {
		return err
	}
	fmt.Printf("--connections %d\n%10s  %-9s %12s %10s %12s %12s\n", connections, "partitions", "", "connections", "node", "PostgreSQL", "requests/s")
	if err := t.sample(0, "fresh", 0); err != nil {
		return err
	}
	total := 0
	for _, target := range []int{10, 100, 500} {
		for total < target {
			n := min(partitionsAtOnce, target-total)
			c := &container{name: fmt.Sprintf("c%d", total), ttl: -1, throughput: strconv.Itoa(n * partitionRU), partitions: n}
			t.load.containers = append(t.load.containers, c)
			if err := t.createContainers(c); err != nil {
				return err
			}
			total += n
		}
		n, err := t.useAll()
		if err != nil {
			return err
		}
		if err := t.sample(total, "in use", n/int(sizeTime.Seconds())); err != nil {
			return err
		}
		time.Sleep(idleTime)
		if err := t.sample(total, "idle", 0); err != nil {
			return err
		}
	}
	return t.endNodes()
}

// useAll writes to all partitions in turn, and reads what it wrote.
func (t *trial) useAll() (requests int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), sizeTime)
	defer cancel()
	var (
		all sync.WaitGroup
		mu  sync.Mutex
	)
	type place struct {
		c  *container
		pk string
	}
	var places []place
	for _, c := range t.load.containers {
		for _, pk := range c.probes {
			places = append(places, place{c, pk})
		}
	}
	for range sizeClients {
		all.Go(func() {
			http1 := newClient(t.nodes)
			for i := rand.IntN(len(places)); ctx.Err() == nil; i++ {
				p := places[i%len(places)]
				link := p.c.link() + "/docs/probe"
				for _, r := range []request{probeRequest(p.c, p.pk), {method: http.MethodGet, kind: "docs", link: link, path: link, header: keyHeader(p.pk)}} {
					res, failed := http1.do(context.Background(), t.nodes[0], r)
					mu.Lock()
					if requests++; failed == nil && res.status != http.StatusOK {
						failed = fmt.Errorf("%s /%s: %d %s", r.method, r.path, res.status, brief(res.body))
					}
					if failed != nil {
						err = failed
					}
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return requests, err
}

// sample prints what is in use now.
func (t *trial) sample(partitions int, when string, rate int) error {
	ctx := context.Background()
	db := t.db.(*postgres)
	c, err := db.connect(ctx)
	if err != nil {
		return err
	}
	results, err := c.Exec(ctx, "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'a-%'").ReadAll()
	_ = c.Close(ctx)
	if err != nil {
		return err
	}
	node, err := memoryOf(t.nodes[0].running().cmd.Process.Pid)
	if err != nil {
		return err
	}
	database, err := db.memory()
	if err != nil {
		return err
	}
	fmt.Printf("%10d  %-9s %12s %6d MiB %8d MiB %12d\n", partitions, when, results[0].Rows[0][0], node>>20, database>>20, rate)
	return nil
}

// memoryOf returns the memory of a process; what it shares with others counts in part.
func memoryOf(pid int) (bytes int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("process %d does not say what memory it takes", pid)
}

// memory returns the memory of all processes of PostgreSQL.
func (p *postgres) memory() (bytes int64, err error) {
	parent, children, err := p.processes()
	if err != nil {
		return 0, err
	}
	for _, pid := range append(children, parent) {
		if n, err := memoryOf(pid); err == nil { // else it has ended
			bytes += n
		}
	}
	return bytes, nil
}

// processes returns the process that PostgreSQL was started as, and its children.
func (p *postgres) processes() (parent int, children []int, err error) {
	text, err := os.ReadFile(filepath.Join(p.dir, "data", "postmaster.pid"))
	if err != nil {
		return 0, nil, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if parent, err = strconv.Atoi(first); err != nil {
		return 0, nil, err
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, nil, err
	}
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) < 2 || fields[1] != first {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			return 0, nil, err
		}
		children = append(children, pid)
	}
	return parent, children, nil
}
