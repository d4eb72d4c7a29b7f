// SPDX-License-Identifier: MIT

// Package binaryjson converts between JSON text and Cosmos's binary JSON, in which clients
// may send bodies and ask for answers. Everything else in the database is text.
//
// A document is the byte 0x80 and a value. A value begins with a byte that marks its type.
// Some markers are a whole value: small integers, frequent names, empty arrays. Others are
// followed by a number, or by a length and so many bytes.
//
//  1. No length is trusted: a value ends within the value that contains it.
//  2. Decoding stops at the caller's limit. A few bytes can refer to a long string that
//     was there before, so the text may be very much longer than the document.
//  3. Arrays and objects are nested at most as deep as in text.
package binaryjson

import "errors"

// Errors of Decode.
var (
	// ErrMalformed is the error of bytes that are no document.
	ErrMalformed = errors.New("malformed binary JSON")
	// ErrTooLarge is the error of a document whose text is longer than the limit.
	ErrTooLarge = errors.New("the text of the binary JSON is too long")
)

// first begins every document. JSON text cannot begin with it.
const first = 0x80

// Is reports whether a body begins like a document.
func Is(body []byte) bool { return len(body) > 0 && body[0] == first }

// Markers, or the first of several markers in a row.
const (
	markLiteral      = 0x00 // the integers 0 to 31
	markSystem       = 0x20 // 32 names that are frequent
	markUser         = 0x40 // names of a dictionary, which no client sends
	markBase64       = 0x71 // base64: length in one byte, then in two
	markBase64URL    = 0x73 // the same with the alphabet for addresses
	markGUID         = 0x75 // lower case, upper case, lower case in quotes
	markHex          = 0x78 // four bits a character: lower case, upper case
	markDateTime     = 0x7a // four bits a character: digits and signs of a date
	markPacked4      = 0x7b // four, five and six bits a character, after the first one
	markPacked7      = 0x7e // seven bits a character: length in one byte, then in two
	markText         = 0x80 // strings of 0 to 63 bytes
	markTextL        = 0xc0 // strings: length in one, two and four bytes
	markReference    = 0xc3 // strings that were there before: offset in one to four bytes
	markUint64       = 0xc7
	markUint8        = 0xc8
	markInt16        = 0xc9
	markInt32        = 0xca
	markInt64        = 0xcb
	markDouble       = 0xcc
	markFloat32      = 0xcd // from here on, most types occur in arrays of numbers only
	markFloat64      = 0xce
	markFloat16      = 0xcf
	markNull         = 0xd0
	markFalse        = 0xd1
	markTrue         = 0xd2
	markItemUint8    = 0xd7
	markItemInt8     = 0xd8
	markItemInt16    = 0xd9
	markItemInt32    = 0xda
	markItemInt64    = 0xdb
	markItemUint32   = 0xdc
	markArray0       = 0xe0 // an empty array
	markArray1       = 0xe1 // one element
	markArrayL       = 0xe2 // elements: length in one, two and four bytes
	markArrayLC      = 0xe5 // the same, and the number of elements
	markObject0      = 0xe8
	markObject1      = 0xe9
	markObjectL      = 0xea
	markObjectLC     = 0xed
	markNumbers      = 0xf0 // numbers of one type: count in one byte, then in two
	markNumberArrays = 0xf2 // arrays of equally many numbers
	markEnd          = 0xf4
)

// kinds of markers are counted in threes: a length has one, two or four bytes.
const widths = 3

// system are the names that have markers of their own.
var system = [32]string{
	"$s", "$t", "$v", "_attachments", "_etag", "_rid", "_self", "_ts",
	"attachments/", "coordinates", "geometry", "GeometryCollection", "id", "url", "Value", "label",
	"LineString", "link", "MultiLineString", "MultiPoint", "MultiPolygon", "name", "Name", "Type",
	"Point", "Polygon", "properties", "type", "value", "Feature", "FeatureCollection", "_id",
}
