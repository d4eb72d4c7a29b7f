// SPDX-License-Identifier: MIT

// Command load writes and reads items with the Go SDK until its standard input ends, and
// says how it goes on each line that it prints: writes, reads, errors, and the last error.
// It repeats nothing by itself: what is repeated, the SDK repeats. A read must show what its
// writer was told to be written. MAYFLY_ENDPOINT and MAYFLY_KEY name the account, MAYFLY_REGIONS
// the preferred regions if there are several, and MAYFLY_CERTIFICATE the certificate to trust.
//
// With the argument mixed it uses one container with others: see mixed.go.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const (
	workers = 4
	report  = 200 * time.Millisecond
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run() error {
	client, err := connect()
	if err != nil {
		return err
	}
	l := load{}
	if len(os.Args) > 1 && os.Args[1] == "mixed" {
		return l.mixed(client)
	}
	ctx := context.Background()
	if _, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "go"}, nil); err != nil {
		return err
	}
	database, err := client.NewDatabase("go")
	if err != nil {
		return err
	}
	throughput := azcosmos.NewManualThroughputProperties(40000) // several partitions
	_, err = database.CreateContainer(ctx, azcosmos.ContainerProperties{
		ID: "c", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2},
	}, &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput})
	if err != nil {
		return err
	}
	container, err := database.NewContainer("c")
	if err != nil {
		return err
	}
	return l.run(func(worker int) { l.work(container, fmt.Sprint(worker)) })
}

// connect returns a client as the environment says.
func connect() (*azcosmos.Client, error) {
	pem, err := os.ReadFile(os.Getenv("MAYFLY_CERTIFICATE"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("there is no certificate to trust")
	}
	o := azcosmos.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}},
	}
	if regions := os.Getenv("MAYFLY_REGIONS"); regions != "" {
		o.PreferredRegions = strings.Split(regions, ",")
	}
	return azcosmos.NewClientFromConnectionString("AccountEndpoint="+os.Getenv("MAYFLY_ENDPOINT")+";AccountKey="+os.Getenv("MAYFLY_KEY")+";", &o)
}

// run has workers work until the standard input ends, and says how it goes.
func (l *load) run(work func(worker int)) error {
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() { work(i) })
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		l.over.Store(true)
	}()
	for !l.over.Load() {
		l.print()
		time.Sleep(report)
	}
	all.Wait()
	l.print()
	if lost := l.lost.Load(); lost != nil {
		return errors.New(*lost)
	}
	return nil
}

type load struct {
	writes, reads, errors atomic.Int64
	last, lost            atomic.Pointer[string]
	over                  atomic.Bool
}

func (l *load) print() {
	last := "none"
	if text := l.last.Load(); text != nil {
		last = strings.Join(strings.Fields(*text), " ")
	}
	fmt.Println(l.writes.Load(), l.reads.Load(), l.errors.Load(), last)
}

func (l *load) failed(err error) {
	text := err.Error()
	l.errors.Add(1)
	l.last.Store(&text)
}

// work writes one item again and again, and reads it.
func (l *load) work(c *azcosmos.ContainerClient, id string) {
	ctx, key := context.Background(), azcosmos.NewPartitionKeyString(id)
	told := 0 // the last that was acknowledged
	for n := 1; !l.over.Load(); n++ {
		if _, err := c.UpsertItem(ctx, key, fmt.Appendf(nil, `{"id":%q,"pk":%q,"n":%d}`, id, id, n), nil); err != nil {
			l.failed(fmt.Errorf("write: %w", err))
		} else {
			l.writes.Add(1)
			told = n
		}
		if told == 0 {
			continue
		}
		a, err := c.ReadItem(ctx, key, id, nil)
		if err != nil {
			l.failed(fmt.Errorf("read: %w", err))
			continue
		}
		var item struct{ N int }
		if err := json.Unmarshal(a.Value, &item); err != nil || item.N < told {
			text := fmt.Sprintf("a read shows %s after the write of %d was acknowledged", a.Value, told)
			l.lost.Store(&text)
		}
		l.reads.Add(1)
	}
}
