// SPDX-License-Identifier: MIT

// A place is a network of its own, in which a node's process runs. It has nothing but a
// loopback device, on which this process listens in place of everything that the node
// reaches. So each link of a node can be cut, even if the node is told the address of the
// other side by a third.

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// place is a network namespace; nil is that of this process.
type place struct{ file *os.File }

// newPlace makes a place. It needs the right to do so, which root has.
func newPlace() (p *place, err error) {
	err = onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		if err := raiseLoopback(); err != nil {
			return fmt.Errorf("raise the loopback device of a network namespace: %w", err)
		}
		f, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
		p = &place{f}
		return err
	})
	return p, err
}

// onThread runs a function on a thread that ends with it.
func onThread(do func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread is of no other use
		result <- do()
	}()
	return <-result
}

// within runs a function in the place.
func (p *place) within(do func() error) error {
	if p == nil {
		return do()
	}
	return onThread(func() error {
		if err := unix.Setns(int(p.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter a network namespace: %w", err)
		}
		return do()
	})
}

func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

func (p *place) listen(address string) (l net.Listener, err error) {
	err = p.within(func() error {
		l, err = net.Listen("tcp", address)
		return err
	})
	return l, err
}

func (p *place) dial(network, address string) (c net.Conn, err error) {
	err = p.within(func() error {
		c, err = net.DialTimeout(network, address, dialLimit)
		return err
	})
	return c, err
}

// start starts a process in the place.
func (p *place) start(c *exec.Cmd) error { return p.within(c.Start) }

func (p *place) close() {
	if p != nil {
		_ = p.file.Close()
	}
}
