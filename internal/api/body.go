// SPDX-License-Identifier: MIT

package api

import (
	"errors"
	"io"

	"github.com/mayflydb/mayfly/internal/memory"
)

// bodyGrowth is the factor by which the buffer of a body grows when it is full.
const bodyGrowth = 4

// Receive reads a body to its end, or up to most bytes. It takes memory as the bytes
// arrive, whatever length was announced, so that slow clients do not block others.
func (c *Call) Receive(from io.Reader, most int) (body []byte, err error) {
	for room := min(most, memory.FreeBytes); ; room = min(bodyGrowth*room, most) {
		if err := c.Share.Take(c.Context, int64(room)); err != nil {
			return nil, err
		}
		before := cap(body)
		body = append(make([]byte, 0, room), body...)
		c.Share.Give(int64(before))
		for len(body) < room {
			n, err := from.Read(body[len(body):room])
			body = body[:len(body)+n]
			switch {
			case errors.Is(err, io.EOF):
				return body, nil
			case err != nil:
				return nil, err
			}
		}
		if room == most {
			return body, nil
		}
	}
}

// TakeCopies takes memory for the copies that are made of a body while it is served. Bodies
// that are not large are bounded by the number of requests.
func (c *Call) TakeCopies(body []byte) error {
	if len(body) <= memory.FreeBytes {
		return nil
	}
	return c.Share.Take(c.Context, (BodyCopies-1)*int64(len(body)))
}

// Keep reduces the share to the n bytes of the answer, since a slow client may hold it for
// long.
func (c *Call) Keep(n int64) {
	if used := c.Share.Used(); used > n {
		c.Share.Give(used - n)
	} else {
		c.Share.MustTake(n - used)
	}
	c.Share.AwaitClient(true)
}
