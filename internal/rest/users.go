// SPDX-License-Identifier: MIT

// Users, permissions and client encryption keys.

package rest

import (
	"net/http"
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/value"
)

func (x *exchange) serveUsers(rt *route) error {
	switch method := x.r.Method; {
	case rt.feed && method == http.MethodGet:
		return x.listUsers(rt)
	case rt.feed && method == http.MethodPost && x.isQuery():
		d, all, err := x.h.engine.Users(rt.database)
		if err != nil {
			return err
		}
		return x.queryResources(d.RID.String(), "Users", bodiesOf(all, func(u *catalog.User) []byte { return u.Body }))
	case rt.feed && method == http.MethodPost, !rt.feed && method == http.MethodPut:
		return x.writeUser(rt)
	case !rt.feed && method == http.MethodGet:
		u, err := x.h.engine.User(rt.database, rt.id)
		if err != nil {
			return err
		}
		x.writeIfModified(u.ETag, u.Body)
		return nil
	case !rt.feed && method == http.MethodDelete:
		if err := x.h.engine.DeleteUser(x.r.Context(), rt.database, rt.id, x.header("If-Match")); err != nil {
			return err
		}
		x.writeEmpty(http.StatusNoContent)
		return nil
	}
	return errMethod
}

func (x *exchange) listUsers(rt *route) error {
	d, all, err := x.h.engine.Users(rt.database)
	if err != nil {
		return err
	}
	return x.writeFeed(&feed{
		owner: d.RID.String(), kind: "Users", n: len(all),
		resource: func(i int) (rid string, body []byte) { return all[i].RID, all[i].Body },
		after:    func(rid string) (int, bool) { return catalog.FirstResourceAfter(all, rid) },
	})
}

func (x *exchange) writeUser(rt *route) error {
	w, err := x.resourceWrite(rt)
	if err != nil {
		return err
	}
	u, created, err := x.h.engine.WriteUser(x.r.Context(), rt.database, w)
	if err != nil {
		return err
	}
	x.writeResource(writeStatus[created], u.ETag, u.Body)
	return nil
}

// resourceWrite reads a request to write a user, a permission or a key.
func (x *exchange) resourceWrite(rt *route) (w catalog.ResourceWrite, err error) {
	w = catalog.ResourceWrite{Target: rt.id, IfMatch: x.header("If-Match")}
	switch {
	case !rt.feed:
		w.Mode = catalog.ReplaceResource
	case x.flag("X-Ms-Documentdb-Is-Upsert"):
		w.Mode = catalog.UpsertResource
	}
	w.Body, err = x.body()
	return w, err
}

// writeStatus is the status of a write, by whether something was created.
var writeStatus = map[bool]int{true: http.StatusCreated, false: http.StatusOK}

func bodiesOf[T any](all []T, body func(T) []byte) [][]byte {
	bodies := make([][]byte, 0, len(all))
	for _, r := range all {
		bodies = append(bodies, body(r))
	}
	return bodies
}

func (x *exchange) servePermissions(rt *route) error {
	expiry, err := x.tokenExpiry()
	if err != nil {
		return err
	}
	switch method := x.r.Method; {
	case rt.feed && method == http.MethodGet:
		return x.listPermissions(rt, expiry)
	case rt.feed && method == http.MethodPost && x.isQuery():
		u, err := x.h.engine.User(rt.database, rt.user)
		if err != nil {
			return err
		}
		return x.queryResources(u.RID, "Permissions", bodiesOf(u.Permissions(), func(p *catalog.Permission) []byte { return x.withToken(p, expiry) }))
	case rt.feed && method == http.MethodPost, !rt.feed && method == http.MethodPut:
		return x.writePermission(rt, expiry)
	case !rt.feed && method == http.MethodGet:
		p, err := x.h.engine.Permission(rt.database, rt.user, rt.id)
		if err != nil {
			return err
		}
		x.writeIfModified(p.ETag, x.withToken(p, expiry))
		return nil
	case !rt.feed && method == http.MethodDelete:
		if err := x.h.engine.DeletePermission(x.r.Context(), rt.database, rt.user, rt.id, x.header("If-Match")); err != nil {
			return err
		}
		x.writeEmpty(http.StatusNoContent)
		return nil
	}
	return errMethod
}

func (x *exchange) listPermissions(rt *route, expiry time.Time) error {
	u, err := x.h.engine.User(rt.database, rt.user)
	if err != nil {
		return err
	}
	all := u.Permissions()
	return x.writeFeed(&feed{
		owner: u.RID, kind: "Permissions", n: len(all),
		resource: func(i int) (rid string, body []byte) { return all[i].RID, x.withToken(all[i], expiry) },
		after:    func(rid string) (int, bool) { return catalog.FirstResourceAfter(all, rid) },
	})
}

func (x *exchange) writePermission(rt *route, expiry time.Time) error {
	w, err := x.resourceWrite(rt)
	if err != nil {
		return err
	}
	p, created, err := x.h.engine.WritePermission(x.r.Context(), rt.database, rt.user, w)
	if err != nil {
		return err
	}
	x.writeResource(writeStatus[created], p.ETag, x.withToken(p, expiry))
	return nil
}

// withToken returns the response for a permission, with a token that is new.
func (x *exchange) withToken(p *catalog.Permission, expiry time.Time) []byte {
	body := append([]byte(nil), p.Body[:len(p.Body)-len("}")]...)
	body = value.AppendString(append(body, `,"_token":`...), x.h.newToken(p, expiry))
	return append(body, '}')
}

// How long a token is good for, in seconds: what the service takes.
const (
	defaultTokenSeconds = 3600
	minTokenSeconds     = 10
	maxTokenSeconds     = 24 * 3600
)

// tokenExpiry returns when the tokens of this request's answer expire, by the wall
// clock.
func (x *exchange) tokenExpiry() (time.Time, error) {
	seconds := defaultTokenSeconds
	if text := x.header("X-Ms-Documentdb-Expiry-Seconds"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < minTokenSeconds || n > maxTokenSeconds {
			return time.Time{}, &badRequestError{"The value '" + value.Clip(text) + "' of the header x-ms-documentdb-expiry-seconds is invalid. Ensure to provide an integer from " +
				strconv.Itoa(minTokenSeconds) + " to " + strconv.Itoa(maxTokenSeconds) + "."}
		}
		seconds = n
	}
	return time.Now().Add(time.Duration(seconds) * time.Second), nil
}

func (x *exchange) serveEncryptionKeys(rt *route) error {
	switch method := x.r.Method; {
	case rt.feed && method == http.MethodGet:
		return x.listEncryptionKeys(rt)
	case rt.feed && method == http.MethodPost && x.isQuery():
		d, all, err := x.h.engine.EncryptionKeys(rt.database)
		if err != nil {
			return err
		}
		return x.queryResources(d.RID.String(), "ClientEncryptionKeys", bodiesOf(all, func(k *catalog.EncryptionKey) []byte { return k.Body }))
	case rt.feed && method == http.MethodPost, !rt.feed && method == http.MethodPut:
		return x.writeEncryptionKey(rt)
	case !rt.feed && method == http.MethodGet:
		k, err := x.h.engine.EncryptionKey(rt.database, rt.id)
		if err != nil {
			return err
		}
		x.writeIfModified(k.ETag, k.Body)
		return nil
	}
	return errMethod
}

func (x *exchange) listEncryptionKeys(rt *route) error {
	d, all, err := x.h.engine.EncryptionKeys(rt.database)
	if err != nil {
		return err
	}
	return x.writeFeed(&feed{
		owner: d.RID.String(), kind: "ClientEncryptionKeys", n: len(all),
		resource: func(i int) (rid string, body []byte) { return all[i].RID, all[i].Body },
		after:    func(rid string) (int, bool) { return catalog.FirstResourceAfter(all, rid) },
	})
}

func (x *exchange) writeEncryptionKey(rt *route) error {
	w, err := x.resourceWrite(rt)
	if err != nil {
		return err
	}
	k, created, err := x.h.engine.WriteEncryptionKey(x.r.Context(), rt.database, w)
	if err != nil {
		return err
	}
	x.writeResource(writeStatus[created], k.ETag, k.Body)
	return nil
}
