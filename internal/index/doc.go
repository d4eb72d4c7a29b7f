// SPDX-License-Identifier: MIT

// Package index encodes the index entries of an item, which scalars, composites, texts,
// vectors and geometries become, and ranges of entries. The store makes an index row of
// each entry and the item's ordinal; this package does not know the keys of rows.
package index
