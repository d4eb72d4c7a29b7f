// SPDX-License-Identifier: MIT

package rntbd

import (
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"testing"
)

// golden is a frame that an SDK sent, or an answer that it accepted.
type golden struct {
	name    string
	request bool
	frame   []byte
}

func (g *golden) context() bool { return g.name == "context" }

func (g *golden) table() *Table {
	switch {
	case g.context() && g.request:
		return ContextTokens
	case g.context():
		return AcceptedTokens
	case g.request:
		return RequestTokens
	}
	return ResponseTokens
}

// readGolden reads the frames of both SDKs.
func readGolden(t testing.TB) (all []golden) {
	t.Helper()
	for _, file := range []string{"testdata/java.txt", "testdata/dotnet.txt"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := ""
		for line := range strings.Lines(string(text)) {
			kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch kind {
			case "<", ">":
				frame, err := hex.DecodeString(rest)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, golden{name, kind == "<", frame})
			case "#", "body", "":
			default:
				name = strings.TrimSpace(line)
			}
		}
	}
	if len(all) < 70 {
		t.Fatalf("%d frames in the files", len(all))
	}
	return all
}

// appendToken encodes the scanner's token again.
func appendToken(b []byte, s *Scanner) []byte {
	switch s.Type {
	case Byte:
		return AppendByte(b, s.ID, s.Byte())
	case ULong:
		return AppendULong(b, s.ID, s.Uint32())
	case LongLong:
		return AppendLongLong(b, s.ID, s.Int64())
	case Double:
		return AppendDouble(b, s.ID, s.Double())
	case Guid:
		return AppendGUID(b, s.ID, GUID([]byte(s.Text())))
	case SmallString:
		return AppendSmall(b, s.ID, s.Text())
	case String:
		return AppendText(b, s.ID, s.Text())
	case Bytes:
		return AppendBytes(b, s.ID, s.Text())
	}
	return append(b, "not appended by this package"...)
}

func TestFramesOfBothSDKsAreReadAndMadeAgain(t *testing.T) {
	for _, g := range readGolden(t) {
		var again []byte
		if g.request {
			h, err := ParseRequestHead(g.frame)
			if err != nil || h.Length != len(g.frame) {
				t.Fatalf("%s: head %+v, %v", g.name, h, err)
			}
			if g.context() != (h.Resource == Connection && h.Operation == Connect) || g.context() != Sniff(g.frame) {
				t.Errorf("%s: resource %d, operation %d", g.name, h.Resource, h.Operation)
			}
			again = BeginRequest(nil, h.Resource, h.Operation, h.Activity)
		} else {
			h, err := ParseResponseHead(g.frame)
			if err != nil || h.Length != len(g.frame) || h.Status < 200 || h.Status > 599 {
				t.Fatalf("%s: head %+v, %v", g.name, h, err)
			}
			again = BeginResponse(nil, h.Status, h.Activity)
		}
		s := Scan(string(g.frame[HeadBytes:]), g.table())
		for s.Next() {
			again = appendToken(again, &s)
		}
		if err := s.Err(); err != nil {
			t.Errorf("%s: %v", g.name, err)
		}
		End(again, 0)
		if string(again) != string(g.frame) {
			t.Errorf("%s: made again:\n%x\nread:\n%x", g.name, again, g.frame)
		}
	}
}

func TestSniff(t *testing.T) {
	for _, text := range []string{"GET", "POST /dbs HTTP/1.1", "PRI * HTTP/2.0", "PUT /", "\x16\x03\x01\x02\x00\x01\x00", "\x16\x03\x01\x00\x00\x01\x00", "\x6b\x00\x03", "\x6b\x00\x00\x01"} {
		if Sniff([]byte(text)) {
			t.Errorf("%q is taken for a frame", text)
		}
	}
	for n := range SniffBytes + 1 {
		if !Sniff([]byte("\x6b\x01\x01\x00\x00\x00\x00\x00\xff")[:n]) {
			t.Errorf("the first %d bytes of a frame are not taken for it", n)
		}
	}
}

func TestGUIDHasTheTextThatClientsShow(t *testing.T) {
	b, _ := hex.DecodeString("50a4177b13abee409fd0408e9b654e90")
	if got := GUID(b).String(); got != "7b17a450-ab13-40ee-9fd0-408e9b654e90" {
		t.Errorf("got %s", got)
	}
}

// TestTokensAreTheSDKs compares the tables with the list of all tokens that the SDKs
// declare.
func TestTokensAreTheSDKs(t *testing.T) {
	text, err := os.ReadFile("testdata/tokens.tsv")
	if err != nil {
		t.Fatal(err)
	}
	names := [types]string{"Byte", "UShort", "ULong", "Long", "ULongLong", "LongLong", "Guid", "SmallString", "String", "ULongString",
		"SmallBytes", "Bytes", "ULongBytes", "Float", "Double"}
	found := map[*Table]int{}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 4 {
			continue
		}
		id, err := strconv.ParseUint(f[1], 0, 16)
		if err != nil {
			t.Fatal(err)
		}
		table := RequestTokens
		if f[0] == "response" {
			table = ResponseTokens
		}
		if declared, listed := table.typeOf(Token(id)); listed {
			found[table]++
			if names[declared] != f[3] {
				t.Errorf("%s token %s %s: listed as %s, the SDKs have %s", f[0], f[1], f[2], names[declared], f[3])
			}
		}
	}
	for _, table := range []*Table{RequestTokens, ResponseTokens} {
		listed := 0
		for id := range Token(tableSize) {
			if _, ok := table.typeOf(id); ok {
				listed++
			}
		}
		if listed != found[table] {
			t.Errorf("%d tokens are listed, %d of them are the SDKs'", listed, found[table])
		}
	}
}

func TestMalformedFrames(t *testing.T) {
	for _, c := range []struct{ name, hex string }{
		{"a token's head cut", "0300"},
		{"a number cut", "040002ffff"},
		{"a length cut", "050008ff"},
		{"a short text cut", "030007054d6f6e"},
		{"a text longer than the frame", "050008ffff41"},
		{"a text of 4 GB", "a70009ffffffff41"},
		{"an unknown type", "00010f00"},
		{"a known token of another type", "0400080100ff"},
	} {
		b, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(err)
		}
		s := Scan(string(b), RequestTokens)
		for s.Next() {
			t.Errorf("%s: read token %#x", c.name, s.ID)
		}
		if s.Err() == nil || s.Next() {
			t.Errorf("%s: no error", c.name)
		}
	}
	for _, c := range []string{"", "18000000", "17000000" + strings.Repeat("0", 40), "01000200" + strings.Repeat("0", 40), "ffffffff" + strings.Repeat("0", 40)} {
		b, err := hex.DecodeString(c)
		if err != nil {
			t.Fatal(err)
		}
		if h, err := ParseRequestHead(b); err == nil {
			t.Errorf("%q: head %+v", c, h)
		}
	}
}

func TestUnknownTokensAreSkipped(t *testing.T) {
	b := AppendGUID(AppendDouble(AppendLongLong(nil, 0x7ff0, 1), 0xfff1, 2), 0x106, GUID{})
	b = append(b, 0xf0, 0x7f, byte(ULongString), 2, 0, 0, 0, 'h', 'i')
	b = append(b, 0xf0, 0x7f, byte(UShort), 2, 0)
	b = AppendText(b, RequestDate+0x100, "x")
	b = AppendULong(b, RequestTransportRequestID, 77)
	s, n := Scan(string(b), RequestTokens), 0
	for s.Next() {
		n++
	}
	if s.Err() != nil || n != 7 || s.ID != RequestTransportRequestID || s.Uint32() != 77 {
		t.Errorf("%d tokens, last %#x = %d, %v", n, s.ID, s.Uint32(), s.Err())
	}
}

func TestLongTextsAreCutAtACharacter(t *testing.T) {
	s := Scan(string(AppendText(nil, ResponseLogResults, strings.Repeat("é", MaxText))), ResponseTokens)
	if !s.Next() || s.Text() != strings.Repeat("é", MaxText/2) || s.Next() {
		t.Errorf("got %d bytes, %v", len(s.Text()), s.Err())
	}
	s = Scan(string(AppendSmall(nil, ResponseSchemaVersion, strings.Repeat("\x80", 300))), ResponseTokens)
	if !s.Next() || s.Text() != "" || s.Next() || s.Err() != nil {
		t.Errorf("got %q, %v", s.Text(), s.Err())
	}
}

// FuzzTokens scans foreign bytes. What is scanned without an error has the same tokens
// once it is made again.
func FuzzTokens(f *testing.F) {
	for _, g := range readGolden(f) {
		f.Add(g.frame[HeadBytes:], g.request)
	}
	f.Fuzz(func(t *testing.T, b []byte, request bool) {
		table := ResponseTokens
		if request {
			table = RequestTokens
		}
		s, read := Scan(string(b), table), 0
		for s.Next() {
			if declared, listed := table.typeOf(s.ID); listed && declared != s.Type {
				t.Fatalf("token %#x of type %d", s.ID, s.Type)
			}
			size := sizes[s.Type]
			read += tokenHeadBytes + size.prefix + len(s.Text())
			if size.prefix == 0 && len(s.Text()) != size.fixed {
				t.Fatalf("a value of %d bytes of type %d", len(s.Text()), s.Type)
			}
			_, _, _, _, _ = s.Byte(), s.Uint32(), s.Int64(), s.Double(), s.Flag()
		}
		if s.Err() == nil && read != len(b) {
			t.Fatalf("read %d of %d bytes", read, len(b))
		}
	})
}

// FuzzHeads parses foreign heads.
func FuzzHeads(f *testing.F) {
	for _, g := range readGolden(f) {
		f.Add(g.frame[:HeadBytes])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseRequestHead(b)
		if err != nil {
			return
		}
		if h.Length < HeadBytes || h.Length > MaxHeadBytes || len(h.Activity.String()) != 36 {
			t.Fatalf("head %+v", h)
		}
		again := BeginRequest(nil, h.Resource, h.Operation, h.Activity)
		if string(again[4:]) != string(b[4:HeadBytes]) {
			t.Fatalf("made again %x, read %x", again, b)
		}
	})
}
