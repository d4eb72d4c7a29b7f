// SPDX-License-Identifier: MIT

// Package index says what an item is found by: how scalars, composites, texts, vectors and
// geometries become entries, and how ranges over entries are spelled. The store makes a
// row of each entry and an ordinal; this package knows nothing of rows.
package index
