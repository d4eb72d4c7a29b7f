// SPDX-License-Identifier: MIT

// A container's definition: what a client may set, what the server fills in, and what it
// echoes. Every property is kept, and the known ones are checked.

package catalog

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/value"
)

const (
	maxNameChars      = 255
	maxUniqueKeys     = 10
	maxUniqueKeyPaths = 16

	defaultConflictPolicy = `{"mode":"LastWriterWins","conflictResolutionPath":"/_ts","conflictResolutionProcedure":""}`
	defaultGeospatial     = `{"type":"Geography"}`
	defaultUniqueKeys     = `{"uniqueKeys":[]}`
)

// Definition is a container's definition, checked and completed.
type Definition struct {
	PartitionKey PartitionKeyDefinition
	DefaultTTL   TTL
	// TTLFinality is Mayfly's own: an expired item stays gone if the container's default
	// TTL changes.
	TTLFinality bool
	// ExpireAtPath is Mayfly's own: the value there is an item's deadline, and wins over
	// any TTL. Nil is none.
	ExpireAtPath value.Path
	// ExpireAtPast is Mayfly's own: an item whose deadline has passed is written, and
	// expires at once. Otherwise it is refused.
	ExpireAtPast bool
	// SlidingPercent is Mayfly's own: a read of an item that has used up so many percent of
	// its life restarts its countdown. Zero means that no read does.
	SlidingPercent int
	// SlidingInFeed is Mayfly's own: the change feed shows that a countdown was restarted.
	SlidingInFeed bool
	// EraseWithin is Mayfly's own: the time in which the bytes of deleted items leave the
	// disk; 0 for the server's, negative for any time.
	EraseWithin time.Duration
	// UndeleteGrace is Mayfly's own: how long after their deadlines items are not purged, so
	// that they can be undeleted.
	UndeleteGrace time.Duration
	// AllVersions is how long the change feed keeps all versions and deletes; 0 means not
	// at all.
	AllVersions  time.Duration
	IndexingMode string
	Index        IndexPaths
	UniqueKeys   [][]value.Path
	Composites   [][]CompositePath
	// IndexedComposites are the composite indexes that have rows.
	IndexedComposites [][]CompositePath
	Special           SpecialIndexes
	// Planar says that coordinates are on a plane, and not on the globe.
	Planar   bool
	Computed []ComputedProperty
	Vectors  []VectorPath

	id      string
	members []member
	wasLazy bool // the indexing mode was "lazy"
}

type member struct {
	name string
	raw  []byte
}

// serverOwned are the properties that the server adds; those of a client are ignored.
var serverOwned = []string{"_rid", "_ts", "_self", "_etag", "_docs", "_sprocs", "_triggers", "_udfs", "_conflicts"}

// immutable are the properties that a replace may not change, beside the partition key. A
// replace that leaves one out keeps it, except where again is set: that one must be sent.
var immutable = []struct {
	name, refusal string
	again         bool
}{
	{"uniqueKeyPolicy", "Unique keys can only be set when a container is created: 'uniqueKeyPolicy' cannot be changed as part of collection replace operation.", false},
	{"conflictResolutionPolicy", "Updating conflict resolution policy is currently not supported", false},
	{"clientEncryptionPolicy", "'clientEncryptionPolicy' cannot be changed as part of collection replace operation.", true},
}

// ParseDefinition checks the body of a create or replace and fills in what is missing.
func ParseDefinition(body []byte) (*Definition, error) {
	o, err := value.ParseObject(body)
	if err != nil {
		return nil, invalid("The input content is invalid because it is not a well-formed JSON object: %v.", err)
	}
	d := &Definition{}
	if d.id, err = parseName(o); err != nil {
		return nil, err
	}
	for _, parse := range []func(*value.Object) error{
		d.parseIndexing, d.parsePartitionKey, d.parseUniqueKeys, d.parseConflictResolution,
		d.parseGeospatial, d.parseComputed, d.parseVectors, d.parseTTL, d.parseFinality, d.parseExpireAt, d.parseSliding, d.parseErasure, d.parseChangeFeed, d.parseGrace, d.checkOtherTypes,
	} {
		if err := parse(o); err != nil {
			return nil, err
		}
	}
	d.indexComposites()
	for _, m := range o.Members() {
		if m.Name != "id" && m.Name != "defaultTtl" && !slices.Contains(serverOwned, m.Name) && d.raw(m.Name) == nil {
			d.add(m.Name, m.Raw)
		}
	}
	return d, nil
}

// raw returns the text of a property as it will be echoed; nil if it is missing.
func (d *Definition) raw(name string) []byte {
	for _, m := range d.members {
		if m.name == name {
			return m.raw
		}
	}
	return nil
}

// object returns a property that is an object; nil if it is missing.
func (d *Definition) object(name string) (*value.Object, error) {
	raw := notNull(d.raw(name))
	if raw == nil {
		return nil, nil
	}
	return asObject(name, raw)
}

func (d *Definition) add(name string, raw []byte) {
	d.members = append(d.members, member{name, raw})
}

// parseName parses the id of a database or a container.
func parseName(o *value.Object) (string, error) {
	raw, ok := o.Lookup("id")
	if absent(raw, ok) {
		return "", invalid("The input content is invalid because the required properties - 'id; ' - are missing")
	}
	name, err := asString("id", raw)
	if err != nil {
		return "", err
	}
	n := utf8.RuneCountInString(name)
	if n == 0 || n > maxNameChars {
		return "", invalid("The input name '%s' is invalid. Ensure to provide a unique non-empty string less than '255' characters.", value.Clip(name))
	}
	if strings.ContainsAny(name, "/\\?#") || strings.HasSuffix(name, " ") {
		return "", invalid("The input name '%s' is invalid: it must not contain '/', '\\', '?' or '#', nor end with a space. Ensure to provide a unique non-empty string less than '255' characters.", name)
	}
	return name, nil
}

func (d *Definition) parsePartitionKey(o *value.Object) error {
	raw, ok := o.Lookup("partitionKey")
	if absent(raw, ok) {
		return invalid("The input content is invalid because the required properties - 'partitionKey; ' - are missing")
	}
	var err error
	if d.PartitionKey, err = parsePartitionKey(raw); err != nil {
		return err
	}
	// The kind is filled in as the service does. A missing version stays missing, since
	// it means version 1 to SDKs.
	k, err := value.ParseObject(raw)
	if err != nil {
		return err
	}
	out := k.AppendMembers([]byte("{"), func(name string) bool { return name == "kind" || name == "version" })
	out = append(out, `,"kind":"`+d.PartitionKey.Kind+`"`...)
	if version, ok := k.Lookup("version"); !absent(version, ok) || d.PartitionKey.Version == 2 {
		out = append(out, `,"version":`...)
		out = append(out, byte('0'+d.PartitionKey.Version))
	}
	d.add("partitionKey", append(out, '}'))
	return nil
}

func (d *Definition) parseUniqueKeys(o *value.Object) error {
	raw, ok := o.Lookup("uniqueKeyPolicy")
	if absent(raw, ok) {
		d.add("uniqueKeyPolicy", []byte(defaultUniqueKeys))
		return nil
	}
	policy, err := asObject("uniqueKeyPolicy", raw)
	if err != nil {
		return err
	}
	d.add("uniqueKeyPolicy", raw)
	list, ok := policy.Lookup("uniqueKeys")
	if absent(list, ok) {
		return nil
	}
	keys, err := asArray("uniqueKeyPolicy.uniqueKeys", list)
	if err != nil {
		return err
	}
	if len(keys) > maxUniqueKeys {
		return invalid("The unique key policy has %d keys, more than the %d that are allowed.", len(keys), maxUniqueKeys)
	}
	for _, raw := range keys {
		paths, err := parseUniqueKey(raw)
		if err != nil {
			return err
		}
		d.UniqueKeys = append(d.UniqueKeys, paths)
	}
	return nil
}

func parseUniqueKey(raw []byte) ([]value.Path, error) {
	key, err := asObject("uniqueKeyPolicy.uniqueKeys[]", raw)
	if err != nil {
		return nil, err
	}
	list, _ := key.Lookup("paths")
	texts, err := asArray("uniqueKeyPolicy.uniqueKeys[].paths", list)
	if err != nil {
		return nil, err
	}
	if len(texts) == 0 || len(texts) > maxUniqueKeyPaths {
		return nil, invalid("A unique key must have 1 to %d paths, and this one has %d.", maxUniqueKeyPaths, len(texts))
	}
	var paths []value.Path
	for _, raw := range texts {
		text, err := asString("uniqueKeyPolicy.uniqueKeys[].paths[]", raw)
		if err != nil {
			return nil, err
		}
		p, err := value.ParsePath(text)
		if err != nil {
			return nil, invalid("The unique key path '%s' is invalid. A path starts with '/' and has no trailing slash or wildcard character.", value.Clip(text))
		}
		paths = append(paths, p)
	}
	return paths, nil
}

func (d *Definition) parseConflictResolution(o *value.Object) error {
	raw, ok := o.Lookup("conflictResolutionPolicy")
	if absent(raw, ok) {
		d.add("conflictResolutionPolicy", []byte(defaultConflictPolicy))
		return nil
	}
	policy, err := asObject("conflictResolutionPolicy", raw)
	if err != nil {
		return err
	}
	text := func(name string) string {
		raw, ok := policy.Lookup(name)
		if absent(raw, ok) {
			return ""
		}
		s, badErr := asString("conflictResolutionPolicy."+name, raw)
		err = errors.Join(err, badErr)
		return s
	}
	mode, path, procedure := text("mode"), text("conflictResolutionPath"), text("conflictResolutionProcedure")
	if err != nil {
		return err
	}
	switch {
	case mode != "" && mode != "LastWriterWins" && mode != "Custom":
		return invalid("The conflict resolution mode '%s' is invalid. Ensure to provide 'LastWriterWins' or 'Custom'.", value.Clip(mode))
	case mode != "Custom" && procedure != "":
		return invalid("LastWriterWins conflict resolution mode should not have conflict resolution procedure set.")
	case mode == "Custom" && path != "":
		return invalid("Custom conflict resolution mode should not have conflict resolution path set.")
	case path != "":
		if p, err := value.ParsePath(path); err != nil || len(p) != 1 {
			return invalid("Invalid path '%s' for last writer wins conflict resolution", value.Clip(path))
		}
	}
	d.add("conflictResolutionPolicy", conflictPolicy(mode, path, procedure))
	return nil
}

// conflictPolicy writes a policy as the service does, with all members. SDKs omit empty
// members when they send back what they have read, and that must not count as a change.
func conflictPolicy(mode, path, procedure string) []byte {
	if mode == "" {
		mode = "LastWriterWins"
	}
	if mode == "LastWriterWins" && path == "" {
		path = "/_ts"
	}
	raw := value.AppendString([]byte(`{"mode":`), mode)
	raw = value.AppendString(append(raw, `,"conflictResolutionPath":`...), path)
	raw = value.AppendString(append(raw, `,"conflictResolutionProcedure":`...), procedure)
	return append(raw, '}')
}

func (d *Definition) parseGeospatial(o *value.Object) error {
	raw, ok := o.Lookup("geospatialConfig")
	if absent(raw, ok) {
		d.add("geospatialConfig", []byte(defaultGeospatial))
		return nil
	}
	config, err := asObject("geospatialConfig", raw)
	if err != nil {
		return err
	}
	kind, _ := config.Lookup("type")
	if text, err := asString("geospatialConfig.type", kind); err != nil || (text != "Geography" && text != "Geometry") {
		return invalid("The geospatial type is invalid. Ensure to provide 'Geography' or 'Geometry'.")
	}
	d.Planar = string(kind) == `"Geometry"`
	d.add("geospatialConfig", raw)
	return nil
}

func (d *Definition) parseTTL(o *value.Object) error {
	raw, ok := o.Lookup("defaultTtl")
	if !absent(raw, ok) {
		if d.DefaultTTL, ok = ParseTTL(raw); !ok {
			return invalid("The input defaultTtl '%s' is invalid. %s", value.Clip(string(raw)), TTLRule)
		}
		if d.IndexingMode == IndexingNone {
			return invalid("Indexing mode value cannot be 'none' when 'defaultTtl' is specified in the collection")
		}
		d.add("defaultTtl", raw)
	}
	path, ok := o.Lookup("ttlPropertyPath")
	if absent(path, ok) {
		return nil
	}
	text, err := asString("ttlPropertyPath", path)
	if err != nil {
		return err
	}
	if _, err := value.ParsePath(text); err != nil {
		return invalid("The input ttlPropertyPath '%s' is invalid. A path starts with '/' and has no trailing slash or wildcard character.", value.Clip(text))
	}
	if d.DefaultTTL == TTLAbsent {
		return invalid("The property 'ttlPropertyPath' can only be set together with 'defaultTtl'.")
	}
	return nil
}

func (d *Definition) parseFinality(o *value.Object) error {
	raw, ok := o.Lookup("ttlFinality")
	if absent(raw, ok) {
		return nil
	}
	var err error
	if d.TTLFinality, err = asBool("ttlFinality", raw); err != nil {
		return invalid("One of the specified inputs is invalid: 'ttlFinality' must be a boolean.")
	}
	return nil
}

func (d *Definition) parseExpireAt(o *value.Object) error {
	past, ok := o.Lookup("expireAtPast")
	if !absent(past, ok) {
		text, err := asString("expireAtPast", past)
		if err != nil {
			return err
		}
		if text != "accept" && text != "reject" {
			return invalid("The input expireAtPast '%s' is invalid. Ensure to provide 'accept' or 'reject'.", value.Clip(text))
		}
		d.ExpireAtPast = text == "accept"
	}
	raw, ok := o.Lookup("expireAtPath")
	if absent(raw, ok) {
		if past != nil && !absent(past, true) {
			return invalid("The property 'expireAtPast' can only be set together with 'expireAtPath'.")
		}
		return nil
	}
	text, err := asString("expireAtPath", raw)
	if err != nil {
		return err
	}
	path, err := value.ParsePath(text)
	if err != nil {
		return invalid("The input expireAtPath '%s' is invalid. A path starts with '/' and has no trailing slash or wildcard character.", value.Clip(text))
	}
	if path[0] == "id" || path[0] == "ttl" || SystemProperty(path[0]) {
		return invalid("The input expireAtPath '%s' is invalid: the property '%s' has another meaning.", value.Clip(text), path[0])
	}
	if d.DefaultTTL == TTLAbsent {
		return invalid("The property 'expireAtPath' can only be set together with 'defaultTtl'.")
	}
	d.ExpireAtPath = path
	return nil
}

// MaxSlidingPercent is the largest share of an item's life after which a read restarts its
// countdown. An item that has used up all of its life has expired.
const MaxSlidingPercent = 99

func (d *Definition) parseSliding(o *value.Object) error {
	raw, ok := o.Lookup("slidingTtlPercent")
	if !absent(raw, ok) {
		var err error
		if d.SlidingPercent, err = asInt("slidingTtlPercent", raw, 1, MaxSlidingPercent); err != nil {
			return invalid("The input slidingTtlPercent '%s' is invalid. Ensure to provide an integer from 1 to %d.", value.Clip(string(raw)), MaxSlidingPercent)
		}
		if d.DefaultTTL == TTLAbsent {
			return invalid("The property 'slidingTtlPercent' can only be set together with 'defaultTtl'.")
		}
	}
	raw, ok = o.Lookup("slidingTtlInChangeFeed")
	if absent(raw, ok) {
		return nil
	}
	var err error
	if d.SlidingInFeed, err = asBool("slidingTtlInChangeFeed", raw); err != nil {
		return invalid("One of the specified inputs is invalid: 'slidingTtlInChangeFeed' must be a boolean.")
	}
	return nil
}

// Limits of eraseWithin, in seconds.
const (
	minEraseSeconds = 10
	maxEraseSeconds = math.MaxInt32
)

func (d *Definition) parseErasure(o *value.Object) error {
	raw, ok := o.Lookup("eraseWithin")
	if absent(raw, ok) {
		return nil
	}
	seconds, err := asInt("eraseWithin", raw, -1, maxEraseSeconds)
	if err != nil || seconds >= 0 && seconds < minEraseSeconds {
		return invalid("The input eraseWithin '%s' is invalid. Ensure to provide a number of seconds from %d to %d, or -1 for any time.",
			value.Clip(string(raw)), minEraseSeconds, maxEraseSeconds)
	}
	d.EraseWithin = time.Duration(seconds) * time.Second
	return nil
}

// parseGrace parses the grace, after all settings that it depends on.
func (d *Definition) parseGrace(o *value.Object) error {
	raw, ok := o.Lookup("undeleteGraceSeconds")
	if absent(raw, ok) {
		return nil
	}
	seconds, err := asInt("undeleteGraceSeconds", raw, 1, MaxTTL)
	switch {
	case err != nil:
		return err
	case d.DefaultTTL == TTLAbsent:
		return invalid("The property 'undeleteGraceSeconds' can only be set together with 'defaultTtl'.")
	case d.Final():
		return invalid("The property 'undeleteGraceSeconds' cannot be set together with 'ttlFinality' or a change feed of all versions: there, expired items stay expired.")
	}
	d.UndeleteGrace = time.Duration(seconds) * time.Second
	return nil
}

// checkOtherTypes checks only the types of properties that are kept and echoed, and have
// no other meaning here.
func (d *Definition) checkOtherTypes(o *value.Object) error {
	for _, p := range []struct {
		name  string
		check func(what string, raw []byte) error
	}{
		{"computedProperties", func(what string, raw []byte) error { _, err := asArray(what, raw); return err }},
		{"vectorEmbeddingPolicy", checkObject},
		{"fullTextPolicy", checkObject},
		{"clientEncryptionPolicy", checkObject},
		{"analyticalStorageTtl", func(what string, raw []byte) error { _, err := asInt(what, raw, -1, 1<<31-1); return err }},
	} {
		if raw, ok := o.Lookup(p.name); !absent(raw, ok) {
			if err := p.check(p.name, raw); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkObject(what string, raw []byte) error {
	_, err := asObject(what, raw)
	return err
}

// replaces checks that d may replace old, and copies from old what d leaves out and may
// not change.
func (d *Definition) replaces(old *Definition) error {
	if d.id != old.id {
		return invalid("The id of a container cannot be changed: it is '%s', not '%s'.", old.id, value.Clip(d.id))
	}
	if !d.PartitionKey.equal(&old.PartitionKey) {
		return invalid("Partition key definition cannot be changed as part of collection replace operation: it is %s.", old.raw("partitionKey"))
	}
	for _, p := range immutable {
		was, is := notNull(old.raw(p.name)), notNull(d.raw(p.name))
		switch {
		case was == nil && is == nil, sameJSON(was, is):
		case is == nil && !p.again, isDefault(p.name, is):
			d.keep(p.name, was)
		default:
			return invalid("%s", p.refusal)
		}
	}
	if len(d.UniqueKeys) == 0 {
		d.UniqueKeys = old.UniqueKeys
	}
	return d.replacesVectors(old)
}

// notNull returns the text of a property; nil if it is null, which means absent.
func notNull(raw []byte) []byte {
	if absent(raw, raw != nil) {
		return nil
	}
	return raw
}

// sameJSON reports whether two texts mean the same: clients change the order and white
// space of what they send back.
func sameJSON(a, b []byte) bool {
	var x, y any
	return a != nil && b != nil && json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// isDefault reports whether a property has the value that the server fills in.
func isDefault(name string, raw []byte) bool {
	return name == "uniqueKeyPolicy" && string(raw) == defaultUniqueKeys ||
		name == "conflictResolutionPolicy" && string(raw) == defaultConflictPolicy
}

func (d *Definition) keep(name string, raw []byte) {
	for i := range d.members {
		if d.members[i].name == name {
			d.members[i].raw = raw
			return
		}
	}
	d.add(name, raw)
}
