// SPDX-License-Identifier: MIT

//go:build !linux

package main

import (
	"errors"
	"net"
	"os/exec"
)

// place is the network of this process.
type place struct{}

func newPlace() (*place, error) {
	return nil, errors.New("this system has no network namespaces")
}

func (*place) listen(address string) (net.Listener, error) { return net.Listen("tcp", address) }

func (*place) dial(network, address string) (net.Conn, error) {
	return net.DialTimeout(network, address, dialLimit)
}

func (*place) start(c *exec.Cmd) error { return c.Start() }

func (*place) close() {}
