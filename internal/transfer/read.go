// SPDX-License-Identifier: MIT

// Reading rows from files: lines of JSON, an array of JSON, or CSV.

package transfer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Format is the form of a file.
type Format string

// The forms.
const (
	JSONL Format = "jsonl"
	JSON  Format = "json"
	CSV   Format = "csv"
)

// FormatOf returns the form that the name of a file says; empty if it says none.
func FormatOf(name string) Format {
	switch lower := strings.ToLower(name); {
	case strings.HasSuffix(lower, ".jsonl"), strings.HasSuffix(lower, ".ndjson"):
		return JSONL
	case strings.HasSuffix(lower, ".json"):
		return JSON
	case strings.HasSuffix(lower, ".csv"):
		return CSV
	}
	return ""
}

// maxRowBytes bounds a row of a file: an item has 2 MiB, and may be written with escapes.
const maxRowBytes = 16 << 20

// readAhead is how much of a file is read at once.
const readAhead = 256 << 10

var tooLongFault = fmt.Sprintf("the line is longer than %d bytes", maxRowBytes)

// rows reads the rows of a file, one after the other.
type rows interface {
	// next returns the next row. At the end the error is io.EOF.
	next() (fileRow, error)
}

// fileRow is a row of a file.
type fileRow struct {
	// raw is an item as JSON; of a row with a fault its text, if that is known. It is valid
	// until the next row is read.
	raw []byte
	// line is the line that the row begins on; of an array, which element it is.
	line int64
	// end is where the row ends, for openRows.
	end position
	// fault is why the row cannot be read. The rows after it can.
	fault string
}

// position is a place in a file: how many bytes and lines (of an array, elements) are before it.
type position struct{ bytes, lines int64 }

// openRows begins to read at the end of an earlier row, or at the beginning.
func openRows(f io.ReadSeeker, form Format, at position) (rows, error) {
	if at.bytes == 0 {
		if err := checkRows(f, form); err != nil {
			return nil, err
		}
	}
	var head []byte
	if form != CSV || at.bytes > 0 {
		var b [512]byte
		n, err := io.ReadFull(f, b[:])
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return nil, err
		}
		head = bytes.TrimLeft(b[:n], " \t\r\n\ufeff")
		if form == "" || form == JSON { // .json files often have lines
			form = JSONL
			if len(head) > 0 && head[0] == '[' {
				form = JSON
			}
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
	}
	switch form {
	case CSV:
		return openCSV(f, at)
	case JSON:
		return openArray(f, at)
	}
	if _, err := f.Seek(at.bytes, io.SeekStart); err != nil {
		return nil, err
	}
	return &lines{r: bufio.NewReaderSize(f, readAhead), end: at}, nil
}

// compressedHeads are the bytes that compressed files begin with.
var compressedHeads = [][]byte{{0x1f, 0x8b}, {0x28, 0xb5, 0x2f, 0xfd}, []byte("BZh"), []byte("PK\x03\x04"), {0xfd, '7', 'z', 'X', 'Z', 0}}

// checkRows returns an error for a file of which every line would be rejected, with what to do:
// one that is compressed, and one whose first item goes over several lines.
func checkRows(f io.ReadSeeker, form Format) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReaderSize(io.LimitReader(f, maxRowBytes), 4096)
	for _, head := range compressedHeads {
		if got, _ := r.Peek(len(head)); bytes.Equal(got, head) {
			return errors.New("the file is compressed: uncompress it, as in zcat FILE | mayfly import DATABASE CONTAINER --from -")
		}
	}
	if form != CSV {
		if mark, _ := r.Peek(len(utf8Mark)); bytes.Equal(mark, utf8Mark) {
			_, _ = r.Discard(len(utf8Mark))
		}
		var first json.RawMessage
		if head, _ := r.Peek(1); len(head) == 1 && head[0] == '{' && json.NewDecoder(r).Decode(&first) == nil && bytes.ContainsRune(first, '\n') {
			return errors.New("the first item goes over several lines: a file has an item on each line, as jq -c . FILE writes them, or one array. mayfly put writes a single item")
		}
	}
	_, err := f.Seek(0, io.SeekStart)
	return err
}

// lines is rows of JSON, one on each line.
type lines struct {
	r     *bufio.Reader
	end   position
	spill []byte
}

var utf8Mark = []byte("\ufeff")

func (l *lines) next() (fileRow, error) {
	for {
		line, err := l.r.ReadSlice('\n')
		l.spill = l.spill[:0]
		tooLong := false
		for errors.Is(err, bufio.ErrBufferFull) {
			l.end.bytes += int64(len(line))
			if tooLong = tooLong || len(l.spill)+len(line) > maxRowBytes; tooLong {
				l.spill = l.spill[:0]
			} else {
				l.spill = append(l.spill, line...)
			}
			line, err = l.r.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fileRow{}, err
		}
		first := l.end.bytes == 0 && len(l.spill) == 0
		l.end.bytes += int64(len(line))
		l.end.lines++
		row := fileRow{line: l.end.lines, end: l.end}
		if tooLong {
			row.fault = tooLongFault
			return row, nil
		}
		if len(l.spill) > 0 {
			l.spill = append(l.spill, line...)
			line = l.spill
		}
		if first {
			line = bytes.TrimPrefix(line, utf8Mark)
		}
		if row.raw = bytes.TrimSpace(line); len(row.raw) > 0 {
			return row, nil
		}
		if err != nil {
			return fileRow{}, io.EOF
		}
	}
}

// array is the elements of an array of JSON.
type array struct {
	d    *json.Decoder
	base int64 // what the decoder's offsets lack
	raw  json.RawMessage
	read int64 // elements
	over bool
}

// errCutOff is why an array cannot be read to its end.
var errCutOff = errors.New("the array has no end: the file was cut off")

// resumedArray stands for what was read of an array before.
const resumedArray = "[0"

func openArray(f io.ReadSeeker, at position) (rows, error) {
	if at.bytes == 0 {
		r := bufio.NewReaderSize(f, readAhead)
		skipped := int64(0)
		if mark, err := r.Peek(len(utf8Mark)); err == nil && bytes.Equal(mark, utf8Mark) {
			n, _ := r.Discard(len(utf8Mark))
			skipped = int64(n)
		}
		a := &array{d: json.NewDecoder(r), base: skipped}
		_, err := a.d.Token()
		return a, err
	}
	if _, err := f.Seek(at.bytes, io.SeekStart); err != nil {
		return nil, err
	}
	a := &array{d: json.NewDecoder(io.MultiReader(strings.NewReader(resumedArray), f)), base: at.bytes - int64(len(resumedArray)), read: at.lines}
	if _, err := a.d.Token(); err != nil {
		return nil, err
	}
	_, err := a.d.Token()
	return a, err
}

func (a *array) next() (fileRow, error) {
	if a.over {
		return fileRow{}, io.EOF
	}
	if !a.d.More() {
		if _, err := a.d.Token(); err != nil {
			return fileRow{}, errCutOff
		}
		if _, err := a.d.Token(); !errors.Is(err, io.EOF) {
			return fileRow{}, fmt.Errorf("there is more after the end of the array, at byte %d: a file has one array, or an item on each line", a.base+a.d.InputOffset())
		}
		a.over = true
		return fileRow{}, io.EOF
	}
	a.raw = a.raw[:0]
	switch err := a.d.Decode(&a.raw); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // io.EOF would mean that the array has ended
		return fileRow{}, errCutOff
	case err != nil:
		return fileRow{}, fmt.Errorf("the array cannot be read on at byte %d: %w", a.base+a.d.InputOffset(), err)
	}
	a.read++
	return fileRow{raw: a.raw, line: a.read, end: position{a.base + a.d.InputOffset(), a.read}}, nil
}
