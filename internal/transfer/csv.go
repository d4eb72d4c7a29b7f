// SPDX-License-Identifier: MIT

// Reading CSV: records of cells, which commas and ends of lines part. A cell in quotes may have
// all of these, and a quote as two. Unlike encoding/csv this keeps the ends of lines in a cell
// as they are, tells the text of a record with a fault, and reads on behind it: a quote that is
// never closed spoils its line and not the rest of the file.

package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

// table is the rows of a CSV file, whose first line names the properties.
type table struct {
	r io.Reader
	// ahead is what was read and not taken yet. over says that the file has no more.
	ahead []byte
	over  bool
	taken position
	// names are the properties.
	names []string
	// cells, text and row are the memory of the last row.
	cells []string
	text  []byte
	row   []byte
}

func openCSV(f io.ReadSeeker, at position) (rows, error) {
	t := &table{r: f}
	if _, err := t.reach(len(utf8Mark)); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(t.ahead, utf8Mark) {
		t.take(len(utf8Mark))
	}
	head, err := t.record()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty: its first line must name the properties")
	}
	if err != nil {
		return nil, err
	}
	if head.fault != "" {
		return nil, fmt.Errorf("line %d, which must name the properties: %s", head.line, head.fault)
	}
	t.names = make([]string, len(t.cells))
	for i, name := range t.cells {
		// The explorer puts an apostrophe before a name that a spreadsheet would take for a formula.
		if bare, guarded := strings.CutPrefix(name, "'"); guarded && bare != "" && strings.ContainsRune("=+-@\t\r", rune(bare[0])) {
			name = bare
		}
		t.names[i] = name
	}
	if at.bytes > 0 {
		if _, err := f.Seek(at.bytes, io.SeekStart); err != nil {
			return nil, err
		}
		t.ahead, t.over, t.taken = nil, false, at
	}
	return t, nil
}

func (t *table) next() (fileRow, error) {
	row, err := t.record()
	switch {
	case err != nil || row.fault != "":
		return row, err
	case len(t.cells) > len(t.names):
		row.fault = fmt.Sprintf("the row has %d cells for %d properties", len(t.cells), len(t.names))
		return row, nil
	}
	t.row = append(t.row[:0], '{')
	for i, cell := range t.cells {
		if cell == "" {
			continue // there is no such property
		}
		if len(t.row) > 1 {
			t.row = append(t.row, ',')
		}
		t.row = append(value.AppendString(t.row, t.names[i]), ':')
		t.row = appendCell(t.row, t.names[i], cell)
	}
	t.row = append(t.row, '}')
	row.raw = t.row
	return row, nil
}

// record reads the cells of the next line that is not empty, or of more lines if a cell has
// some.
func (t *table) record() (fileRow, error) {
	for {
		row := fileRow{line: t.taken.lines + 1}
		length, fault, err := t.scan()
		switch {
		case err != nil:
			return fileRow{}, err
		case fault != "":
			if row.raw, err = t.takeLine(length); err != nil {
				return fileRow{}, err
			}
			row.fault = fault
		case length == 0:
			return fileRow{}, io.EOF
		default:
			row.raw = t.take(length)
		}
		if len(row.raw) > 0 && row.fault == "" && len(t.cells) == 1 && t.cells[0] == "" && row.raw[0] != '"' {
			continue // an empty line
		}
		row.raw = bytes.TrimRight(row.raw, "\r\n")
		row.end = t.taken
		return row, nil
	}
}

// scan splits the record that is ahead into cells, and returns how long it is. In case of a
// fault it is how long the record is before the line that is at fault ends.
func (t *table) scan() (length int, fault string, err error) {
	t.cells = t.cells[:0]
	i := 0
	for {
		ok, err := t.reach(i + 1)
		if err != nil {
			return 0, "", err
		}
		if !ok && i == 0 {
			return 0, "", nil
		}
		var cell string
		if ok && t.ahead[i] == '"' {
			t.text = t.text[:0]
			for i++; ; {
				ok, err := t.reach(i + 2) // a quote, and what follows it
				if err != nil {
					return 0, "", err
				}
				if !ok && len(t.ahead) <= i || i >= maxRowBytes {
					return 0, "a quote is not closed", nil
				}
				c := t.ahead[i]
				i++
				if c != '"' {
					t.text = append(t.text, c)
					continue
				}
				if len(t.ahead) <= i || t.ahead[i] != '"' {
					break
				}
				t.text = append(t.text, '"')
				i++
			}
			cell = string(t.text)
			if _, err := t.reach(i + 2); err != nil {
				return 0, "", err
			}
			if rest := t.ahead[i:]; len(rest) > 0 && rest[0] == '\r' && (len(rest) == 1 || rest[1] == '\n') {
				i++
			}
		} else {
			start := i
			for ; ; i++ {
				if ok, err = t.reach(i + 1); err != nil {
					return 0, "", err
				}
				if !ok || i >= maxRowBytes || t.ahead[i] == ',' || t.ahead[i] == '\n' {
					break
				}
				if t.ahead[i] == '"' {
					return i, "a quote is in a cell that does not begin with one", nil
				}
			}
			text := t.ahead[start:i]
			if !ok || t.ahead[i] == '\n' {
				text = bytes.TrimSuffix(text, []byte{'\r'})
			}
			cell = string(text)
		}
		t.cells = append(t.cells, cell)
		switch {
		case i >= maxRowBytes:
			return i, tooLongFault, nil
		case len(t.ahead) <= i:
			return i, "", nil
		case t.ahead[i] == '\n':
			return i + 1, "", nil
		case t.ahead[i] != ',':
			return i, "there is text behind the quote that closes a cell", nil
		}
		i++
	}
}

// reach reads on until so many bytes are ahead. It reports false if the file has no more.
func (t *table) reach(n int) (bool, error) {
	for len(t.ahead) < n {
		if t.over {
			return false, nil
		}
		if cap(t.ahead)-len(t.ahead) < readAhead {
			t.ahead = append(make([]byte, 0, 2*len(t.ahead)+2*readAhead), t.ahead...)
		}
		got, err := t.r.Read(t.ahead[len(t.ahead) : len(t.ahead)+readAhead])
		t.ahead = t.ahead[:len(t.ahead)+got]
		if errors.Is(err, io.EOF) {
			t.over = true
		} else if err != nil {
			return false, err
		}
	}
	return true, nil
}

// take takes bytes that are ahead.
func (t *table) take(n int) []byte {
	b := t.ahead[:n:n]
	t.ahead = t.ahead[n:]
	t.taken.bytes += int64(n)
	t.taken.lines += int64(bytes.Count(b, []byte{'\n'}))
	return b
}

// takeLine takes what is ahead up to the first end of a line at or behind a place. Of what is
// longer than a record may be it returns nothing.
func (t *table) takeLine(from int) ([]byte, error) {
	for dropped := false; ; {
		end := bytes.IndexByte(t.ahead[from:], '\n')
		if from += end + 1; end < 0 {
			from = len(t.ahead)
			if from > maxRowBytes {
				t.take(from)
				from, dropped = 0, true
			}
			if ok, err := t.reach(from + 1); ok || err != nil {
				if err != nil {
					return nil, err
				}
				continue
			}
		}
		text := t.take(from)
		if dropped || len(text) > maxRowBytes {
			text = nil
		}
		return text, nil
	}
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
