// SPDX-License-Identifier: MIT

// Reading rows from files: lines of JSON, an array of JSON, or CSV.

package transfer

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
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

// rows reads the rows of a file, one after the other.
type rows interface {
	// next returns the next row, which is valid until the next call, and the number of bytes
	// up to its end. A fault is why the row cannot be read; the rows after it can. At the end
	// the error is io.EOF.
	next() (raw []byte, end int64, fault string, err error)
}

// openRows begins to read at a position that an earlier end named.
func openRows(f io.ReadSeeker, form Format, at int64) (rows, error) {
	var head []byte
	if form != CSV || at > 0 {
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
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return nil, err
	}
	return &lines{r: bufio.NewReaderSize(f, 256<<10), end: at}, nil
}

// lines is rows of JSON, one on each line.
type lines struct {
	r     *bufio.Reader
	end   int64
	spill []byte
}

var utf8Mark = []byte("\ufeff")

func (l *lines) next() (raw []byte, end int64, fault string, err error) {
	for {
		line, err := l.r.ReadSlice('\n')
		l.spill = l.spill[:0]
		tooLong := false
		for errors.Is(err, bufio.ErrBufferFull) {
			l.end += int64(len(line))
			if tooLong = tooLong || len(l.spill)+len(line) > maxRowBytes; tooLong {
				l.spill = l.spill[:0]
			} else {
				l.spill = append(l.spill, line...)
			}
			line, err = l.r.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, l.end, "", err
		}
		first := l.end == 0 && len(l.spill) == 0
		l.end += int64(len(line))
		if tooLong {
			return nil, l.end, fmt.Sprintf("the line is longer than %d bytes", maxRowBytes), nil
		}
		if len(l.spill) > 0 {
			l.spill = append(l.spill, line...)
			line = l.spill
		}
		if first {
			line = bytes.TrimPrefix(line, utf8Mark)
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			return text, l.end, "", nil
		}
		if err != nil {
			return nil, l.end, "", io.EOF
		}
	}
}

// array is the elements of an array of JSON.
type array struct {
	d    *json.Decoder
	base int64 // what the decoder's offsets lack
	raw  json.RawMessage
	over bool
}

// errCutOff is why an array cannot be read to its end.
var errCutOff = errors.New("the array has no end: the file was cut off")

// resumedArray stands for what was read of an array before.
const resumedArray = "[0"

func openArray(f io.ReadSeeker, at int64) (rows, error) {
	if at == 0 {
		r := bufio.NewReaderSize(f, 256<<10)
		skipped := int64(0)
		if mark, err := r.Peek(len(utf8Mark)); err == nil && bytes.Equal(mark, utf8Mark) {
			n, _ := r.Discard(len(utf8Mark))
			skipped = int64(n)
		}
		a := &array{d: json.NewDecoder(r), base: skipped}
		_, err := a.d.Token()
		return a, err
	}
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return nil, err
	}
	a := &array{d: json.NewDecoder(io.MultiReader(strings.NewReader(resumedArray), f)), base: at - int64(len(resumedArray))}
	if _, err := a.d.Token(); err != nil {
		return nil, err
	}
	_, err := a.d.Token()
	return a, err
}

func (a *array) next() (raw []byte, end int64, fault string, err error) {
	if a.over {
		return nil, a.base + a.d.InputOffset(), "", io.EOF
	}
	if !a.d.More() {
		if _, err := a.d.Token(); err != nil {
			return nil, 0, "", errCutOff
		}
		if _, err := a.d.Token(); !errors.Is(err, io.EOF) {
			return nil, 0, "", fmt.Errorf("there is more after the end of the array, at byte %d: a file has one array, or an item on each line", a.base+a.d.InputOffset())
		}
		a.over = true
		return nil, a.base + a.d.InputOffset(), "", io.EOF
	}
	a.raw = a.raw[:0]
	switch err := a.d.Decode(&a.raw); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // io.EOF would mean that the array has ended
		return nil, 0, "", errCutOff
	case err != nil:
		return nil, 0, "", fmt.Errorf("the array cannot be read on at byte %d: %w", a.base+a.d.InputOffset(), err)
	}
	return a.raw, a.base + a.d.InputOffset(), "", nil
}

// table is the rows of a CSV file, whose first line names the properties.
type table struct {
	r    *csv.Reader
	base int64
	// names are the properties.
	names []string
	row   []byte
}

func openCSV(f io.ReadSeeker, at int64) (rows, error) {
	t := &table{r: csv.NewReader(f)}
	names, err := t.r.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty: its first line must name the properties")
	}
	if err != nil {
		return nil, err
	}
	names[0] = strings.TrimPrefix(names[0], string(utf8Mark))
	t.names = names
	if at > 0 {
		if _, err := f.Seek(at, io.SeekStart); err != nil {
			return nil, err
		}
		t.r, t.base = csv.NewReader(f), at
	}
	t.r.FieldsPerRecord = -1
	return t, nil
}

func (t *table) next() (raw []byte, end int64, fault string, err error) {
	cells, err := t.r.Read()
	end = t.base + t.r.InputOffset()
	var bad *csv.ParseError
	switch {
	case errors.As(err, &bad):
		return nil, end, bad.Err.Error(), nil
	case err != nil:
		return nil, end, "", err
	case len(cells) > len(t.names):
		return nil, end, fmt.Sprintf("the row has %d cells for %d properties", len(cells), len(t.names)), nil
	}
	t.row = append(t.row[:0], '{')
	for i, cell := range cells {
		if cell == "" {
			continue // there is no such property
		}
		if len(t.row) > 1 {
			t.row = append(t.row, ',')
		}
		t.row = append(value.AppendString(t.row, t.names[i]), ':')
		t.row = appendCell(t.row, t.names[i], cell)
	}
	return append(t.row, '}'), end, "", nil
}

// appendCell appends what a cell means: JSON if it is JSON, and text otherwise. Ids are text.
func appendCell(dst []byte, name, cell string) []byte {
	if name == "id" && cell[0] != '"' || !json.Valid([]byte(cell)) {
		return value.AppendString(dst, cell)
	}
	return append(dst, cell...)
}

// cellOf is the opposite of appendCell.
func cellOf(name string, raw []byte) string {
	v, scalar := value.FromJSON(raw)
	text, isText := v.Text()
	if !scalar || !isText || text == "" || text[0] == '"' || name != "id" && json.Valid([]byte(text)) {
		return string(raw)
	}
	return text
}
