// SPDX-License-Identifier: MIT

package function

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

// Shapes for the tests, by a letter. All rings run counter-clockwise but those
// of C and the hole of H.
var shapes = strings.NewReplacer(
	"$box", `{"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}`,
	"$inner", `{"type": "Polygon", "coordinates": [[[1, 1], [2, 1], [2, 2], [1, 2], [1, 1]]]}`,
	"$corner", `{"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}`,
	"$overlap", `{"type": "Polygon", "coordinates": [[[3, 3], [6, 3], [6, 6], [3, 6], [3, 3]]]}`,
	"$touching", `{"type": "Polygon", "coordinates": [[[4, 4], [6, 4], [6, 6], [4, 6], [4, 4]]]}`,
	"$far", `{"type": "Polygon", "coordinates": [[[10, 10], [11, 10], [11, 11], [10, 11], [10, 10]]]}`,
	"$clockwise", `{"type": "Polygon", "coordinates": [[[0, 0], [0, 4], [4, 4], [4, 0], [0, 0]]]}`,
	"$holed", `{"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]], [[1, 1], [1, 3], [3, 3], [3, 1], [1, 1]]]}`,
	"$otherwiseholed", `{"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]], [[1, 1], [3, 1], [3, 3], [1, 3], [1, 1]]]}`,
	"$notched", `{"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [2, 1], [0, 4], [0, 0]]]}`,
	"$dateline", `{"type": "Polygon", "coordinates": [[[170, -10], [-170, -10], [-170, 10], [170, 10], [170, -10]]]}`,
	"$wedge", `{"type": "Polygon", "coordinates": [[[-1.5, -90], [0.5, -90], [0.5, -89.5], [-1.5, -89.5], [-1.5, -90]]]}`,
	"$twice", `{"type": "Polygon", "coordinates": [[[179, -1], [180, -1], [-180, -1], [-179, -1], [-179, 1], [-180, 1], [180, 1], [179, 1], [179, -1]]]}`,
	"$pole", `{"type": "Polygon", "coordinates": [[[0, 80], [90, 80], [180, 80], [-90, 80], [0, 80]]]}`,
	"$two", `{"type": "MultiPolygon", "coordinates": [[[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]], [[[10, 10], [11, 10], [11, 11], [10, 11], [10, 10]]]]}`,
	"$across", `{"type": "LineString", "coordinates": [[-1, 1], [5, 1]]}`,
	"$inline", `{"type": "LineString", "coordinates": [[1, 1], [2, 3]]}`,
	"$equator", `{"type": "LineString", "coordinates": [[-1, 0], [0, 0], [1, 0]]}`,
	"$north", `{"type": "LineString", "coordinates": [[-1, 5], [1, 5]]}`,
)

// point is a GeoJSON point as it is written in a query.
func point(lon, lat float64) string {
	return fmt.Sprintf(`{"type": "Point", "coordinates": [%v, %v]}`, lon, lat)
}

func TestWithinAndIntersects(t *testing.T) {
	for _, c := range []struct{ a, b, within, intersects string }{
		{point(2, 2), "$box", "true", "true"},
		{point(0, 0), "$box", "false", "true"},
		{point(0, 2), "$box", "false", "true"},
		{point(5, 2), "$box", "false", "false"},
		{point(2, 2), "$clockwise", "false", "false"},
		{point(5, 2), "$clockwise", "true", "true"},
		{point(-150, -40), "$clockwise", "true", "true"},
		{point(0.5, 0.5), "$holed", "true", "true"},
		{point(2, 2), "$holed", "false", "false"},
		{point(1, 2), "$holed", "false", "true"},
		{point(2, 2), "$otherwiseholed", "false", "false"},
		{point(0.5, 0.5), "$otherwiseholed", "true", "true"},
		{point(180, 0), "$dateline", "true", "true"},
		{point(-180, 0), "$dateline", "true", "true"},
		{point(-175, 5), "$dateline", "true", "true"},
		{point(0, 0), "$dateline", "false", "false"},
		{point(45, 90), "$pole", "true", "true"},
		{point(10, 85), "$pole", "true", "true"},
		{point(10, 75), "$pole", "false", "false"},
		{point(10, -90), "$pole", "false", "false"},
		// Corners that are one point, written in two ways.
		{point(0, -89.7), "$wedge", "true", "true"},
		{point(179, -41), "$wedge", "false", "false"},
		{point(90, -89.7), "$wedge", "false", "false"},
		{point(33, -90), "$wedge", "false", "true"},
		{point(180, 0), "$twice", "true", "true"},
		{point(-180, -1), "$twice", "false", "true"},
		{point(0, 0), "$twice", "false", "false"},
		{point(178, 0.5), "$twice", "false", "false"},
		{point(10.5, 10.5), "$two", "true", "true"},
		{point(7, 7), "$two", "false", "false"},
		{"$inner", "$box", "true", "true"},
		{"$box", "$inner", "false", "true"},
		{"$box", "$box", "true", "true"},
		{"$corner", "$box", "true", "true"},
		{"$overlap", "$box", "false", "true"},
		{"$touching", "$box", "false", "true"},
		{"$far", "$box", "false", "false"},
		{"$far", "$clockwise", "true", "true"},
		{"$inner", "$clockwise", "false", "false"},
		{"$inner", "$holed", "false", "true"},
		{"$box", "$holed", "false", "true"},
		{"$holed", "$box", "true", "true"},
		{"$box", "$notched", "false", "true"},
		{"$notched", "$box", "true", "true"},
		{"$far", "$two", "true", "true"},
		{"$two", "$two", "true", "true"},
		{"$two", "$box", "false", "true"},
		{"$inline", "$box", "true", "true"},
		{"$across", "$box", "false", "true"},
		{"$across", "$far", "false", "false"},
		{"$box", "$across", "false", "true"},
		{"$equator", "$equator", "true", "true"},
		{"$equator", "$north", "false", "false"},
		{point(0.5, 0), "$equator", "true", "true"},
		{point(1, 0), "$equator", "false", "true"},
		{point(0, 1), "$equator", "false", "false"},
		{point(1, 2), point(1, 2), "true", "true"},
		{point(1, 2), point(1, 3), "false", "false"},
		{"$equator", point(0, 0), "false", "true"},
	} {
		for name, want := range map[string]string{"ST_WITHIN": c.within, "ST_INTERSECTS": c.intersects} {
			if got := calc(t, shapes.Replace(name+"("+c.a+", "+c.b+")")); got != want {
				t.Errorf("%s(%s, %s): got %s, want %s", name, c.a, c.b, got, want)
			}
		}
		if got := calc(t, shapes.Replace("ST_INTERSECTS("+c.b+", "+c.a+")")); got != c.intersects {
			t.Errorf("ST_INTERSECTS(%s, %s): got %s", c.b, c.a, got)
		}
	}
}

// near checks a number to a part in ten million.
func near(t *testing.T, expr string, want float64) {
	t.Helper()
	f, ok := datum.Raw([]byte(calc(t, shapes.Replace(expr)))).AsFloat()
	if !ok || math.Abs(f-want) > 1e-7*math.Max(1, want) {
		t.Errorf("%s: got %.9g, want %.9g", expr, f, want)
	}
}

// precise checks a number that the service is known to return, to ten digits.
func precise(t *testing.T, expr string, want float64) {
	t.Helper()
	if got := calcFloat(t, expr); math.Abs(got-want) > 2e-11*want {
		t.Errorf("%s: got %.14g, want %.14g", expr, got, want)
	}
}

func TestDistances(t *testing.T) {
	// The quarter of the equator and of a meridian, half way round by the pole,
	// and what the service is documented to return.
	near(t, "ST_DISTANCE("+point(0, 0)+", "+point(90, 0)+")", 6378137*math.Pi/2)
	near(t, "ST_DISTANCE("+point(77, 0)+", "+point(13, 90)+")", 10001965.7293)
	near(t, "ST_DISTANCE("+point(0, 0)+", "+point(180, 0)+")", 20003931.4586)
	near(t, "ST_DISTANCE("+point(0, 90)+", "+point(50, -90)+")", 20003931.4586)
	here := point(-122.11758113953535, 47.66901087006131)
	precise(t, "ST_DISTANCE("+here+", "+point(-122.12826822304672, 47.63980239335718)+")", 3345.269817267368)
	precise(t, "ST_DISTANCE("+here+", "+point(-96.84368664765994, 46.81297794314663)+")", 1907438.421299902)
	near(t, "ST_DISTANCE("+point(179, 0)+", "+point(-179, 0)+")", 222638.98158654713)
	near(t, "ST_DISTANCE("+point(5, 5)+", "+point(5, 5)+")", 0)
	// One degree of latitude and of longitude at the equator.
	const latitude, longitude = 110574.3885577987, 111319.49079327358
	near(t, "ST_DISTANCE("+point(0, 1)+", $equator)", latitude)
	near(t, "ST_DISTANCE($equator, "+point(0, 1)+")", latitude)
	near(t, "ST_DISTANCE("+point(0.3, -1)+", $equator)", latitude)
	near(t, "ST_DISTANCE("+point(3, 0)+", $equator)", 2*longitude)
	near(t, "ST_DISTANCE("+point(2, -1)+", $box)", latitude)
	near(t, "ST_DISTANCE("+point(2, 2)+", $box)", 0)
	near(t, "ST_DISTANCE($box, $overlap)", 0)
	near(t, "ST_DISTANCE($equator, $north)", 552885.451)
}

// calcFloat is calc for a number.
func calcFloat(t *testing.T, expr string) float64 {
	t.Helper()
	f, _ := datum.Raw([]byte(calc(t, shapes.Replace(expr)))).AsFloat()
	return f
}

func TestAreas(t *testing.T) {
	const earth = 510065621724088.44
	near(t, `ST_AREA({"type": "Polygon", "coordinates": [[[0, 0], [90, 0], [0, 90], [0, 0]]]})`, earth/8)
	near(t, `ST_AREA({"type": "Polygon", "coordinates": [[[0, 0], [0, 90], [90, 0], [0, 0]]]})`, earth*7/8)
	near(t, `ST_AREA({"type": "Polygon", "coordinates": [[[0, 0], [120, 0], [-120, 0], [0, 0]]]})`, earth/2)
	near(t, "ST_AREA($box) + ST_AREA($clockwise)", earth)
	near(t, "ST_AREA($box) - ST_AREA($holed)", calcFloat(t, `ST_AREA({"type": "Polygon", "coordinates": [[[1, 1], [3, 1], [3, 3], [1, 3], [1, 1]]]})`))
	near(t, "ST_AREA($otherwiseholed)", calcFloat(t, "ST_AREA($holed)"))
	near(t, "ST_AREA($two)", calcFloat(t, "ST_AREA($box) + ST_AREA($far)"))
	near(t, "ST_AREA($equator)", 0)
	near(t, "ST_AREA("+point(1, 1)+")", 0)
	// What the service is documented to return.
	precise(t, `ST_AREA({"type": "Polygon", "coordinates": [[[31.8, -5], [32, -5], [32, -4.7], [31.8, -4.7], [31.8, -5]]]})`, 735970283.0522614)
}

func TestValidity(t *testing.T) {
	for _, c := range []struct{ json, reason string }{
		{point(180, -90), ""},
		{"$box", ""}, {"$clockwise", ""}, {"$holed", ""}, {"$two", ""}, {"$equator", ""},
		{`{"type": "Point", "coordinates": [1, 2, 300]}`, ""},
		{point(1, 90.5), "Latitude values must be between -90 and 90 degrees."},
		{point(180.5, 0), "Longitude values must be between -180 and 180 degrees."},
		{`{"type": "Point", "coordinates": [1]}`, "The position must be"},
		{`{"type": "Point", "coordinates": ["1", 2]}`, "The position must be"},
		{`{"type": "Point", "coordinates": [1, 2, 3, 4]}`, "The position must be"},
		{`{"type": "Point"}`, "The input is not a valid GeoJSON"},
		{`{"coordinates": [1, 2]}`, "The input is not a valid GeoJSON"},
		{`"x"`, "The input is not a valid GeoJSON"},
		{`7`, "The input is not a valid GeoJSON"},
		{`{"type": "Circle", "coordinates": [1, 2]}`, "The type of the GeoJSON object"},
		{`{"type": "LineString", "coordinates": [[1, 2]]}`, "The LineString input is not valid because it does not have enough points."},
		{`{"type": "LineString", "coordinates": [[1, 2], [1, 2]]}`, "The LineString input is not valid because it does not have enough distinct"},
		{`{"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1]]]}`, "The Polygon input is not valid because the start and end points of the ring number 1 "},
		{`{"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 0]]]}`, "The Polygon input is not valid because the ring number 1 does not have enough"},
		{`{"type": "Polygon", "coordinates": []}`, "The Polygon input is not valid because it has no ring"},
		{`{"type": "Polygon", "coordinates": [[]]}`, "The Polygon input is not valid because the start and end"},
		{`{"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}`, "The Polygon input is not valid because the ring number 1 crosses"},
		{`{"type": "MultiPolygon", "coordinates": []}`, "The MultiPolygon input"},
		{`{"type": "Polygon", "coordinates": [[` + strings.Repeat("[0, 0], ", 4096) + `[0, 0]]]}`, "The Polygon input is not valid because it has more than 4096 points."},
	} {
		expr := shapes.Replace(c.json)
		if got, want := calc(t, "ST_ISVALID("+expr+")"), fmt.Sprint(c.reason == ""); got != want {
			t.Errorf("ST_ISVALID(%.80s): got %s", c.json, got)
		}
		detailed := datum.Raw([]byte(calc(t, "ST_ISVALIDDETAILED("+expr+")")))
		reason, _ := detailed.Member("reason").AsString()
		if !strings.HasPrefix(reason, c.reason) || (reason == "") != (c.reason == "") || detailed.Member("valid").IsTrue() != (c.reason == "") {
			t.Errorf("ST_ISVALIDDETAILED(%.80s): got %s, want %s", c.json, detailed, c.reason)
		}
		if c.reason == "" || strings.Contains(c.reason, "crosses") {
			continue
		}
		for _, call := range []string{"ST_AREA(%s)", "ST_DISTANCE(%s, " + point(0, 0) + ")", "ST_WITHIN(%s, $box)", "ST_INTERSECTS($box, %s)"} {
			if got := calc(t, shapes.Replace(fmt.Sprintf(call, expr))); got != "undefined" {
				t.Errorf("%s of %.80s: got %s", call, c.json, got)
			}
		}
	}
	if got := calc(t, "ST_ISVALID(undefined)"); got != "undefined" {
		t.Errorf("ST_ISVALID(undefined): got %s", got)
	}
}

// TestLargePolygons has many corners, and an interruption.
func TestLargePolygons(t *testing.T) {
	const corners = 1000
	circle := func(radius float64) datum.Value {
		text := []byte(`{"type":"Polygon","coordinates":[[`)
		for i := range corners + 1 {
			sin, cos := math.Sincos(2 * math.Pi * float64(i%corners) / corners)
			text = fmt.Appendf(text, "[%v,%v],", radius*cos, radius*sin)
		}
		return datum.Raw(append(text[:len(text)-1], "]]}"...))
	}
	inner, outer := circle(1), circle(1.001)
	for name, want := range map[string]string{"ST_WITHIN": "true", "ST_INTERSECTS": "true", "ST_DISTANCE": "0"} {
		f, _ := Lookup(name)
		if got := invoke(f, testContext(), []datum.Value{inner, outer}).String(); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		stop := errors.New("stop")
		cx := &Context{Interrupted: func() error { return stop }}
		invoke(f, cx, []datum.Value{inner, outer})
		if !errors.Is(cx.Err(), stop) {
			t.Errorf("%s is not interrupted", name)
		}
	}
}

func BenchmarkSpatial(b *testing.B) {
	value := func(s string) datum.Value { return datum.Raw([]byte(calc(b, shapes.Replace(s)))) }
	for _, c := range []struct {
		name, function string
		args           []datum.Value
	}{
		{"DistancePoints", "ST_DISTANCE", []datum.Value{value(point(1, 2)), value(point(3, 4))}},
		{"WithinBox", "ST_WITHIN", []datum.Value{value(point(1, 2)), value("$box")}},
		{"IntersectsBoxes", "ST_INTERSECTS", []datum.Value{value("$overlap"), value("$box")}},
		{"AreaBox", "ST_AREA", []datum.Value{value("$box")}},
	} {
		b.Run(c.name, func(b *testing.B) {
			f, _ := Lookup(c.function)
			cx := testContext()
			b.ReportAllocs()
			for b.Loop() {
				if invoke(f, cx, c.args).IsUndefined() {
					b.Fatal("undefined")
				}
			}
		})
	}
}
