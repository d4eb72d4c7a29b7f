// SPDX-License-Identifier: MIT

// The frames between the server and its workers: a length, a kind and fields. Both ends are
// the same program, so there are no versions. A worker gets one request at a time and
// answers it; in between it may ask for operations and add to the log.
//
// Frames of a worker are not trusted: a script may have found a way to write them. Lengths
// are bounded before anything is allocated, and the code that reads the fields checks their
// values.

package script

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// The kinds of frames to a worker.
const (
	askDefine    = 'f' // a function: number, name, text; there is no answer
	askForget    = 'x' // all functions; there is no answer
	askCompile   = 'k' // number
	askCall      = 'c' // head, sandbox, arguments
	askProcedure = 'p' // head, host, arguments
	askRest      = 'l' // nothing: the next request is another client's
	askReply     = 'r' // whether no more operations are accepted, the reply to an operation
)

// The kinds of frames from a worker.
const (
	sayValue    = 'v' // JSON; nothing for undefined
	sayCompiled = 'k'
	sayRefused  = 'b' // why a text is not a function
	sayThrown   = 't' // number, whether it is an object, text
	sayDeep     = 'd'
	sayLarge    = 'l'
	sayDone     = 'p' // the bodies of the request and of the response
	sayRested   = 'r' // the bytes of memory that it has
	sayOperate  = 'o' // name, arguments
	sayLog      = 'g' // a line
)

const (
	headerBytes = 4
	// maxAskBytes is the longest frame to a worker: a script may read all its items at once.
	maxAskBytes = 64 << 20
	// maxSayBytes is the longest frame from a worker: two bodies.
	maxSayBytes = 2*maxResultBytes + 64<<10
	// keptBytes is how much of a buffer is kept from one frame to the next.
	keptBytes = 64 << 10
)

// errFrame: the frame is malformed.
var errFrame = errors.New("script: bad frame")

// frames is a buffer of frames that are sent together.
type frames struct {
	buf   []byte
	start int // of the last frame
}

// begin begins a frame, after those in the buffer.
func (f *frames) begin(kind byte) {
	f.start = len(f.buf)
	f.buf = append(f.buf, 0, 0, 0, 0, kind)
}

func (f *frames) number(n uint64) { f.buf = binary.AppendUvarint(f.buf, n) }

func (f *frames) flag(b bool) {
	if b {
		f.buf = append(f.buf, 1)
		return
	}
	f.buf = append(f.buf, 0)
}

func (f *frames) text(s string) {
	f.number(uint64(len(s)))
	f.buf = append(f.buf, s...)
}

func (f *frames) bytes(b []byte) {
	f.number(uint64(len(b)))
	f.buf = append(f.buf, b...)
}

// end ends the frame.
func (f *frames) end() {
	binary.LittleEndian.PutUint32(f.buf[f.start:], uint32(len(f.buf)-f.start-headerBytes))
}

// send writes everything, in one piece if the pipe takes it.
func (f *frames) send(w io.Writer) error {
	_, err := w.Write(f.buf)
	f.buf = f.buf[:0]
	if cap(f.buf) > keptBytes {
		f.buf = nil
	}
	return err
}

// readFrame reads a frame of at most so many bytes, into scratch if it fits.
func readFrame(r *bufio.Reader, scratch *[]byte, limit int) (kind byte, f fields, err error) {
	header, err := r.Peek(headerBytes)
	if err != nil {
		return 0, fields{}, err
	}
	n := int(binary.LittleEndian.Uint32(header))
	_, _ = r.Discard(headerBytes) // cannot fail after Peek
	if n < 1 || n > limit {
		return 0, fields{}, errFrame
	}
	b := *scratch
	if n > len(b) {
		b = make([]byte, max(n, 512))
		if n <= keptBytes {
			*scratch = b
		}
	}
	if _, err := io.ReadFull(r, b[:n]); err != nil {
		return 0, fields{}, err
	}
	return b[0], fields{rest: b[1:n]}, nil
}

// fields reads the fields of a frame, in order. A missing field is zero, and sets bad.
type fields struct {
	rest []byte
	bad  bool
}

func (f *fields) number() uint64 {
	n, size := binary.Uvarint(f.rest)
	if size <= 0 {
		f.bad, f.rest = true, nil
		return 0
	}
	f.rest = f.rest[size:]
	return n
}

func (f *fields) flag() bool {
	n := f.number()
	f.bad = f.bad || n > 1
	return n == 1
}

// bytes returns a part of the frame, which the next one overwrites.
func (f *fields) bytes() []byte {
	n := f.number()
	if n > uint64(len(f.rest)) {
		f.bad, f.rest = true, nil
		return nil
	}
	b := f.rest[:n:n]
	f.rest = f.rest[n:]
	return b
}

func (f *fields) text() string { return string(f.bytes()) }

// whole reports whether the frame had all fields that were read, and nothing else.
func (f *fields) whole() bool { return !f.bad && len(f.rest) == 0 }
