// SPDX-License-Identifier: MIT

// Session tokens: <range>:<version>#<lsn>[#<region>=<lsn>…], several joined by commas.
// With one, a client asks to see at least what it has seen before.

package engine

import (
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/value"
)

// sessionVersion is in every token. It would grow with a merge of partitions, which does
// not exist here.
const sessionVersion = -1

// maxSessionTokens bounds how many ranges a token may name.
const maxSessionTokens = 1024

// SessionToken returns the token for a partition at an LSN.
func SessionToken(partition int, lsn uint64) string {
	b := strconv.AppendInt(make([]byte, 0, 24), int64(partition), 10)
	b = append(b, ':')
	b = strconv.AppendInt(b, sessionVersion, 10)
	b = append(b, '#')
	return string(strconv.AppendUint(b, lsn, 10))
}

// SessionPosition is SessionToken without the partition.
func SessionPosition(lsn uint64) string {
	_, position, _ := strings.Cut(SessionToken(0, lsn), ":")
	return position
}

// OldSessionToken is SessionToken in the form without a version: only the LSN.
func OldSessionToken(partition int, lsn uint64) string {
	return strconv.Itoa(partition) + ":" + strconv.FormatUint(lsn, 10)
}

// session is what a client has seen, by partition.
type session map[int]sessionPoint

type sessionPoint struct {
	version int64
	lsn     uint64
}

func parseSession(token string) (session, error) {
	if token == "" {
		return nil, nil
	}
	bad := invalid("The session token provided '%s' is invalid.", value.Clip(token))
	parts := strings.Split(token, ",")
	if len(parts) > maxSessionTokens {
		return nil, bad
	}
	s := make(session, len(parts))
	for _, part := range parts {
		id, rest, ok := strings.Cut(strings.TrimSpace(part), ":")
		if !ok {
			return nil, bad
		}
		versionText, rest, ok := strings.Cut(rest, "#")
		if !ok { // the oldest form has only the LSN
			versionText, rest = strconv.Itoa(sessionVersion), versionText
		}
		lsnText, regions, more := strings.Cut(rest, "#")
		if more && !validRegions(regions) {
			return nil, bad
		}
		partition, err1 := strconv.Atoi(id)
		version, err2 := strconv.ParseInt(versionText, 10, 64)
		lsn, err3 := strconv.ParseUint(lsnText, 10, 64)
		if err1 != nil || err2 != nil || err3 != nil || partition < 0 {
			return nil, bad
		}
		if old, ok := s[partition]; !ok || old.lsn < lsn {
			s[partition] = sessionPoint{version, lsn}
		}
	}
	return s, nil
}

// validRegions checks <region>=<lsn>, several joined by #. Partitions have one region, so
// the values are not used.
func validRegions(text string) bool {
	for part := range strings.SplitSeq(text, "#") {
		region, lsn, _ := strings.Cut(part, "=")
		_, err1 := strconv.ParseUint(region, 10, 64)
		_, err2 := strconv.ParseInt(lsn, 10, 64)
		if err1 != nil || err2 != nil {
			return false
		}
	}
	return true
}

// check returns ErrSession if the client has seen a later state of the partition, or of one
// that it was made from: it has gone on with that one's lsn.
func (s session) check(r *catalog.Range, lsn uint64) error {
	if s.ahead(r.ID, lsn) {
		return ErrSession
	}
	for _, id := range r.Parents {
		if s.ahead(id, lsn) {
			return ErrSession
		}
	}
	return nil
}

func (s session) ahead(partition int, lsn uint64) bool {
	p, ok := s[partition]
	return ok && (p.version > sessionVersion || p.version == sessionVersion && p.lsn > lsn)
}
