// SPDX-License-Identifier: MIT

// Resource tokens: credentials that a permission gives out. A token names its
// permission and says until when it is good; what it opens is looked up in the
// permission when it is used, so that a permission that was deleted or narrowed
// holds at once. It also has the number of the container it was made for: one of
// the same name that is made later is not opened by it.
//
// Tokens expire by the wall clock, as signatures do, and never by the database's
// time: a test that moves it years ahead keeps its credentials, and nobody who may
// move it can make an old token good.

package rest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
)

const (
	tokenVersion = 1
	// A token is its version, when it expires in seconds, and the numbers of the
	// database, the user, the permission and the container.
	tokenBytes = 1 + 8 + 4 + 8 + 8 + 4
	// tokenDomain keeps the signatures of tokens apart from those of requests, which
	// begin with a verb.
	tokenDomain = "\x00mayfly resource token\x00"
)

// token is a resource token that was taken apart.
type token struct {
	expires    time.Time
	permission catalog.PermissionRID
	container  uint32 // 0 for none
}

// newToken makes a token for a permission. If what it is for does not exist, the
// token opens nothing.
func (h *Handler) newToken(p *catalog.Permission, expires time.Time) string {
	t := token{expires: expires, permission: p.Numbers()}
	if c, err := h.engine.Catalog().Granted(p); err == nil {
		t.container = c.RID.Container
	}
	payload := t.append(nil)
	sum := h.keys[0].sign(append([]byte(tokenDomain), payload...))
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

// parseToken verifies the signature part of a resource token with every key that
// may write, and takes it apart. It does not look at the time.
func (h *Handler) parseToken(sig string) (token, error) {
	mac, rest, _ := strings.Cut(sig, ";")
	text, rest, _ := strings.Cut(rest, ";")
	given, err1 := base64.StdEncoding.DecodeString(mac)
	payload, err2 := base64.StdEncoding.DecodeString(text)
	if err1 != nil || err2 != nil || rest != "" || len(given) != sha256.Size || len(payload) != tokenBytes {
		return token{}, errBadAuthorization
	}
	by, err := h.signed(given, append([]byte(tokenDomain), payload...))
	if err != nil || by != api.ByKey || payload[0] != tokenVersion {
		return token{}, errBadAuthorization
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
