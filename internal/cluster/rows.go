// SPDX-License-Identifier: MIT

package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/mayflydb/mayfly/internal/clock"
)

// State is what a node row says of its node.
type State byte

// The states of a node. Only the first two are alive, and their incarnation may answer.
const (
	Serving  State = 1 // claims partitions
	Draining State = 2 // gives its partitions up, and claims none
	Dead     State = 3 // killed by another node
	Left     State = 4 // gave everything up
)

func (s State) String() string {
	switch s {
	case Serving:
		return "serving"
	case Draining:
		return "draining"
	case Dead:
		return "dead"
	case Left:
		return "left"
	}
	return fmt.Sprintf("state %d", byte(s))
}

var (
	// ErrBadRow: the bytes are not those of a node row or of an owner row.
	ErrBadRow = errors.New("cluster: corrupt row")
	// ErrNewerRow: the row was written by a later version of this program.
	ErrNewerRow = errors.New("cluster: row of a newer format")
)

const (
	nodeVersion  = 2 // version 1 has no format
	ownerVersion = 1
	sumBytes     = 4
	// MaxNameBytes bounds the name, address and region of a node.
	MaxNameBytes = 255
)

// nodeRow is the row of a node. Its key has the name.
type nodeRow struct {
	state       State
	incarnation uint64 // random; another one in each life of the node
	beat        uint64 // counts the saves: no two rows of an incarnation are the same
	floorMs     int64  // no moment of the incarnation, or of an earlier one, is above it
	format      byte   // the newest format of data that the node understands
	address     string
	region      string
}

func (r *nodeRow) alive() bool { return r.state == Serving || r.state == Draining }

// ownerRow says which incarnation owns a partition. Every commit of the partition requires
// its exact bytes.
type ownerRow struct {
	node        string // empty: no node, and it may be claimed
	incarnation uint64
	epoch       uint64 // grows with every change of the row
	latestMs    int64  // no time at which the partition was looked at before this epoch is above it
}

// version | state | incarnation | beat | floor ms | format | address | region | CRC-32C
func (r *nodeRow) encode() []byte {
	b := make([]byte, 0, 2+3*8+1+2+len(r.address)+len(r.region)+sumBytes)
	b = append(b, nodeVersion, byte(r.state))
	b = binary.BigEndian.AppendUint64(b, r.incarnation)
	b = binary.BigEndian.AppendUint64(b, r.beat)
	b = binary.BigEndian.AppendUint64(b, uint64(r.floorMs))
	b = append(b, r.format)
	b = appendText(b, r.address)
	b = appendText(b, r.region)
	return appendSum(b)
}

func decodeNode(raw []byte) (nodeRow, error) {
	d := decoder{raw: raw}
	version := d.open("node", nodeVersion)
	r := nodeRow{state: State(d.byte()), incarnation: d.uint64(), beat: d.uint64(), floorMs: d.ms()}
	if version > 1 {
		r.format = d.byte()
	}
	r.address, r.region = d.text(), d.text()
	if r.state < Serving || r.state > Left {
		d.fail("state %d", byte(r.state))
	}
	return r, d.close()
}

// version | epoch | incarnation | latest ms | node | CRC-32C
func (r *ownerRow) encode() []byte {
	b := make([]byte, 0, 1+3*8+1+len(r.node)+sumBytes)
	b = append(b, ownerVersion)
	b = binary.BigEndian.AppendUint64(b, r.epoch)
	b = binary.BigEndian.AppendUint64(b, r.incarnation)
	b = binary.BigEndian.AppendUint64(b, uint64(r.latestMs))
	b = appendText(b, r.node)
	return appendSum(b)
}

func decodeOwner(raw []byte) (ownerRow, error) {
	d := decoder{raw: raw}
	d.open("owner", ownerVersion)
	r := ownerRow{epoch: d.uint64(), incarnation: d.uint64(), latestMs: d.ms(), node: d.text()}
	if r.epoch == 0 {
		d.fail("epoch 0")
	}
	return r, d.close()
}

func appendText(b []byte, s string) []byte { return append(append(b, byte(len(s))), s...) }

func appendSum(b []byte) []byte { return binary.BigEndian.AppendUint32(b, sum(b)) }

func sum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// decoder reads a row. After its first error it returns zeros.
type decoder struct {
	raw, rest []byte
	err       error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: "+format, append([]any{ErrBadRow}, args...)...)
	}
}

// open begins a row, and returns its version.
func (d *decoder) open(kind string, newest byte) (version byte) {
	if len(d.raw) > 0 && d.raw[0] > newest {
		d.err = fmt.Errorf("%w: %s row of version %d, this program reads up to %d", ErrNewerRow, kind, d.raw[0], newest)
		return 0
	}
	if len(d.raw) < 1+sumBytes || d.raw[0] == 0 {
		d.fail("%s row of %d bytes", kind, len(d.raw))
		return 0
	}
	body := d.raw[:len(d.raw)-sumBytes]
	if got, want := binary.BigEndian.Uint32(d.raw[len(body):]), sum(body); got != want {
		d.fail("%s row with checksum %08x, computed %08x", kind, got, want)
		return 0
	}
	d.rest = body[1:]
	return d.raw[0]
}

func (d *decoder) close() error {
	if d.err == nil && len(d.rest) != 0 {
		d.fail("%d bytes too many", len(d.rest))
	}
	return d.err
}

func (d *decoder) take(n int) []byte {
	if d.err == nil && len(d.rest) < n {
		d.fail("too short")
	}
	if d.err != nil {
		return make([]byte, n)
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) byte() byte     { return d.take(1)[0] }
func (d *decoder) uint64() uint64 { return binary.BigEndian.Uint64(d.take(8)) }
func (d *decoder) text() string   { return string(d.take(int(d.byte()))) }

func (d *decoder) ms() int64 {
	ms := int64(d.uint64())
	if ms < 0 || ms > clock.MaxMs {
		d.fail("time %d ms", ms)
	}
	return ms
}
