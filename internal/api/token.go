// SPDX-License-Identifier: MIT

// Resource tokens: credentials made for a permission. A token names its permission and
// when it expires. What it allows is looked up in the permission at each use, so deleting
// or narrowing a permission takes effect at once. A token also has the number of the
// container that it was made for, so it does not allow a later container of the same
// name.
//
// Tokens expire by the wall clock, as signatures do, and never by the database's time. A
// test that moves that time years ahead keeps its credentials, and moving it back makes
// no old token valid.

package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
)

const (
	tokenVersion = 1
	// A token is its version, its expiry in seconds, and the numbers of the database, the
	// user, the permission and the container.
	tokenBytes = 1 + 8 + 4 + 8 + 8 + 4
	// tokenDomain keeps the signatures of tokens apart from those of requests, which
	// begin with a verb.
	tokenDomain = "\x00mayfly resource token\x00"
)

// token is a parsed resource token.
type token struct {
	expires    time.Time
	permission catalog.PermissionRID
	container  uint32 // 0 for none
}

// Token makes a resource token for a permission. If the permission's container does not
// exist, the token allows nothing.
func (s *Service) Token(p *catalog.Permission, expires time.Time) string {
	t := token{expires: expires, permission: p.Numbers()}
	if c, err := s.Engine.Catalog().Granted(p); err == nil {
		t.container = c.RID.Container
	}
	return s.Keys.token(&t)
}

func (ks *Keys) token(t *token) string {
	payload := t.append(nil)
	sum := ks.all[0].sign(append([]byte(tokenDomain), payload...))
	return "type=resource&ver=1&sig=" + base64.StdEncoding.EncodeToString(sum[:]) + ";" + base64.StdEncoding.EncodeToString(payload) + ";"
}

func (t *token) append(dst []byte) []byte {
	dst = append(dst, tokenVersion)
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.expires.Unix()))
	dst = binary.BigEndian.AppendUint32(dst, uint32(t.permission.Database))
	dst = binary.BigEndian.AppendUint64(dst, t.permission.User)
	dst = binary.BigEndian.AppendUint64(dst, t.permission.Permission)
	return binary.BigEndian.AppendUint32(dst, t.container)
}

// parseToken verifies the signature of a resource token with each key that may write, and
// parses it. It does not check the expiry.
func (ks *Keys) parseToken(sig string) (token, error) {
	mac, rest, _ := strings.Cut(sig, ";")
	text, rest, _ := strings.Cut(rest, ";")
	given, err1 := base64.StdEncoding.DecodeString(mac)
	payload, err2 := base64.StdEncoding.DecodeString(text)
	if err1 != nil || err2 != nil || rest != "" || len(given) != sha256.Size || len(payload) != tokenBytes {
		return token{}, ErrBadAuthorization
	}
	by, err := ks.signed(given, append([]byte(tokenDomain), payload...))
	if err != nil || by != ByKey || payload[0] != tokenVersion {
		return token{}, ErrBadAuthorization
	}
	return token{
		expires: time.Unix(int64(binary.BigEndian.Uint64(payload[1:])), 0),
		permission: catalog.PermissionRID{
			Database:   catalog.DatabaseRID(binary.BigEndian.Uint32(payload[9:])),
			User:       binary.BigEndian.Uint64(payload[13:]),
			Permission: binary.BigEndian.Uint64(payload[21:]),
		},
		container: binary.BigEndian.Uint32(payload[29:]),
	}, nil
}
