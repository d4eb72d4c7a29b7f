// SPDX-License-Identifier: MIT

// Resource ids (_rid), which the service's own links consist of. A database has four
// bytes; a container its database's four and four more whose top bit is set; an item its
// container's eight and an ordinal, little-endian, whose top four bits name the kind of
// resource (0 for an item). SDKs parse rids, so the layout is the service's.

package catalog

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
)

const (
	databaseRIDBytes  = 4
	containerRIDBytes = 8
	itemRIDBytes      = 16

	containerBit = 1 << 31

	// ItemRIDChars is the length of an item's rid as text.
	ItemRIDChars = 24

	kindShift = 60 // the kind is the high nibble of the ordinal's last byte
	kindRange = 5
	// MaxOrdinal bounds an item's ordinal: above it the bits name the kind.
	MaxOrdinal = 1<<kindShift - 1
)

// ridText is base64 with '-' in place of '/', since rids are in paths. It is strict, so
// that each resource has one rid.
var ridText = base64.NewEncoding("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-").Strict()

// DatabaseRID identifies a database. It is never reused.
type DatabaseRID uint32

// ContainerRID identifies a container. It is never reused.
type ContainerRID struct {
	Database  DatabaseRID
	Container uint32
}

func (r DatabaseRID) String() string {
	return ridText.EncodeToString(binary.BigEndian.AppendUint32(nil, uint32(r)))
}

func (r ContainerRID) String() string { return ridText.EncodeToString(r.bytes(nil)) }

func (r ContainerRID) bytes(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(r.Database))
	return binary.BigEndian.AppendUint32(dst, r.Container|containerBit)
}

// PutItemRID writes the rid of the item with the given ordinal into dst, which
// has room for ItemRIDChars.
func (r ContainerRID) PutItemRID(dst []byte, ordinal uint64) {
	var raw [itemRIDBytes]byte
	r.bytes(raw[:0])
	binary.LittleEndian.PutUint64(raw[containerRIDBytes:], ordinal)
	ridText.Encode(dst[:ItemRIDChars], raw[:])
}

// ItemRID returns the rid of the item with the given ordinal.
func (r ContainerRID) ItemRID(ordinal uint64) string {
	var text [ItemRIDChars]byte
	r.PutItemRID(text[:], ordinal)
	return string(text[:])
}

// RangeRID returns the rid of the container's partition key range with the id.
func (r ContainerRID) RangeRID(id int) string {
	return r.ItemRID(uint64(kindRange)<<kindShift | uint64(id))
}

// Ordinal parses the rid of an item of the container. It returns false for any other
// text, which is a name if it is in a path.
func (r ContainerRID) Ordinal(itemRID string) (uint64, bool) {
	var room [ridRoom]byte
	raw, ok := appendRID(room[:0], itemRID)
	if !ok || len(raw) != itemRIDBytes {
		return 0, false
	}
	ordinal := binary.LittleEndian.Uint64(raw[containerRIDBytes:])
	var own [containerRIDBytes]byte
	return ordinal, ordinal <= MaxOrdinal && bytes.Equal(raw[:containerRIDBytes], r.bytes(own[:0]))
}

// RIDText returns the text of a rid, whose bytes are given.
func RIDText(rid string) string { return ridText.EncodeToString([]byte(rid)) }

// IsRID reports whether a text has the form of a rid, of any kind.
func IsRID(text string) bool {
	_, ok := appendRID(nil, text)
	return ok
}

// ridRoom is the most bytes that appendRID appends.
const ridRoom = ItemRIDChars / 4 * 3

// appendRID appends the bytes of a rid. It returns false for a text that is not the one
// spelling of these bytes.
func appendRID(dst []byte, text string) ([]byte, bool) {
	if len(text) > ItemRIDChars {
		return nil, false
	}
	var source, again [ItemRIDChars]byte
	dst, err := ridText.AppendDecode(dst, append(source[:0], text...))
	if err != nil {
		return nil, false
	}
	switch len(dst) {
	case databaseRIDBytes, containerRIDBytes, itemRIDBytes:
		return dst, string(ridText.AppendEncode(again[:0], dst)) == text
	}
	return nil, false
}
