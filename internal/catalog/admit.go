// SPDX-License-Identifier: MIT

// Checks of definitions that a client sends. They do not apply to definitions that are
// already stored: a container made before a rule existed must still open.

package catalog

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
)

// check checks the partition key paths, the spatial indexes, the vectors and the
// full-text policy of a definition from a client. It completes spatial indexes as the
// service does.
func (d *Definition) check() error {
	for _, check := range []func() error{d.checkKeyPaths, d.spellSpatial, d.checkEmbeddings, d.checkFullText} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkKeyPaths refuses white space, as the service does in any path without quotes.
func (d *Definition) checkKeyPaths() error {
	for _, p := range d.PartitionKey.Paths {
		if slices.ContainsFunc(p, func(name string) bool { return strings.ContainsFunc(name, unicode.IsSpace) }) &&
			!strings.Contains(string(d.raw("partitionKey")), `\"`) {
			return invalid("The partition key component definition path '/%s' could not be accepted. Partition key paths must contain only valid characters and not contain a trailing slash or wildcard character.", strings.Join(p, "/"))
		}
	}
	return nil
}

// spatialTypes are the types of every spatial index, whatever the client asked for.
const spatialTypes = `"types":["Point","LineString","Polygon","MultiPolygon"]`

// spellSpatial gives each spatial index of the policy all types. A plane has no bounds of
// its own, so its spatial indexes must give them; the globe has bounds, and accepts no
// others.
func (d *Definition) spellSpatial() error {
	policy, err := d.object("indexingPolicy")
	if err != nil {
		return err
	}
	var list [][]byte
	for index, err := range objects(policy, "indexingPolicy", "spatialIndexes") {
		if err != nil {
			return err
		}
		box, ok := index.Lookup("boundingBox")
		switch bounded := !absent(box, ok); {
		case d.Planar && !bounded:
			return invalid("A spatial index must have a boundingBox when the type of the geospatialConfig is Geometry.")
		case !d.Planar && bounded:
			return invalid("A spatial index must not have a boundingBox when the type of the geospatialConfig is Geography.")
		}
		// The path is always the first member, so a comma can follow.
		spelled := index.AppendMembers([]byte("{"), func(name string) bool { return name == "types" })
		list = append(list, append(spelled, ","+spatialTypes+"}"...))
	}
	if raw, ok := policy.Lookup("spatialIndexes"); absent(raw, ok) {
		return nil
	}
	out := policy.AppendMembers([]byte("{"), func(name string) bool { return name == "spatialIndexes" })
	out = append(append(out, `,"spatialIndexes":[`...), bytes.Join(list, []byte(","))...)
	d.keep("indexingPolicy", append(out, "]}"...))
	return nil
}

func containsFold(list []string, s string) bool {
	return slices.ContainsFunc(list, func(t string) bool { return strings.EqualFold(s, t) })
}
