// SPDX-License-Identifier: MIT

package peer

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"
)

const (
	noteVersion = "1"
	// MaxNameBytes bounds the name of a node, as in package cluster.
	MaxNameBytes = 255
	// MaxNoteBytes bounds the text of a note.
	MaxNoteBytes = 1024
)

var (
	// ErrNote: the text is not a note, or not one of this connection and request.
	ErrNote = errors.New("peer: the request has no valid note of another node")
	// ErrReplay: the note was used before on its connection.
	ErrReplay = errors.New("peer: the note of the request was used before")
	// ErrVersion: the note is of another version.
	ErrVersion = errors.New("peer: the note of the request is of a version that this node does not know")
)

// WrongNodeError says that a request is for another node than the one that it came to.
type WrongNodeError struct{ Receiver, Self string }

func (e *WrongNodeError) Error() string {
	return fmt.Sprintf("peer: the request is for node %q, and this is node %q", e.Receiver, e.Self)
}

// Note goes with a request of a node to another.
type Note struct {
	Sender, Receiver string // the names of the nodes
	// AtMs is when the client's request came, by the sender's wall clock: the receiver
	// judges the date of the client's credential by it.
	AtMs int64
	// Secure says that the client's request came over TLS.
	Secure bool
}

// Link is one end of a connection between nodes. Its methods may be called from any
// goroutine.
type Link struct {
	mu   sync.Mutex
	mac  hash.Hash
	last uint64 // the number of the last request
	text []byte
}

// Dialed returns the link of a connection that this node has opened with Client's settings.
func (t *Trust) Dialed(s *tls.ConnectionState) (*Link, error) {
	if _, err := t.identify(s); err != nil {
		return nil, err
	}
	return link(t.known[0], s)
}

// Accepted returns the link of a connection that was accepted with Server's settings. The
// error is ErrStranger for any other connection.
func (t *Trust) Accepted(s *tls.ConnectionState) (*Link, error) {
	if s == nil || s.ServerName != ServerName {
		return nil, ErrStranger
	}
	id, err := t.identify(s)
	if err != nil {
		return nil, err
	}
	return link(id, s)
}

// link derives the key of a connection: from what TLS has agreed on with it alone, and from
// the secret of the end that opened it.
func link(opener *identity, s *tls.ConnectionState) (*Link, error) {
	agreed, err := s.ExportKeyingMaterial(labelConnection, nil, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("peer: derive the key of the connection: %w", err)
	}
	key := hmac.New(sha256.New, opener.notes)
	key.Write(agreed)
	return &Link{mac: hmac.New(sha256.New, key.Sum(nil))}, nil
}

var encoding = base64.RawURLEncoding.Strict()

// Sign returns the text of the note for the next request of the connection.
func (l *Link) Sign(n Note, method, target string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	sum := l.sumLocked(&n, l.last, method, target)
	b := make([]byte, 0, 128)
	b = append(b, noteVersion+" "...)
	b = append(encoding.AppendEncode(b, []byte(n.Sender)), ' ')
	b = append(encoding.AppendEncode(b, []byte(n.Receiver)), ' ')
	b = append(strconv.AppendUint(b, l.last, 10), ' ')
	b = append(strconv.AppendInt(b, n.AtMs, 10), ' ')
	b = append(append(b, scheme(n.Secure)...), ' ')
	return string(encoding.AppendEncode(b, sum))
}

// Verify checks the note of a request that came to the node self.
func (l *Link) Verify(text, self, method, target string) (Note, error) {
	n, number, sum, err := parse(text)
	if err != nil {
		return Note{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !hmac.Equal(sum, l.sumLocked(&n, number, method, target)):
		return Note{}, ErrNote
	case number <= l.last:
		return Note{}, ErrReplay
	}
	l.last = number
	if n.Receiver != self {
		return Note{}, &WrongNodeError{n.Receiver, self}
	}
	return n, nil
}

// sumLocked returns the signature of a note. It is overwritten by the next.
func (l *Link) sumLocked(n *Note, number uint64, method, target string) []byte {
	b := append(l.text[:0], noteVersion...)
	for _, text := range [...]string{n.Sender, n.Receiver, scheme(n.Secure), method, target} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
	}
	b = binary.BigEndian.AppendUint64(b, number)
	b = binary.BigEndian.AppendUint64(b, uint64(n.AtMs))
	l.mac.Reset()
	l.mac.Write(b)
	l.text = l.mac.Sum(b)
	return l.text[len(b):]
}

func scheme(secure bool) string {
	if secure {
		return "https"
	}
	return "http"
}

// parse reads the text of a note: version, sender, receiver, number, time, scheme and
// signature, with a space between them.
func parse(text string) (n Note, number uint64, sum []byte, err error) {
	fail := func() (Note, uint64, []byte, error) { return Note{}, 0, nil, ErrNote }
	if len(text) > MaxNoteBytes {
		return fail()
	}
	version, rest, _ := strings.Cut(text, " ")
	if version != noteVersion {
		if v, err := strconv.ParseUint(version, 10, 16); err == nil && v > 1 {
			return Note{}, 0, nil, ErrVersion
		}
		return fail()
	}
	parts := strings.Split(rest, " ")
	if len(parts) != 6 {
		return fail()
	}
	names := [2]string{}
	for i := range names {
		name, err := encoding.DecodeString(parts[i])
		if err != nil || len(name) == 0 || len(name) > MaxNameBytes {
			return fail()
		}
		names[i] = string(name)
	}
	n.Sender, n.Receiver = names[0], names[1]
	if number, err = strconv.ParseUint(parts[2], 10, 64); err != nil || parts[2] != strconv.FormatUint(number, 10) {
		return fail()
	}
	if n.AtMs, err = strconv.ParseInt(parts[3], 10, 64); err != nil || parts[3] != strconv.FormatInt(n.AtMs, 10) {
		return fail()
	}
	n.Secure = parts[4] == scheme(true)
	if parts[4] != scheme(n.Secure) {
		return fail()
	}
	if sum, err = encoding.DecodeString(parts[5]); err != nil || len(sum) != sha256.Size {
		return fail()
	}
	return n, number, sum, nil
}
