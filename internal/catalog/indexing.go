// SPDX-License-Identifier: MIT

// The indexing policy of a container, checked and completed.

package catalog

import (
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

// The indexing modes.
const (
	IndexingConsistent = "consistent"
	IndexingNone       = "none"
	// indexingLazy is an old mode that clients may still send. It becomes consistent, as
	// in the service since 2020.
	indexingLazy = "lazy"
)

const (
	rootPath = "/*"
	etagPath = `/"_etag"/?`
	// plainEtagPath is the same path, as the documentation writes it.
	plainEtagPath = "/_etag/?"

	maxIndexPaths       = 1000
	maxCompositeIndexes = 100
	minCompositePaths   = 2
	maxCompositePaths   = 8
)

// parseIndexing checks the policy and adds it as the service returns it: mode in lower
// case, defaults filled in, and the legacy "indexes" of paths dropped, unless the
// container was made without a partition key.
func (d *Definition) parseIndexing(o *value.Object) error {
	d.IndexingMode = IndexingConsistent
	raw, ok := o.Lookup("indexingPolicy")
	if absent(raw, ok) {
		raw = []byte("{}")
	}
	policy, err := asObject("indexingPolicy", raw)
	if err != nil {
		return err
	}
	if raw, ok := policy.Lookup("indexingMode"); !absent(raw, ok) {
		mode, err := asString("indexingPolicy.indexingMode", raw)
		if err != nil {
			return err
		}
		switch d.IndexingMode = strings.ToLower(mode); d.IndexingMode {
		case IndexingConsistent, IndexingNone:
		case indexingLazy:
			d.IndexingMode, d.wasLazy = IndexingConsistent, true
		default:
			return invalid("The indexing mode '%s' is invalid. Ensure to provide 'consistent', 'lazy' or 'none'.", value.Clip(mode))
		}
	}
	included, excluded, err := d.indexedPaths(policy)
	if err != nil {
		return err
	}
	if d.IndexingMode != IndexingNone {
		if d.Index, err = compileIndexPaths(included, excluded); err != nil {
			return err
		}
	}
	automatic, err := d.automatic(policy)
	if err != nil {
		return err
	}
	out := []byte(`{"indexingMode":"` + d.IndexingMode + `","automatic":` + automatic + `,"includedPaths":`)
	legacy, err := legacyIndexes(o, policy)
	if err != nil {
		return err
	}
	out = appendPaths(out, included, legacy)
	out = appendPaths(append(out, `,"excludedPaths":`...), excluded, nil)
	if err := d.readComposites(policy); err != nil {
		return err
	}
	if err := checkSpecialIndexes(policy); err != nil {
		return err
	}
	if err := d.readSpecial(policy); err != nil {
		return err
	}
	rest := policy.AppendMembers(nil, func(name string) bool {
		return name == "indexingMode" || name == "automatic" || name == "includedPaths" || name == "excludedPaths"
	})
	if len(rest) > 0 {
		out = append(append(out, ','), rest...)
	}
	d.members = append([]member{{"indexingPolicy", append(out, '}')}}, d.members...)
	return nil
}

// automatic returns whether items are indexed when they are written: always, unless
// nothing is indexed. As in the service, a client that asks for the opposite gets no
// error, and sees the effective value in the policy.
func (d *Definition) automatic(policy *value.Object) (string, error) {
	on := d.IndexingMode != IndexingNone
	raw, ok := policy.Lookup("automatic")
	if absent(raw, ok) {
		return strconv.FormatBool(on), nil
	}
	asked, err := asBool("indexingPolicy.automatic", raw)
	if err == nil && asked && !on {
		err = invalid("The indexing policy is invalid: with indexing mode 'none', 'automatic' must be false.")
	}
	return strconv.FormatBool(on), err
}

// indexedPaths returns the included and excluded paths. It adds the root and the etag
// where the policy leaves them out.
func (d *Definition) indexedPaths(policy *value.Object) (included, excluded []string, err error) {
	if included, err = pathList(policy, "includedPaths"); err != nil {
		return nil, nil, err
	}
	if excluded, err = pathList(policy, "excludedPaths"); err != nil {
		return nil, nil, err
	}
	if d.IndexingMode == IndexingNone {
		if len(included) > 0 || len(excluded) > 0 && !(len(excluded) == 1 && isEtagPath(excluded[0])) {
			return nil, nil, invalid("The indexing policy is invalid: with indexing mode 'none' there can be no included or excluded paths.")
		}
		return nil, nil, nil
	}
	roots := 0
	for _, p := range append(append([]string(nil), included...), excluded...) {
		if p == rootPath {
			roots++
		}
	}
	switch {
	case roots > 1:
		return nil, nil, invalid("The special mandatory indexing path \"/*\" is given more than once: it must be either included or excluded.")
	case roots == 0 && len(included) > 0:
		return nil, nil, invalid("The special mandatory indexing path \"/*\" is not provided in any of the path type sets. Please provide this path in one of the sets.")
	case roots == 0:
		included = []string{rootPath}
	}
	for _, p := range append(append([]string(nil), included...), excluded...) {
		if isEtagPath(p) {
			return included, excluded, nil
		}
	}
	return included, append(excluded, etagPath), nil
}

func isEtagPath(p string) bool { return p == etagPath || p == plainEtagPath }

func pathList(policy *value.Object, name string) ([]string, error) {
	raw, _ := policy.Lookup(name)
	if list, _ := value.Elements(raw); len(list) > maxIndexPaths {
		return nil, invalid("The indexing policy has %d paths in '%s', more than the %d that are allowed.", len(list), name, maxIndexPaths)
	}
	var paths []string
	for o, err := range objects(policy, "indexingPolicy", name) {
		if err != nil {
			return nil, err
		}
		p, err := indexPath(name, o)
		if err != nil {
			return nil, err
		}
		paths = append(paths, p)
	}
	return paths, nil
}

// indexPath parses {"path":"/a/b/?"}.
func indexPath(name string, o *value.Object) (string, error) {
	raw, _ := o.Lookup("path")
	p, err := asString("indexingPolicy."+name+"[].path", raw)
	if err != nil {
		return "", err
	}
	if p == "/" { // old clients mean all paths
		return rootPath, nil
	}
	if err := checkIndexPath(p); err != nil {
		return "", err
	}
	return p, nil
}

// checkIndexPath accepts a property path with array steps ([]) that ends with "/?", "/*"
// or neither.
func checkIndexPath(p string) error {
	if _, err := parseIndexPath(p); err != nil {
		return invalid("The indexing path '%s' could not be accepted. A path starts with '/' and ends with '/?' or '/*'.", value.Clip(p))
	}
	return nil
}

// legacyIndexes returns the "indexes" of included paths, by path, for a container that
// was made without a partition key.
func legacyIndexes(o, policy *value.Object) (map[string][]byte, error) {
	system, _ := o.At(value.Path{"partitionKey", "systemKey"})
	if string(system) != "true" {
		return nil, nil
	}
	indexes := map[string][]byte{}
	for included, err := range objects(policy, "indexingPolicy", "includedPaths") {
		if err != nil {
			return nil, err
		}
		path, err := indexPath("includedPaths", included)
		if err != nil {
			return nil, err
		}
		if raw, ok := included.Lookup("indexes"); !absent(raw, ok) {
			indexes[path] = raw
		}
	}
	return indexes, nil
}

// appendPaths writes paths with their indexes.
func appendPaths(dst []byte, paths []string, indexes map[string][]byte) []byte {
	dst = append(dst, '[')
	for i, p := range paths {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = value.AppendString(append(dst, `{"path":`...), p)
		if raw := indexes[p]; raw != nil {
			dst = append(append(dst, `,"indexes":`...), raw...)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// checkSpecialIndexes checks spatial indexes. Of vector and full-text indexes it only
// checks that they are lists of paths.
func checkSpecialIndexes(policy *value.Object) error {
	for _, name := range []string{"spatialIndexes", "vectorIndexes", "fullTextIndexes"} {
		if _, err := pathList(policy, name); err != nil {
			return err
		}
	}
	for o, err := range objects(policy, "indexingPolicy", "spatialIndexes") {
		if err != nil {
			return err
		}
		path, _ := o.Lookup("path")
		types, ok := o.Lookup("types")
		if absent(types, ok) || string(types) == "[]" {
			return invalid("The spatial data types array cannot be empty. Assign at least one spatial type for the 'types' array for the path %s.", path)
		}
		if _, err := asArray("indexingPolicy.spatialIndexes[].types", types); err != nil {
			return err
		}
	}
	return nil
}
