// SPDX-License-Identifier: MIT

// The parameters of the pages under /_mayfly/ttl/, all in the query of the URL. Unknown
// ones are refused: an operator who mistypes a container's parameter must not get an
// answer, or a purge, for all containers.

package rest

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	paramContainer = "container"
	paramCount     = "count"
	paramCursor    = "cursor"
	paramDatabase  = "database"
	paramFollow    = "follow"
	paramFrom      = "from"
	paramID        = "id"
	paramInterval  = "interval"
	paramKey       = "partitionKey"
	paramRate      = "itemsPerSecond"
	paramTTL       = "ttl"
)

// defaultIntervals is how many intervals a forecast has, and defaultUndeletable how many items
// a list of expired ones, if nothing else is asked for.
const (
	defaultIntervals   = 24
	defaultUndeletable = 100
)

// params are the parameters of one request.
type params map[string]string

// parseParams parses a query. Each of its parameters must be allowed, and given once.
func parseParams(query string, allowed ...string) (params, error) {
	all, err := url.ParseQuery(query)
	if err != nil {
		return nil, badRequestf("The query of the URL cannot be parsed: %v.", err)
	}
	p := params{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch {
		case !slices.Contains(allowed, name):
			return nil, badRequestf("There is no parameter '%s' here. Allowed are: %s.", value.Clip(name), strings.Join(allowed, ", "))
		case len(all[name]) > 1:
			return nil, badRequestf("The parameter '%s' is given more than once.", name)
		case !utf8.ValidString(all[name][0]):
			return nil, badRequestf("The parameter '%s' is not UTF-8.", name)
		}
		p[name] = all[name][0]
	}
	return p, nil
}

func badRequestf(format string, args ...any) error {
	return api.Invalid(fmt.Sprintf(format, args...))
}

// containerName names a container; without its own name, those of a database, and without
// both names all containers.
type containerName struct {
	database, container string
}

// container returns the name of one container, of a database, or an empty one for all if
// none is given. An empty parameter is refused: it is probably an unset variable of a
// script, and does not mean all.
func (p params) container(about scope) (containerName, error) {
	database, given1 := p[paramDatabase]
	container, given2 := p[paramContainer]
	if !given1 && !given2 {
		return containerName{}, nil
	}
	if about == ofAnyOfThese && !given2 && database != "" {
		return containerName{database: database}, nil
	}
	if database == "" || container == "" {
		return containerName{}, badRequestf("Name the container with both database and container, or give neither for all of them.")
	}
	return containerName{database, container}, nil
}

// ttl parses a default TTL.
func (p params) ttl() (catalog.TTL, error) {
	text := p[paramTTL]
	switch text {
	case "off":
		return catalog.TTLAbsent, nil
	case "-1":
		return catalog.TTLForever, nil
	}
	d, err := clock.ParseDuration(text)
	if err != nil || d < time.Second || d%time.Second != 0 || d/time.Second > catalog.MaxTTL {
		return 0, badRequestf("The parameter ttl must be %s, from 1 to %d whole seconds, -1 for a TTL that never ends, or off, not '%s'.",
			clock.DurationRule, catalog.MaxTTL, value.Clip(text))
	}
	return catalog.TTL(d / time.Second), nil
}

// interval parses how long the intervals of a forecast are; 0 if it is not given.
func (p params) interval() (time.Duration, error) {
	text, given := p[paramInterval]
	if !given {
		return 0, nil
	}
	d, err := clock.ParseDuration(text)
	if err != nil || d < engine.MinForecastInterval || d > engine.MaxForecastInterval {
		return 0, badRequestf("The parameter interval must be %s, from %v up to 366d, not '%s'.", clock.DurationRule, engine.MinForecastInterval, value.Clip(text))
	}
	return d, nil
}

func (p params) count() (int, error) {
	return p.number(paramCount, defaultIntervals, engine.MaxForecastIntervals)
}

// number parses a whole number from 1 on.
func (p params) number(name string, absent, most int) (int, error) {
	text, given := p[name]
	if !given {
		return absent, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, badRequestf("The parameter %s must be a whole number from 1 to %d, not '%s'.", name, most, value.Clip(text))
	}
	return n, nil
}

// partitionKey parses a partition key as in the protocol's header. A text that is no
// array is one string.
func (p params) partitionKey() (value.PartitionKey, error) {
	text, given := p[paramKey]
	if !given {
		return nil, badRequestf(`Give the item's partition key in the parameter partitionKey, as JSON array such as ["ada"] or as plain text.`)
	}
	if !strings.HasPrefix(strings.TrimSpace(text), "[") {
		text = "[" + string(value.AppendString(nil, text)) + "]"
	}
	k, err := value.ParsePartitionKey(text)
	if err != nil {
		return nil, badRequestf(`The parameter partitionKey must be a JSON array such as ["ada"] or ["ada",7], or plain text: %v.`, err)
	}
	return k, nil
}

func (p params) id() (string, error) {
	if p[paramID] == "" {
		return "", badRequestf("Name the item with the parameter id.")
	}
	return p[paramID], nil
}

func (p params) rate() (float64, error) {
	f, err := strconv.ParseFloat(p[paramRate], 64)
	if err != nil {
		return 0, badRequestf("The parameter itemsPerSecond must be a number, 0 for no limit, not '%s'.", value.Clip(p[paramRate]))
	}
	return f, nil
}

func (p params) follow() (bool, error) {
	switch text, given := p[paramFollow]; {
	case !given, text == "false":
		return false, nil
	case text == "true":
		return true, nil
	default:
		return false, badRequestf("The parameter follow must be true or false, not '%s'.", value.Clip(text))
	}
}

// start parses where to begin reading events.
func (p params) start() (engine.EventStart, error) {
	cursor, given := p[paramCursor]
	from, named := p[paramFrom]
	switch {
	case given && named:
		return engine.EventStart{}, badRequestf("Give either cursor or from.")
	case given && cursor == "":
		return engine.EventStart{}, badRequestf("The parameter cursor is empty. Give one that a page of events ended with, or from=now or from=kept.")
	case given:
		return engine.EventStart{Cursor: cursor}, nil
	case from == "now":
		return engine.EventStart{Now: true}, nil
	case !named, from == "kept":
		return engine.EventStart{}, nil
	}
	return engine.EventStart{}, badRequestf("The parameter from must be now or kept, not '%s'.", value.Clip(from))
}
