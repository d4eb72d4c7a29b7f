// SPDX-License-Identifier: MIT

package query

import (
	"fmt"
	"strings"
)

// specialIndexes are members of a policy: indexes of all special kinds.
const specialIndexes = `"fullTextIndexes":[{"path":"/text"},{"path":"/o/x"}],"vectorIndexes":[{"path":"/vec","type":"flat"},{"path":"/arr","type":"diskANN"}],` +
	`"spatialIndexes":[{"path":"/loc/*","types":["Point","Polygon"]},{"path":"/spot/?","types":["Point"]}]`

// specialSettings are what the special indexes need beside the policy.
const specialSettings = `"vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/vec","dataType":"float32","dimensions":2,"distanceFunction":"cosine"},` +
	`{"path":"/arr","dataType":"float32","dimensions":2,"distanceFunction":"cosine"}]}`

// Words of texts: some are the same but for their ending, some are no words, and one
// is longer than what an index keeps of it.
var textWords = []string{
	"red", "red", "green", "blue", "bicycle", "bicycles", "riding", "ride", "the", "of", "mountain", "東京", "x2", "1,977", "it's",
	x(300), x(299) + "y",
}

func anyText(t *random) string {
	list := make([]string, uniform(t.T, "words", 12))
	for i := range list {
		list[i] = pick(t.T, "word", textWords...)
	}
	return strings.Join(list, pick(t.T, "between", " ", " ", ", ", ". "))
}

// specialMembers draws what the special indexes are about.
func specialMembers(t *random) []string {
	var members []string
	switch pick(t.T, "text", "text", "text", "text", "none", "other") {
	case "text":
		members = append(members, fmt.Sprintf(`"text":%q`, anyText(t)))
	case "other":
		members = append(members, `"text":`+anyValue(t))
	}
	switch pick(t.T, "vector", "vector", "vector", "vector", "none", "other") {
	case "vector":
		members = append(members, `"vec":`+anyVector(t))
	case "other":
		members = append(members, `"vec":`+anyValue(t))
	}
	switch pick(t.T, "place", "place", "place", "place", "text", "list", "inner", "none") {
	case "place":
		members = append(members, `"loc":`+anyGeometry(t))
	case "text":
		members = append(members, fmt.Sprintf(`"loc":%q`, pick(t.T, "space", "", " ")+anyGeometry(t)))
	case "list":
		members = append(members, `"loc":[`+anyGeometry(t)+","+anyGeometry(t)+"]")
	case "inner":
		members = append(members, `"loc":{"type":"Point","also":`+anyGeometry(t)+`,"coordinates":`+placeText(anyPlace(t))+"}")
	}
	if chance(t.T, "spot", 50) {
		members = append(members, `"spot":`+anyGeometry(t))
	}
	return members
}

// anyPlace draws a position: on a coarse grid, so that places meet, about the ends of
// longitude and latitude, and beyond.
func anyPlace(t *random) [2]float64 {
	lon, lat := float64(uniform(t.T, "lon", 9)-4)/2, float64(uniform(t.T, "lat", 9)-4)/2
	switch pick(t.T, "where", "here", "here", "here", "here", "date line", "pole", "anywhere", "nowhere") {
	case "date line":
		lon = []float64{180, -180, 179.5, -179.5}[uniform(t.T, "lon", 4)]
	case "pole":
		lat = []float64{90, -90, 89.5, -89.5}[uniform(t.T, "lat", 4)]
	case "anywhere":
		lon, lat = float64(uniform(t.T, "lon", 361)-180), float64(uniform(t.T, "lat", 181)-90)
	case "nowhere":
		if chance(t.T, "wrong", 10) {
			lat = 91
		}
	}
	return [2]float64{lon, lat}
}

func placeText(p [2]float64) string { return fmt.Sprintf("[%g,%g]", p[0], p[1]) }

// anyRing draws a closed path: a box, mostly the right way round, or anything.
func anyRing(t *random) string {
	p := anyPlace(t)
	width, height := float64(1+uniform(t.T, "width", 6))/2, float64(1+uniform(t.T, "height", 6))/2
	ring := [][2]float64{p, {p[0] + width, p[1]}, {p[0] + width, p[1] + height}, {p[0], p[1] + height}}
	switch pick(t.T, "ring", "box", "box", "box", "box", "box", "reversed", "crossing", "random") {
	case "reversed":
		ring[1], ring[3] = ring[3], ring[1]
	case "crossing":
		ring[2], ring[3] = ring[3], ring[2]
	case "random":
		for i := range ring {
			ring[i] = anyPlace(t)
		}
	}
	ring = append(ring, ring[0])
	texts := make([]string, len(ring))
	for i, p := range ring {
		texts[i] = placeText(p)
	}
	return "[" + strings.Join(texts, ",") + "]"
}

// anyGeometry draws GeoJSON, which may be no valid one.
func anyGeometry(t *random) string {
	kind, coordinates := "Point", placeText(anyPlace(t))
	switch pick(t.T, "geometry", "point", "point", "point", "line", "polygon", "polygon", "polygons", "odd") {
	case "line":
		kind, coordinates = "LineString", "["+placeText(anyPlace(t))+","+placeText(anyPlace(t))+"]"
	case "polygon":
		kind, coordinates = "Polygon", "["+anyRing(t)+"]"
		if chance(t.T, "hole", 20) {
			coordinates = "[" + anyRing(t) + "," + anyRing(t) + "]"
		}
	case "polygons":
		kind, coordinates = "MultiPolygon", "[["+anyRing(t)+"],["+anyRing(t)+"]]"
	case "odd":
		return pick(t.T, "odd", `{"type":"Point"}`, `{"coordinates":[0,0]}`, `{"type":"Point","coordinates":[0,0,1]}`, `{"type":"Point","coordinates":[0,0,"x",4]}`,
			`{"type":"Polygon","coordinates":[]}`, `{"type":"Circle","coordinates":[0,0]}`, `{"type":"Point","coordinates":[0,"1"]}`, `{}`)
	}
	return fmt.Sprintf(`{"type":%q,"coordinates":%s}`, kind, coordinates)
}

func placePath(t *random) string {
	return pick(t.T, "path", "c.loc", "c.loc", "c.loc", "c.loc", "c.spot", "c.loc.also", "c.loc[0]", "c.o")
}

func placeFilter(t *random) string {
	args := placePath(t) + ", " + anyGeometry(t)
	if chance(t.T, "swapped", 20) {
		args = anyGeometry(t) + ", " + placePath(t)
	}
	metres := pick(t.T, "metres", "0", "1000", "60000", "150000", "3000000", "30000000", "-1")
	switch pick(t.T, "function", "within", "within", "intersects", "intersects", "near", "near", "near", "not far", "between", "far") {
	case "within":
		return "ST_WITHIN(" + args + ")"
	case "intersects":
		return "ST_INTERSECTS(" + args + ")"
	case "not far":
		return "NOT (ST_DISTANCE(" + args + ") > " + metres + ")"
	case "between":
		return "ST_DISTANCE(" + args + ") BETWEEN 1000 AND " + metres
	case "far":
		return metres + " < ST_DISTANCE(" + args + ")"
	}
	return "ST_DISTANCE(" + args + ")" + pick(t.T, "operator", " < ", " <= ", " = ") + metres
}

// Numbers of vectors: some are rounded when they are kept, some are beyond what is kept.
var vectorNumbers = []string{"0", "1", "1", "-1", "2", "3", "0.1", "0.25", "1e-3", "127", "300", "16777217", "2049", "70000", "1e39", "1e-50"}

func anyVector(t *random) string {
	list := make([]string, 2)
	if chance(t.T, "another length", 5) {
		list = make([]string, uniform(t.T, "numbers", 4))
	}
	for i := range list {
		list[i] = pick(t.T, "number", vectorNumbers[:8]...)
		if chance(t.T, "odd", 10) {
			list[i] = pick(t.T, "number", vectorNumbers...)
		}
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// byDistance orders a query by the distance from a vector.
func (q *randomQuery) byDistance(t *random) {
	metric := pick(t.T, "metric", "", "cosine", "dotproduct", "euclidean")
	options := pick(t.T, "type", "", "", "", `"dataType": "int8"`, `"dataType": "float16"`, `"dataType": "uint8"`)
	if metric != "" {
		if options != "" {
			options += ", "
		}
		options += fmt.Sprintf(`"distanceFunction": %q`, metric)
	}
	args := []string{pick(t.T, "path", "c.vec", "c.vec", "c.vec", "c.arr", "c.b"), anyVector(t)}
	if chance(t.T, "swapped", 10) {
		args[0], args[1] = args[1], args[0]
	}
	if options != "" {
		args = append(args, "false", "{"+options+"}")
	}
	q.ordered = true
	function := pick(t.T, "function", "VectorDistance", "VectorDistance", "_VectorScore")
	q.orderBy = " ORDER BY " + function + "(" + strings.Join(args, ", ") + ")"
	q.descending = metric != "euclidean"
	if function == "VectorDistance" {
		return // it takes no direction
	}
	if direction := pick(t.T, "direction", "", "ASC", "DESC"); direction != "" {
		q.orderBy, q.descending = q.orderBy+" "+direction, direction == "DESC"
	}
}

// anyTerm draws a term: a word, several that follow each other, or one that may be
// misspelled.
func anyTerm(t *random) string {
	switch pick(t.T, "term", "word", "word", "word", "word", "phrase", "phrase", "fuzzy", "none") {
	case "phrase":
		return fmt.Sprintf("%q", pick(t.T, "word", textWords...)+" "+pick(t.T, "word", textWords...))
	case "fuzzy":
		return fmt.Sprintf(`{"term": %q, "distance": %d}`, pick(t.T, "word", textWords...), uniform(t.T, "edits", 3))
	case "none":
		return pick(t.T, "no term", `""`, `"the"`, `"nowhere"`)
	}
	return fmt.Sprintf("%q", pick(t.T, "word", textWords...))
}

func anyTerms(t *random) string {
	list := make([]string, 1+uniform(t.T, "terms", 3))
	for i := range list {
		list[i] = anyTerm(t)
	}
	return strings.Join(list, ", ")
}

// pathOfText draws a path of texts, which may have an index or not.
func pathOfText(t *random) string {
	return pick(t.T, "path", "c.text", "c.text", "c.text", "c.o.x", "c.b")
}

func textFilter(t *random) string {
	if chance(t.T, "one", 40) {
		return "FullTextContains(" + pathOfText(t) + ", " + anyTerm(t) + ")"
	}
	return pick(t.T, "function", "FullTextContainsAll", "FullTextContainsAny") + "(" + pathOfText(t) + ", " + anyTerms(t) + ")"
}

func textScore(t *random) string { return "FullTextScore(" + pathOfText(t) + ", " + anyTerms(t) + ")" }

// specialQuery draws a query that a special index can answer.
func specialQuery(t *random) *randomQuery {
	q := &randomQuery{from: "c", limit: -1, selected: pick(t.T, "select", "VALUE c", "c.id", "VALUE c.full", "VALUE c.a", "c.id, c.text", "VALUE COUNT(1)")}
	if chance(t.T, "where", 60) {
		if q.where = textFilter(t); chance(t.T, "place", 50) {
			q.where = placeFilter(t)
		}
		if chance(t.T, "more", 40) {
			q.where += pick(t.T, "and", " AND ", " AND ", " OR ") + anyComparison(t, pick(t.T, "path", "c.full", "c.n", "c.a"))
		}
	}
	if q.selected == "VALUE COUNT(1)" {
		if chance(t.T, "statistics", 50) {
			q.where = ""
			q.selected = fmt.Sprintf("COUNT(1) AS items, [{words: SUM(_FullTextWordCount(%s)), hits: [COUNTIF(FullTextContains(%s, %s)), COUNTIF(FullTextContains(%s, %s))]}] AS texts",
				pathOfText(t), pathOfText(t), anyTerm(t), pathOfText(t), anyTerm(t))
		}
		return q
	}
	q.distinct = chance(t.T, "distinct", 15)
	switch pick(t.T, "order", "none", "path", "rank", "rank", "fused", "score", "score", "distance", "distance", "distance") {
	case "distance":
		q.byDistance(t)
	case "path":
		q.orderedBy(t, pick(t.T, "path", "c.full", "c.n"))
	case "rank":
		q.ordered, q.orderBy = true, " ORDER BY RANK "+textScore(t)
	case "fused":
		q.ordered, q.orderBy = true, " ORDER BY RANK RRF("+textScore(t)+", "+textScore(t)+pick(t.T, "weights", ")", ", [1, 2])")
	case "score":
		q.orderedBy(t, fmt.Sprintf("_FullTextScore(%s, [%s], 40, 200, [3, 5, 7])", pathOfText(t), anyTerms(t)))
	}
	q.slice(t)
	return q
}
