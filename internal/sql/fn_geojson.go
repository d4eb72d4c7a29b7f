// SPDX-License-Identifier: MIT

// GeoJSON: reading a geometry from a value, and saying what is wrong with it.

package sql

import (
	"fmt"
	"strings"
)

// maxRingPoints is how many points a polygon may have in the service.
const maxRingPoints = 4096

// maxLinePoints bounds lines, and all polygons of one geometry together.
const maxLinePoints = 4 * maxRingPoints

// Why a value is no geometry, on the globe or on a plane.
const (
	notGeoJSON      = "The input is not a valid GeoJSON object: it must have the members \"type\" and \"coordinates\"."
	notGeometry     = "The type of the GeoJSON object must be Point, LineString, Polygon or MultiPolygon."
	notPosition     = "The position must be an array of two or three numbers."
	lineOfOnePoint  = "The LineString input is not valid because it does not have enough distinct points."
	noPolygon       = "The MultiPolygon input is not valid because it has no polygon."
	noRing          = "The Polygon input is not valid because it has no ring."
	tooManyPoints   = "The Polygon input is not valid because it has more than 4096 points."
	tooManyPolygons = "The MultiPolygon input is not valid because it has more than 16384 points."
	openRing        = "The Polygon input is not valid because the start and end points of the ring number %d are not the same. " +
		"Each ring of a Polygon must have the same start and end points."
	shortRing = "The Polygon input is not valid because the ring number %d does not have enough points. " +
		"Each ring of a Polygon must contain at least four points."
	crossingRing = "The Polygon input is not valid because the ring number %d crosses itself or another ring."
)

// lineLength returns what is wrong with the number of a line's points, or "".
func lineLength(points int) string {
	switch {
	case points < 2:
		return "The LineString input is not valid because it does not have enough points. A LineString must have at least two points."
	case points > maxLinePoints:
		return fmt.Sprintf("The LineString input is not valid because it has more than %d points.", maxLinePoints)
	}
	return ""
}

// geometry is what a value describes: one of its lists has elements.
type geometry struct {
	points   []place
	lines    []line
	polygons []polygon
}

// line is an open path.
type line struct {
	places []place
	edges  []edge
}

// geoJSON takes a geometry apart. A string that holds GeoJSON is read as well.
func geoJSON(v Value) (kind string, coordinates Value, ok bool) {
	if text, ok := v.AsString(); ok {
		text = strings.Trim(text, " \t\r\n")
		if text != "" && text[0] == '{' {
			v, _ = parseJSON(text)
		}
	}
	kind, ok = v.Member("type").AsString()
	coordinates = v.Member("coordinates")
	return kind, coordinates, ok && coordinates.Kind() == KindArray
}

// geometryOf reads a geometry. Else it returns a reason, as the service words it
// where that is known.
func geometryOf(v Value) (g geometry, reason string) {
	kind, coordinates, ok := geoJSON(v)
	if !ok {
		return g, notGeoJSON
	}
	switch kind {
	case "Point":
		g.points, reason = readPlaces([]Value{coordinates})
	case "LineString":
		var l line
		l, reason = readLine(coordinates)
		g.lines = []line{l}
	case "Polygon":
		var p polygon
		p, reason = readPolygon(coordinates)
		g.polygons = []polygon{p}
	case "MultiPolygon":
		g.polygons, reason = readPolygons(coordinates)
	default:
		reason = notGeometry
	}
	return g, reason
}

// elementsOf returns an array's elements, at most limit and one more.
func elementsOf(v Value, limit int) []Value {
	var list []Value
	for element := range v.Elements {
		if list = append(list, element); len(list) > limit {
			break
		}
	}
	return list
}

func readPlaces(positions []Value) (places []place, reason string) {
	for _, position := range positions {
		lon, okLon := position.Index(0).AsFloat()
		lat, okLat := position.Index(1).AsFloat()
		switch {
		case !okLon || !okLat || position.Len() > 3:
			return nil, notPosition
		case !(lat >= -90 && lat <= 90):
			return nil, "Latitude values must be between -90 and 90 degrees."
		case !(lon >= -180 && lon <= 180):
			return nil, "Longitude values must be between -180 and 180 degrees."
		}
		places = append(places, placeAt(lon, lat))
	}
	return places, ""
}

func readLine(v Value) (l line, reason string) {
	positions := elementsOf(v, maxLinePoints)
	if reason := lineLength(len(positions)); reason != "" {
		return l, reason
	}
	if l.places, reason = readPlaces(positions); reason != "" {
		return l, reason
	}
	if l.edges = edgesAlong(l.places); len(l.edges) == 0 {
		return l, lineOfOnePoint
	}
	return l, ""
}

func readPolygons(v Value) (polygons []polygon, reason string) {
	points := 0
	for element := range v.Elements {
		p, reason := readPolygon(element)
		if reason != "" {
			return nil, reason
		}
		for _, r := range p.rings {
			points += len(r.places)
		}
		if points > maxLinePoints {
			return nil, tooManyPolygons
		}
		polygons = append(polygons, p)
	}
	if len(polygons) == 0 {
		return nil, noPolygon
	}
	return polygons, ""
}

func readPolygon(v Value) (p polygon, reason string) {
	points := 0
	for element := range v.Elements {
		positions := elementsOf(element, maxRingPoints)
		if points += len(positions); points > maxRingPoints {
			return p, tooManyPoints
		}
		r, reason := readRing(positions, len(p.rings)+1)
		if reason != "" {
			return p, reason
		}
		p.rings = append(p.rings, r)
	}
	if len(p.rings) == 0 {
		return p, noRing
	}
	return p, ""
}

// readRing reads the ring with the given number, counted from 1. All but the
// first are holes.
func readRing(positions []Value, number int) (r ring, reason string) {
	places, reason := readPlaces(positions)
	if reason != "" {
		return r, reason
	}
	if len(places) == 0 || places[0] != places[len(places)-1] {
		return r, fmt.Sprintf(openRing, number)
	}
	for i, p := range places[1:] {
		if p != places[i] {
			r.places = append(r.places, places[i])
		}
	}
	r.edges = edgesAlong(places)
	if last := len(r.edges) - 1; last >= 0 && r.edges[last].b != r.edges[0].a {
		r.edges[last] = edgeBetween(r.edges[last].a, r.edges[0].a) // ends where it began, to the last digit
	}
	if len(places) < 4 || len(r.places) < 3 || len(r.edges) < 2 {
		return r, fmt.Sprintf(shortRing, number)
	}
	r.hole = number > 1
	r.reversed = r.hole && leftIsSmaller(r.places)
	return r, ""
}

// crossing returns the number of the first ring of which an edge crosses an edge
// of the same polygon, or 0.
func (p *polygon) crossing(cx *Context) int {
	for i := range p.rings {
		for k := range p.rings[i].edges {
			e := &p.rings[i].edges[k]
			if cx.Tick() != nil {
				return 0
			}
			for j := i; j < len(p.rings); j++ {
				for m := range p.rings[j].edges {
					if e.crosses(&p.rings[j].edges[m]) {
						return i + 1
					}
				}
			}
		}
	}
	return 0
}

// validity returns why a geometry cannot be used, or "".
func validity(cx *Context, v Value) string {
	g, reason := geometryOf(v)
	if reason != "" {
		return reason
	}
	for i := range g.polygons {
		if number := g.polygons[i].crossing(cx); number > 0 {
			return fmt.Sprintf(crossingRing, number)
		}
	}
	return ""
}
