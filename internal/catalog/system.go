// SPDX-License-Identifier: MIT

package catalog

import "slices"

// systemProperties are the properties at the root of an item that the server writes. A
// client's are dropped, no index has them, and no patch changes them.
var systemProperties = []string{"_rid", "_self", "_etag", "_attachments", "_ts"}

// SystemProperty reports whether the server writes a property at the root of an item.
func SystemProperty(name string) bool {
	return len(name) > 0 && name[0] == '_' && slices.Contains(systemProperties, name)
}

// SystemProperties returns the names of all system properties. The caller must not change
// them.
func SystemProperties() []string { return systemProperties }
