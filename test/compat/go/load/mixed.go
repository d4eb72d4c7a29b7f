// SPDX-License-Identifier: MIT

// The mixed load: each worker creates items, writes them again, reads them, and asks for all of
// its own by queries over all partitions. It alone writes its items, so it knows each answer.
// At the end it prints what was acknowledged, as
//
//	acknowledged {"ID":VERSION,…}
//
// The programs of the other languages do the same, with what their SDKs have: bulk, reading many
// items at once, and queries in an order, of which the SDK merges the parts.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const (
	// mixedItems is how many items a worker has.
	mixedItems = 24
	// mixedPage is the size of pages: a query takes several, so that a split comes between them.
	mixedPage = 5
	// pace is how long a worker waits after each round, so that the slower programs get some of
	// the machine.
	pace = 20 * time.Millisecond
)

func (l *load) mixed(client *azcosmos.Client) error {
	container, err := client.NewContainer("split", "c")
	if err != nil {
		return err
	}
	told := [workers]map[string]int{}
	err = l.run(func(worker int) {
		told[worker] = map[string]int{}
		m := mixer{l, container, "go-" + strconv.Itoa(worker), told[worker]}
		for n := 0; !l.over.Load(); n++ {
			if m.write(n) && m.read(n) && m.query() {
				l.reads.Add(1)
			}
			time.Sleep(pace)
		}
	})
	for _, items := range told {
		text, err := json.Marshal(items)
		if err != nil {
			return err
		}
		fmt.Printf("acknowledged %s\n", text)
	}
	return err
}

// mixer is one worker.
type mixer struct {
	*load
	c    *azcosmos.ContainerClient
	by   string
	told map[string]int // the version of each item that was acknowledged
}

func (m *mixer) id(n int) string { return m.by + "-" + strconv.Itoa(n%mixedItems) }

// write creates an item, or writes one that was created before.
func (m *mixer) write(n int) bool {
	id := m.id(n)
	version := m.told[id] + 1
	key := azcosmos.NewPartitionKeyString(id)
	body := fmt.Appendf(nil, `{"id":%q,"pk":%q,"owner":%q,"v":%d}`, id, id, m.by, version)
	var err error
	if version == 1 {
		_, err = m.c.CreateItem(context.Background(), key, body, nil)
	} else {
		_, err = m.c.UpsertItem(context.Background(), key, body, nil)
	}
	if err != nil {
		m.failed(fmt.Errorf("write: %w", err))
		return false
	}
	m.told[id] = version
	m.writes.Add(1)
	return true
}

type mixedItem struct {
	ID string
	V  int
}

// read reads an item that was written some time ago.
func (m *mixer) read(n int) bool {
	id := m.id(n / 2)
	a, err := m.c.ReadItem(context.Background(), azcosmos.NewPartitionKeyString(id), id, nil)
	if err != nil {
		m.failed(fmt.Errorf("read: %w", err))
		return false
	}
	var item mixedItem
	if err := json.Unmarshal(a.Value, &item); err != nil || item.V != m.told[id] {
		m.wrong("a read shows %s where %d was acknowledged last", a.Value, m.told[id])
	}
	return true
}

// query asks for all items of the worker.
func (m *mixer) query() bool {
	const text = "SELECT c.id, c.v FROM c WHERE c.owner = @by"
	seen, count := map[string]int{}, 0
	o := azcosmos.QueryOptions{PageSizeHint: mixedPage, QueryParameters: []azcosmos.QueryParameter{{Name: "@by", Value: m.by}}}
	for pages := m.c.NewQueryItemsPager(text, azcosmos.NewPartitionKey(), &o); pages.More(); {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			m.failed(fmt.Errorf("query: %w", err))
			return false
		}
		for _, body := range page.Items {
			var item mixedItem
			if err := json.Unmarshal(body, &item); err != nil || item.V != m.told[item.ID] {
				m.wrong("a query shows %s where %d was acknowledged last", body, m.told[item.ID])
			}
			seen[item.ID]++
			count++
		}
	}
	if len(seen) != len(m.told) || count != len(seen) {
		m.wrong("a query shows %d items, %d of them different, of %d", count, len(seen), len(m.told))
	}
	return true
}

func (m *mixer) wrong(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	m.lost.CompareAndSwap(nil, &text)
}
