// SPDX-License-Identifier: MIT

package main

import (
	"errors"
	"fmt"
	"time"
)

// errAbsent: the storage engine is not installed.
var errAbsent = errors.New("the storage engine is not there")

// engine is the shared storage engine of a trial, with fresh data.
type engine interface {
	// places makes a place for each of so many nodes, if they need one.
	places(count int) []*place
	// links makes the links of a node, or none if they cannot be cut.
	links(n *node, port func() (string, error)) (proxies, error)
	// node is the URL for the present process of a node, and url that for tools of the trial.
	node(n *node) string
	url(name string) string
	// patience is how much longer than PostgreSQL's locks those of dead processes may last.
	patience() time.Duration
	// lag is how far the engine's time may be behind that of this process.
	lag() time.Duration
	stop()
}

func startEngine(name string) (engine, error) {
	switch name {
	case "postgres":
		return startPostgres()
	case "tikv":
		return startTiKV()
	}
	return nil, fmt.Errorf("there is no engine %q: give postgres or tikv", name)
}
