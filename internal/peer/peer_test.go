// SPDX-License-Identifier: MIT

package peer

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

func trust(t testing.TB, secrets ...string) *Trust {
	t.Helper()
	var all [][]byte
	for _, s := range secrets {
		all = append(all, []byte(s))
	}
	tr, err := New(all...)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// connect does a real handshake, and returns both states.
func connect(t testing.TB, client, server *tls.Config) (dialed, accepted tls.ConnectionState, err error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	type result struct {
		state tls.ConnectionState
		err   error
	}
	served := make(chan result, 1)
	go func() {
		c := tls.Server(b, server)
		err := c.Handshake()
		if err == nil {
			_, err = c.Write([]byte("x"))
		}
		b.Close()
		served <- result{c.ConnectionState(), err}
	}()
	c := tls.Client(a, client)
	if err = c.Handshake(); err == nil { // the server's refusal comes after the client's handshake
		_, err = io.ReadFull(c, make([]byte, 1))
	}
	a.Close()
	r := <-served
	return c.ConnectionState(), r.state, errors.Join(err, r.err)
}

// links returns both ends of a connection between two nodes.
func links(t testing.TB, client, server *Trust) (from, to *Link) {
	t.Helper()
	dialed, accepted, err := connect(t, client.Client(), server.Server())
	if err != nil {
		t.Fatal(err)
	}
	if from, err = client.Dialed(&dialed); err != nil {
		t.Fatal(err)
	}
	if to, err = server.Accepted(&accepted); err != nil {
		t.Fatal(err)
	}
	return from, to
}

var note = Note{Sender: "a", Receiver: "b", AtMs: 1234, Secure: true}

func TestNodesWithOneSecretTrustEachOther(t *testing.T) {
	from, to := links(t, trust(t, "secret"), trust(t, "secret"))
	for i := range 3 {
		text := from.Sign(note, "GET", "/dbs/x")
		got, err := to.Verify(text, "b", "GET", "/dbs/x")
		if err != nil || got != note {
			t.Fatalf("request %d: %+v, %v", i, got, err)
		}
	}
}

func TestCertificateFollowsFromTheSecret(t *testing.T) {
	one, two, other := trust(t, "secret").known[0], trust(t, "secret").known[0], trust(t, "secret2").known[0]
	if !bytes.Equal(one.certificate.Certificate[0], two.certificate.Certificate[0]) {
		t.Error("two nodes have different certificates")
	}
	if bytes.Equal(one.public, other.public) || bytes.Equal(one.notes, other.notes) {
		t.Error("two secrets lead to the same keys")
	}
	if _, err := New(); err == nil {
		t.Error("there is trust without a secret")
	}
	if _, err := New(nil); err == nil {
		t.Error("there is trust with an empty secret")
	}
}

func TestStrangersDoNotGetBeyondTheHandshake(t *testing.T) {
	ours, theirs := trust(t, "secret"), trust(t, "guess")
	bare := &tls.Config{ServerName: ServerName, InsecureSkipVerify: true}
	old := ours.Client()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	for name, c := range map[string]struct{ client, server *tls.Config }{
		"a client with another secret":   {theirs.Client(), ours.Server()},
		"a server with another secret":   {ours.Client(), theirs.Server()},
		"a client without a certificate": {bare, ours.Server()},
		"a server with its own certificate": {ours.Client(), &tls.Config{
			Certificates: theirs.Server().Certificates,
		}},
		"an older version of TLS": {old, ours.Server()},
	} {
		if _, _, err := connect(t, c.client, c.server); err == nil {
			t.Errorf("%s: was accepted", name)
		}
	}
}

// A client that asks for another name sees another certificate, and is no node.
func TestOrdinaryConnectionsAreNoLinks(t *testing.T) {
	ours := trust(t, "secret")
	client := ours.Client()
	client.ServerName = "localhost"
	_, accepted, err := connect(t, client, ours.Server())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Accepted(&accepted); !errors.Is(err, ErrStranger) {
		t.Errorf("a connection to localhost: %v", err)
	}
	if _, err := ours.Accepted(nil); !errors.Is(err, ErrStranger) {
		t.Errorf("a connection without TLS: %v", err)
	}
}

func TestKeysAreChangedOneNodeAfterAnother(t *testing.T) {
	for _, step := range [][2]*Trust{
		{trust(t, "old"), trust(t, "old", "new")},
		{trust(t, "old", "new"), trust(t, "new", "old")},
		{trust(t, "new", "old"), trust(t, "new")},
	} {
		for _, way := range [][2]*Trust{step, {step[1], step[0]}} {
			from, to := links(t, way[0], way[1])
			if _, err := to.Verify(from.Sign(note, "GET", "/"), "b", "GET", "/"); err != nil {
				t.Error(err)
			}
		}
	}
	if _, _, err := connect(t, trust(t, "old").Client(), trust(t, "new").Server()); err == nil {
		t.Error("a node with the old key alone was accepted after the change")
	}
}

func TestNotesAreGoodOnceAndOnOneConnection(t *testing.T) {
	ours := trust(t, "secret")
	from, to := links(t, ours, ours)
	_, elsewhere := links(t, ours, ours)
	first, second := from.Sign(note, "GET", "/x"), from.Sign(note, "GET", "/x")
	if _, err := elsewhere.Verify(first, "b", "GET", "/x"); !errors.Is(err, ErrNote) {
		t.Errorf("on another connection: %v", err)
	}
	if _, err := to.Verify(second, "b", "GET", "/x"); err != nil {
		t.Error(err)
	}
	for _, again := range []string{second, first} {
		if _, err := to.Verify(again, "b", "GET", "/x"); !errors.Is(err, ErrReplay) {
			t.Errorf("a note that was used, or is older: %v", err)
		}
	}
}

func TestNotesAreForOneNodeAndRequest(t *testing.T) {
	ours := trust(t, "secret")
	from, to := links(t, ours, ours)
	var wrong *WrongNodeError
	if _, err := to.Verify(from.Sign(note, "GET", "/x"), "c", "GET", "/x"); !errors.As(err, &wrong) || wrong.Receiver != "b" {
		t.Errorf("at another node: %v", err)
	}
	for _, other := range [][2]string{{"POST", "/x"}, {"GET", "/y"}, {"GET/", "x"}} {
		if _, err := to.Verify(from.Sign(note, "GET", "/x"), "b", other[0], other[1]); !errors.Is(err, ErrNote) {
			t.Errorf("with another request: %v", err)
		}
	}
	signed := from.Sign(note, "GET", "/x")
	for i := range len(signed) {
		changed := []byte(signed)
		changed[i] ^= 1
		if _, err := to.Verify(string(changed), "b", "GET", "/x"); err == nil {
			t.Errorf("a note with byte %d changed was accepted", i)
		}
	}
	if _, err := to.Verify("2"+signed[1:], "b", "GET", "/x"); !errors.Is(err, ErrVersion) {
		t.Errorf("a later version: %v", err)
	}
}

func TestLongNamesFit(t *testing.T) {
	ours := trust(t, "secret")
	from, to := links(t, ours, ours)
	long := Note{Sender: strings.Repeat("ä ", 85), Receiver: strings.Repeat("\n", MaxNameBytes), AtMs: -1}
	text := from.Sign(long, "GET", "/")
	if len(text) > MaxNoteBytes {
		t.Fatalf("the note has %d bytes", len(text))
	}
	if got, err := to.Verify(text, long.Receiver, "GET", "/"); err != nil || got != long {
		t.Errorf("%+v, %v", got, err)
	}
}

// FuzzNote: no text is taken for a note but the one that was signed.
func FuzzNote(f *testing.F) {
	ours := trust(f, "secret")
	from, _ := links(f, ours, ours)
	f.Add(from.Sign(note, "GET", "/x"))
	f.Add("1 YQ Yg 1 0 http ")
	f.Add("1 YQ Yg 18446744073709551616 -0 https " + strings.Repeat("A", 43))
	f.Fuzz(func(t *testing.T, text string) {
		n, number, sum, err := parse(text)
		if err != nil {
			if !errors.Is(err, ErrNote) && !errors.Is(err, ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		again := fmt.Sprintf("1 %s %s %d %d %s %s", encoding.EncodeToString([]byte(n.Sender)), encoding.EncodeToString([]byte(n.Receiver)),
			number, n.AtMs, scheme(n.Secure), encoding.EncodeToString(sum))
		if again != text {
			t.Errorf("%q was read as %q: a note has one spelling", text, again)
		}
	})
}
