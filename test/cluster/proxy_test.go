// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// echo answers each line with itself, and tells what it got.
func echo(t *testing.T) (address string, got chan string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	got = make(chan string, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					got <- lines.Text()
					fmt.Fprintln(c, lines.Text())
				}
			}()
		}
	}()
	return l.Addr().String(), got
}

// say sends a line and waits for the answer.
func say(c net.Conn, line string, limit time.Duration) (string, error) {
	if _, err := fmt.Fprintln(c, line); err != nil {
		return "", err
	}
	_ = c.SetReadDeadline(time.Now().Add(limit))
	answer, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(answer), err
}

func TestProxy(t *testing.T) {
	const short, long = 200 * time.Millisecond, 20 * time.Second
	target, got := echo(t)
	p, err := newProxyIn([]*place{nil}, "127.0.0.1:0", func() (net.Conn, error) { return net.Dial("tcp", target) })
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	set := func(to link, d time.Duration) {
		if err := p.set(to, d); err != nil {
			t.Fatal(err)
		}
	}
	dial := func() net.Conn {
		c, err := net.Dial("tcp", p.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	expect := func(c net.Conn, line string) {
		t.Helper()
		if answer, err := say(c, line, long); answer != line || err != nil {
			t.Fatalf("the answer to %s is %q, %v", line, answer, err)
		}
		if seen := <-got; seen != line {
			t.Fatalf("%s came as %q", line, seen)
		}
	}
	c := dial()
	expect(c, "whole")

	set(slow, short)
	began := time.Now()
	expect(c, "slow")
	if took := time.Since(began); took < 2*short {
		t.Errorf("both ways of a slow link took %v", took)
	}

	set(silent, 0)
	if _, err := say(c, "late", short); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a silent link: %v", err)
	}
	set(whole, 0)
	if seen := <-got; seen != "late" {
		t.Errorf("after the silence came %q", seen)
	}

	c = dial()
	expect(c, "again")
	set(deaf, 0)
	if answer, err := say(c, "done", short); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a lost answer: %q, %v", answer, err)
	}
	if seen := <-got; seen != "done" {
		t.Errorf("what was sent before the answer was lost came as %q", seen)
	}
	set(whole, 0)
	if answer, err := say(c, "more", long); err == nil {
		t.Errorf("a connection that has lost something goes on: %q", answer)
	}

	c = dial()
	expect(c, "begin")
	set(mute, 0)
	if _, err := say(c, "lost", short); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a lost request: %v", err)
	}
	set(cut, 0)
	if _, err := say(c, "cut", long); err == nil {
		t.Error("a connection lives on a link that is cut")
	}
	if n, err := net.Dial("tcp", p.address); err == nil {
		if _, err := say(n, "new", long); err == nil {
			t.Error("a new connection lives on a link that is cut")
		}
		n.Close()
	}
	set(refused, 0)
	if _, err := net.Dial("tcp", p.address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a port without a process: %v", err)
	}
	set(whole, 0)
	expect(dial(), "healed")
	if len(got) > 0 {
		t.Errorf("what was lost came: %q", <-got)
	}
}
