// SPDX-License-Identifier: MIT

package catalog

import "github.com/mayflydb/mayfly/internal/value"

const maxUsers = 10_000 // of one database

// User is a user at one moment: the owner of permissions. A user has no credential of its
// own.
type User struct {
	Resource
}

func parseUser(w *Write) (Any, error) {
	_, r, err := parseResource(w.Body, "id")
	return &User{r}, err
}

func decodeUser(row []byte) (Any, error) {
	var r resourceRecord
	err := decodeRecord(row, &r, &r.Version)
	return &User{r.resource()}, err
}

func (u *User) render(Any, Options) {
	b := value.AppendString([]byte(`{"id":`), u.ID)
	u.Body = append(u.appendSystem(b), `,"_permissions":"permissions/"}`...)
}
