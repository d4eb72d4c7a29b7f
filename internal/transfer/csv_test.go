// SPDX-License-Identifier: MIT

package transfer

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// seekable reads a text in small pieces.
type seekable struct {
	io.Reader
	s *strings.Reader
}

func (s seekable) Seek(offset int64, whence int) (int64, error) { return s.s.Seek(offset, whence) }

func inPieces(text string) seekable {
	s := strings.NewReader(text)
	return seekable{iotest.HalfReader(s), s}
}

// readAll returns the rows behind a position as lines of text.
func readAll(t *testing.T, text string, form Format, at position) (all []string, ends []position) {
	t.Helper()
	from, err := openRows(inPieces(text), form, at)
	if err != nil {
		t.Fatal(err)
	}
	for {
		row, err := from.next()
		if errors.Is(err, io.EOF) {
			return all, ends
		}
		if err != nil {
			t.Fatal(err)
		}
		all, ends = append(all, strings.TrimSpace(fmt.Sprintf("%d %s %s", row.line, row.raw, row.fault))), append(ends, row.end)
	}
}

// Rows name the lines that people see in an editor, also with empty lines, cells of several
// lines, and after an import that goes on.
func TestLinesOfRows(t *testing.T) {
	for form, text := range map[Format]string{
		CSV:   "\ufeffid,v\r\n\r\n1,\"a\r\nb\"\n\n2,\"x\"y\n3,x\"y\n4,5,6\n\"5\",\"\"\n6,\"unclosed\n7,last",
		JSONL: "\ufeff{\"id\":\"1\"}\r\n\r\n\n{\"id\":\"2\"}\nnonsense\n\n{\"id\":\"3\"}",
	} {
		want := map[Format][]string{
			CSV: {
				`3 {"id":"1","v":"a\r\nb"}`, `6 2,"x"y there is text behind the quote that closes a cell`, `7 3,x"y a quote is in a cell that does not begin with one`,
				`8 4,5,6 the row has 3 cells for 2 properties`, `9 {"id":"5"}`, `10 6,"unclosed a quote is not closed`, `11 {"id":"7","v":"last"}`,
			},
			JSONL: {`1 {"id":"1"}`, `4 {"id":"2"}`, `5 nonsense`, `7 {"id":"3"}`},
		}[form]
		got, ends := readAll(t, text, form, position{})
		if !slices.Equal(got, want) {
			t.Fatalf("%s:\n%s\nwant\n%s", form, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for i, end := range ends {
			if rest, _ := readAll(t, text, form, end); !slices.Equal(rest, want[i+1:]) {
				t.Errorf("%s: behind row %d there are %q", form, i, rest)
			}
		}
	}
}

// A cell or a line that never ends takes no more memory than a row may have, and spoils no
// other row.
func TestRowsWithoutAnEnd(t *testing.T) {
	long := strings.Repeat("x", maxRowBytes)
	for _, text := range []string{
		"id,v\n1,a\n2," + long + "xx\n3,b\n", "id,v\n1,a\n2,\"" + long + long + "\n3,b\n", "id,v\n1,a\n2,\"y\n3,b\n" + strings.Repeat("\n", maxRowBytes),
	} {
		got, _ := readAll(t, text, CSV, position{})
		if len(got) != 3 || got[0] != `2 {"id":"1","v":"a"}` || len(got[1]) > 100 || got[2] != `4 {"id":"3","v":"b"}` {
			for i := range got {
				got[i] = fmt.Sprintf("%.60s…", got[i])
			}
			t.Errorf("%.30q…: %d rows: %q", text, len(got), got)
		}
	}
}

// A file of the explorer is read as the explorer reads it (test/explorer has the same rows).
func TestReadsWhatTheExplorerWrites(t *testing.T) {
	got, _ := readAll(t, "id,'@type,text,zip,n\r\n7,a,\"\"\"=1+1\"\"\",\"\"\"5\"\"\",5\r\n", CSV, position{})
	if want := `2 {"id":"7","@type":"a","text":"=1+1","zip":"5","n":5}`; len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %s", got, want)
	}
}

// What others write as CSV is read as they meant it.
func TestReadsWhatOthersWrite(t *testing.T) {
	for range 2000 {
		const names = 3
		cells := [][]string{{"a", "b", "c"}}
		for range 1 + rand.IntN(4) {
			row := make([]string, names)
			for i := range row {
				row[i] = "k" // or else it may be JSON
				for range rand.IntN(4) {
					row[i] += []string{"x", "ü", `"`, ",", "\n", "\r", "\r\n", " ", "'"}[rand.IntN(9)]
				}
			}
			cells = append(cells, row)
		}
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		if err := w.WriteAll(cells); err != nil {
			t.Fatal(err)
		}
		from, err := openRows(inPieces(b.String()), CSV, position{})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range cells[1:] {
			row, err := from.next()
			if err != nil || row.fault != "" {
				t.Fatalf("%q: %v, %s", b.String(), err, row.fault)
			}
			var got struct{ A, B, C string }
			if err := json.Unmarshal(row.raw, &got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal([]string{got.A, got.B, got.C}, want) {
				t.Fatalf("%q became %q", want, row.raw)
			}
		}
	}
}

// FuzzCSV: any file is read to its end, in whatever pieces it comes and from wherever an import
// goes on. It has as many rows as encoding/csv finds in it, if that finds no fault.
func FuzzCSV(f *testing.F) {
	for _, text := range []string{"a,b\n1,2\n", "a\r\n\"x\r\ny\"\n", "a,b\n\"1,2\n3,\"4\"\"\"\n", "\ufeffa\n\n\"\"\n1\"2\nlast"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		whole, err := openRows(strings.NewReader(text), CSV, position{})
		if err != nil {
			return
		}
		names := slices.Clone(whole.(*table).names)
		var all []string
		var ends []position
		for faults := false; ; {
			row, err := whole.next()
			if errors.Is(err, io.EOF) {
				if !faults {
					sameRecords(t, text, names, all)
				}
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			faults = faults || row.fault != ""
			if row.fault == "" && !json.Valid(row.raw) {
				t.Fatalf("row %d is %q", len(all), row.raw)
			}
			if n := len(ends); n > 0 && row.end.bytes <= ends[n-1].bytes {
				t.Fatalf("row %d ends at %d, and the one before at %d", n, row.end.bytes, ends[n-1].bytes)
			}
			all, ends = append(all, strings.TrimSpace(fmt.Sprintf("%d %s %s", row.line, row.raw, row.fault))), append(ends, row.end)
		}
		if pieces, _ := readAll(t, text, CSV, position{}); !slices.Equal(pieces, all) {
			t.Errorf("in pieces: %q, want %q", pieces, all)
		}
		if n := len(ends); n > 0 {
			if rest, _ := readAll(t, text, CSV, ends[n/2]); !slices.Equal(rest, all[n/2+1:]) {
				t.Errorf("behind row %d: %q, want %q", n/2, rest, all[n/2+1:])
			}
		}
	})
}

// sameRecords compares the numbers of names and rows with what encoding/csv finds in a file that
// it takes.
func sameRecords(t *testing.T, text string, names, rows []string) {
	t.Helper()
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, string(utf8Mark))))
	r.FieldsPerRecord = -1
	records, err := r.ReadAll()
	if err != nil || len(records) == 0 {
		return
	}
	if len(names) != len(records[0]) {
		t.Fatalf("the names are %q, want %q", names, records[0])
	}
	if len(rows) != len(records)-1 {
		t.Errorf("%d rows, want %d: %q", len(rows), len(records)-1, rows)
	}
}
