// SPDX-License-Identifier: MIT

// The queries by which SDKs find an offer. They know the container or database
// that it is for, and ask in one of a few forms:
//
//	SELECT * FROM c
//	SELECT * FROM c WHERE c.offerResourceId = '<rid>'
//	SELECT * FROM root r WHERE r.resource=@link
//
// Nothing else is understood here.

package rest

import (
	"regexp"
	"strings"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxOfferQueryBytes is far beyond every query of these forms.
	maxOfferQueryBytes = 4 << 10
	// maxParameters bounds what is looked through for a name.
	maxParameters = 100
)

// offerQuery selects offers whose property has a value; all if there is no
// property.
type offerQuery struct {
	property, is string
	// nothing says that it is compared with what is no string, which none equals.
	nothing bool
}

func (q *offerQuery) selects(o *catalog.Offer) bool {
	switch {
	case q.nothing:
		return false
	case q.property == "resource":
		return o.Resource == q.is
	case q.property == "offerResourceId":
		return o.ResourceRID == q.is
	}
	return true
}

// offerQueryForm has as groups the source and its alias, and, with a condition, the
// name that it begins with, the property, and what it is compared with: a parameter
// or one of two kinds of string, without escapes. Keywords are of any case.
var offerQueryForm = regexp.MustCompile(`^\s*(?i:SELECT)\s*\*\s*(?i:FROM)\s+([A-Za-z_]\w*)(?:\s+(?:(?i:AS)\s+)?([A-Za-z_]\w*))??` +
	`(?:\s+(?i:WHERE)\s+([A-Za-z_]\w*)\s*\.\s*(resource|offerResourceId)\s*=\s*(?:(@\w+)|'([^'"\\]*)'|"([^'"\\]*)"))?\s*$`)

// parseOfferQuery reads the body of a query.
func parseOfferQuery(body []byte) (*offerQuery, error) {
	o, err := value.ParseObject(body)
	if err != nil {
		return nil, err
	}
	raw, _ := o.Lookup("query")
	v, _ := value.FromJSON(raw)
	text, ok := v.Text()
	if !ok {
		return nil, &badRequestError{"The input content is invalid because the required properties - 'query; ' - are missing"}
	}
	unknown := &notYetError{"queries of offers other than SELECT * FROM c, alone or with WHERE c.offerResourceId = '…' or WHERE c.resource = '…',"}
	if len(text) > maxOfferQueryBytes {
		return nil, unknown
	}
	m := offerQueryForm.FindStringSubmatch(text)
	if m == nil || keyword(m[1]) || keyword(m[2]) {
		return nil, unknown
	}
	source, alias, name, property, parameter, literal := m[1], m[2], m[3], m[4], m[5], m[6]+m[7]
	if alias == "" {
		alias = source
	}
	if property == "" {
		return &offerQuery{}, nil
	}
	if name != alias {
		return nil, &badRequestError{"Identifier '" + value.Clip(name) + "' could not be resolved."}
	}
	if parameter == "" {
		return &offerQuery{property: property, is: literal}, nil
	}
	return offerQueryWith(o, property, parameter)
}

// keyword reports a word that names nothing: what the query breaks off with, then.
func keyword(word string) bool {
	return strings.EqualFold(word, "AS") || strings.EqualFold(word, "WHERE")
}

// offerQueryWith looks a parameter up.
func offerQueryWith(body *value.Object, property, name string) (*offerQuery, error) {
	raw, _ := body.Lookup("parameters")
	list, _ := value.Elements(raw)
	if len(list) > maxParameters {
		return nil, &badRequestError{"The query has too many parameters."}
	}
	for _, raw := range list {
		p, err := value.ParseObject(raw)
		if err != nil {
			return nil, &badRequestError{"The input content is invalid because a parameter of the query is not an object with a name and a value."}
		}
		raw, _ := p.Lookup("name")
		v, _ := value.FromJSON(raw)
		if given, ok := v.Text(); !ok || given != name {
			continue
		}
		raw, _ = p.Lookup("value")
		v, _ = value.FromJSON(raw)
		text, ok := v.Text()
		return &offerQuery{property: property, is: text, nothing: !ok}, nil
	}
	return nil, &badRequestError{"The query's parameter '" + value.Clip(name) + "' is not given."}
}
