// SPDX-License-Identifier: MIT

package rest

import (
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/value"
)

// namedHeaders are headers with a fixed set of values. The Python SDK writes indexing
// directives as numbers.
var namedHeaders = []struct {
	name   string
	values []string
}{
	{"X-Ms-Indexing-Directive", []string{"Default", "Include", "Exclude", "0", "1", "2"}},
	{"X-Ms-Documentdb-Content-Serialization-Format", []string{"JsonText", "CosmosBinary", "HybridRow"}},
}

// earlyVersions are the protocol versions before laterVersions. They are listed; later
// ones are not, so that a new client is never refused for its version.
var earlyVersions = []string{
	"2014-08-21", "2015-04-08", "2015-06-03", "2015-08-06", "2015-12-16", "2016-05-30", "2016-07-11", "2016-11-14",
	"2017-01-19", "2017-02-22", "2017-05-03", "2017-11-15",
}

// laterVersions is the date from which every date is accepted as a version.
const laterVersions = "2018-01-01"

// admitHeaders refuses values of headers that the service does not know.
func (x *exchange) admitHeaders() error {
	for _, h := range namedHeaders {
		text := headerOf(x.r, h.name)
		if text != "" && !slices.ContainsFunc(h.values, func(v string) bool { return strings.EqualFold(v, text) }) {
			return unknownValue(h.name, text)
		}
	}
	version := x.Request.Version
	if version == "" || slices.Contains(earlyVersions, version) {
		return nil
	}
	if _, err := time.Parse(time.DateOnly, version); err != nil || version < laterVersions {
		return unknownValue(headerVersion, version)
	}
	return nil
}

func unknownValue(name, text string) error {
	return api.Invalid("The value '" + value.Clip(text) + "' specified for the header '" + strings.ToLower(name) + "' is invalid.")
}
