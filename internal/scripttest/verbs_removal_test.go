// SPDX-License-Identifier: MIT

package scripttest

import "net/http"

// deleteKey deletes all items with a partition key.
//
//	delete-key pk="x"
//	----
//	200
//
// It takes what createItems says of containers and keys, and charge.
func deleteKey(s *script, d *directive) string {
	v, charge := d.view(), d.flag("charge")
	header, database, container := s.itemHeader(d), d.database(), d.container()
	header["X-Ms-Documentdb-Partitionkey"] = s.partitionKey(d, database, container, nil)
	a := s.send(d, request{
		method: http.MethodPost, path: append(containerPath(database, container), "operations", "partitionkeydelete"), header: header,
	})
	line := s.line(d, a, v)
	if charge {
		line = a.charge() + " RU, " + line
	}
	return line
}
