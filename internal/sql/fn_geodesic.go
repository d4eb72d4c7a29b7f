// SPDX-License-Identifier: MIT

// Distances and areas on the ellipsoid WGS-84.
//
// Distances are Vincenty's, good to a tenth of a millimetre. His iteration does
// not end for points that are nearly opposite; a shortest path between those goes
// through a point halfway, which is searched for.

package sql

import "math"

// The ellipsoid: its radii in metres and what follows from them.
const (
	equatorRadius = 6378137.0
	flattening    = 1 / 298.257223563
	polarRadius   = equatorRadius * (1 - flattening)
	eccentricity2 = flattening * (2 - flattening) // squared
)

// place is a position on the Earth, in radians, and the same as a unit vector on
// a sphere, where straightness and sides are decided.
type place struct {
	lon, lat float64
	at       vector3
}

func placeAt(lonDegrees, latDegrees float64) place {
	p := place{lon: lonDegrees * (math.Pi / 180), lat: latDegrees * (math.Pi / 180)}
	sinLat, cosLat := math.Sincos(p.lat)
	sinLon, cosLon := math.Sincos(p.lon)
	p.at = vector3{cosLat * cosLon, cosLat * sinLon, sinLat}
	return p
}

// placeOf is the place of a direction.
func placeOf(v vector3) place {
	return place{lon: math.Atan2(v.y, v.x), lat: math.Atan2(v.z, math.Hypot(v.x, v.y)), at: v.unit()}
}

const (
	maxIterations = 100
	converged     = 1e-13 // radians: less than a micrometre
)

// geodesicLine is the shortest path between two places.
type geodesicLine struct {
	length  float64 // metres
	azimuth float64 // of its start, in radians from north
}

// inverse finds the shortest path. It reports false if the places are nearly
// opposite.
func inverse(p, q place) (line geodesicLine, ok bool) {
	u1, u2 := math.Atan((1-flattening)*math.Tan(p.lat)), math.Atan((1-flattening)*math.Tan(q.lat))
	sinU1, cosU1 := math.Sincos(u1)
	sinU2, cosU2 := math.Sincos(u2)
	l := math.Remainder(q.lon-p.lon, 2*math.Pi)
	lambda := l
	for range maxIterations {
		sinLambda, cosLambda := math.Sincos(lambda)
		x := cosU2 * sinLambda
		y := cosU1*sinU2 - sinU1*cosU2*cosLambda
		sinSigma := math.Hypot(x, y)
		if sinSigma == 0 {
			// The same place, or the one opposite.
			return geodesicLine{}, sinU1*sinU2+cosU1*cosU2*cosLambda > 0
		}
		cosSigma := sinU1*sinU2 + cosU1*cosU2*cosLambda
		sigma := math.Atan2(sinSigma, cosSigma)
		sinAlpha := cosU1 * cosU2 * sinLambda / sinSigma
		cos2Alpha := 1 - sinAlpha*sinAlpha
		cos2SigmaM := 0.0
		if cos2Alpha > 0 { // else along the equator
			cos2SigmaM = cosSigma - 2*sinU1*sinU2/cos2Alpha
		}
		next := l + longitudeStep(sinAlpha, cos2Alpha, sigma, sinSigma, cosSigma, cos2SigmaM)
		if math.Abs(next) > math.Pi {
			return geodesicLine{}, false
		}
		if math.Abs(next-lambda) < converged {
			length := arcLength(cos2Alpha, sigma, sinSigma, cosSigma, cos2SigmaM)
			return geodesicLine{length, math.Atan2(x, y)}, true
		}
		lambda = next
	}
	return geodesicLine{}, false
}

// longitudeStep returns by how much the longitude on the auxiliary sphere differs
// from that on the ellipsoid.
func longitudeStep(sinAlpha, cos2Alpha, sigma, sinSigma, cosSigma, cos2SigmaM float64) float64 {
	c := flattening / 16 * cos2Alpha * (4 + flattening*(4-3*cos2Alpha))
	return (1 - c) * flattening * sinAlpha *
		(sigma + c*sinSigma*(cos2SigmaM+c*cosSigma*(2*cos2SigmaM*cos2SigmaM-1)))
}

// helmert returns the coefficients of the series for lengths.
func helmert(cos2Alpha float64) (a, b float64) {
	u2 := cos2Alpha * (equatorRadius*equatorRadius - polarRadius*polarRadius) / (polarRadius * polarRadius)
	root := math.Sqrt(1 + u2)
	k := (root - 1) / (root + 1)
	return (1 + k*k/4) / (1 - k), k * (1 - 3.0/8*k*k)
}

func deltaSigma(b, sinSigma, cosSigma, cos2SigmaM float64) float64 {
	double := 2*cos2SigmaM*cos2SigmaM - 1
	return b * sinSigma * (cos2SigmaM + b/4*(cosSigma*double-
		b/6*cos2SigmaM*(4*sinSigma*sinSigma-3)*(4*cos2SigmaM*cos2SigmaM-3)))
}

func arcLength(cos2Alpha, sigma, sinSigma, cosSigma, cos2SigmaM float64) float64 {
	a, b := helmert(cos2Alpha)
	return polarRadius * a * (sigma - deltaSigma(b, sinSigma, cosSigma, cos2SigmaM))
}

// direct returns the latitude and the azimuth after some metres along a path.
func direct(lat, azimuth, length float64) (endLat, endAzimuth float64) {
	sinAz, cosAz := math.Sincos(azimuth)
	u1 := math.Atan((1 - flattening) * math.Tan(lat))
	sinU1, cosU1 := math.Sincos(u1)
	sigma1 := math.Atan2(sinU1, cosU1*cosAz)
	sinAlpha := cosU1 * sinAz
	cos2Alpha := 1 - sinAlpha*sinAlpha
	a, b := helmert(cos2Alpha)
	straight := length / (polarRadius * a)
	sigma := straight
	for range maxIterations {
		sinSigma, cosSigma := math.Sincos(sigma)
		next := straight + deltaSigma(b, sinSigma, cosSigma, math.Cos(2*sigma1+sigma))
		done := math.Abs(next-sigma) < converged
		sigma = next
		if done {
			break
		}
	}
	sinSigma, cosSigma := math.Sincos(sigma)
	t := sinU1*sinSigma - cosU1*cosSigma*cosAz
	endLat = math.Atan2(sinU1*cosSigma+cosU1*sinSigma*cosAz, (1-flattening)*math.Hypot(sinAlpha, t))
	return endLat, math.Atan2(sinAlpha, -t)
}

// distance returns the length of the shortest path in metres.
func distance(p, q place) float64 {
	if line, ok := inverse(p, q); ok {
		return line.length
	}
	return distanceByWaypoint(p, q)
}

// waypoints is how many points halfway are tried before the best is refined.
const waypoints = 64

// distanceByWaypoint is distance for places that are nearly opposite. Every path
// between them crosses the circle of points that are as far from one as from the
// other, and from each of those points on, the path is no longer nearly opposite.
func distanceByWaypoint(p, q place) float64 {
	axis := p.at.minus(q.at).unit()
	e := axis.anyPerpendicular()
	f := axis.cross(e)
	through := func(angle float64) float64 {
		sin, cos := math.Sincos(angle)
		m := placeOf(e.times(cos).plus(f.times(sin)))
		there, okThere := inverse(p, m)
		onward, okOnward := inverse(m, q)
		if !okThere || !okOnward {
			return math.Inf(1)
		}
		return there.length + onward.length
	}
	best, bestAngle := math.Inf(1), 0.0
	step := 2 * math.Pi / waypoints
	for i := range waypoints {
		if d := through(float64(i) * step); d < best {
			best, bestAngle = d, float64(i)*step
		}
	}
	_, least := minimum(bestAngle-step, bestAngle+step, through)
	return min(best, least)
}

const (
	goldenRatio   = 0.6180339887498949
	maxNarrowings = 60
)

// minimum returns where a function with one valley is least between low and
// high, and its value there.
func minimum(low, high float64, f func(float64) float64) (at, value float64) {
	a, b := high-goldenRatio*(high-low), low+goldenRatio*(high-low)
	fa, fb := f(a), f(b)
	for range maxNarrowings {
		if fa < fb {
			high, b, fb = b, a, fa
			a = high - goldenRatio*(high-low)
			fa = f(a)
		} else {
			low, a, fa = a, b, fb
			b = low + goldenRatio*(high-low)
			fb = f(b)
		}
	}
	if fa < fb {
		return a, fa
	}
	return b, fb
}

// belt returns the area between the equator and a latitude, for one radian of
// longitude, in square metres.
func belt(lat float64) float64 {
	e := math.Sqrt(eccentricity2)
	sin := math.Sin(lat)
	return polarRadius * polarRadius / 2 * (sin/(1-eccentricity2*sin*sin) + math.Atanh(e*sin)/e)
}

// hemisphere is the belt that ends at the pole; the Earth has 4π of it.
var hemisphere = belt(math.Pi / 2)

// The nodes and weights of Gauss's quadrature over [-1, 1] with eight points.
var (
	gaussNodes   = [4]float64{0.1834346424956498, 0.5255324099163290, 0.7966664774136267, 0.9602898564975363}
	gaussWeights = [4]float64{0.3626837833783620, 0.3137066458778873, 0.2223810344533745, 0.1012285362903763}
)

// quadratureStep is the longest path in metres that one quadrature spans.
const quadratureStep = 500_000

// areaUnder returns the area between a shortest path and the equator, positive
// if the path is in the north and goes east.
//
// It is the pole's belt for the whole turn in longitude less what lies between
// path and pole: near a pole the longitude turns fast, and that part vanishes.
func areaUnder(p, q place) float64 {
	turn := math.Remainder(q.lon-p.lon, 2*math.Pi)
	pole := math.Copysign(hemisphere, p.lat+q.lat)
	line, ok := inverse(p, q)
	if !ok || turn == 0 {
		return pole * turn
	}
	steps := math.Ceil(line.length/quadratureStep) + 1
	half := line.length / steps / 2
	missing := 0.0
	for i := range int(steps) {
		middle := half * float64(2*i+1)
		for k, node := range gaussNodes {
			missing += gaussWeights[k] * (beyond(p, line, pole, middle-node*half) + beyond(p, line, pole, middle+node*half))
		}
	}
	return pole*turn - missing*half
}

// beyond returns the area between path and pole for one metre of the path.
func beyond(p place, line geodesicLine, pole, length float64) float64 {
	lat, azimuth := direct(p.lat, line.azimuth, length)
	sinLat, cosLat := math.Sincos(lat)
	radius := equatorRadius / math.Sqrt(1-eccentricity2*sinLat*sinLat) * cosLat
	if radius < 1e-6 {
		return 0
	}
	return (pole - belt(lat)) * math.Sin(azimuth) / radius
}

// areaLeftOf returns the area to the left of a closed path.
func areaLeftOf(ring []place) float64 {
	under, turns := 0.0, 0.0
	for i, p := range ring {
		q := ring[(i+1)%len(ring)]
		under += areaUnder(p, q)
		turns += math.Remainder(q.lon-p.lon, 2*math.Pi)
	}
	earth := 4 * math.Pi * hemisphere
	area := -under
	if math.Abs(turns) > math.Pi { // around a pole
		area += earth / 2
	}
	if area < 0 {
		area += earth
	}
	return area
}

// leftIsSmaller reports whether less than half of the Earth is to the left of a
// closed path. It takes a sphere and chords of the map, which is enough for that.
func leftIsSmaller(ring []place) bool {
	area, turns := 0.0, 0.0
	for i, p := range ring {
		q := ring[(i+1)%len(ring)]
		turn := math.Remainder(q.lon-p.lon, 2*math.Pi)
		area -= turn * (p.at.z + q.at.z) / 2
		turns += turn
	}
	if math.Abs(turns) > math.Pi { // around a pole
		area += 2 * math.Pi
	}
	if area < 0 {
		area += 4 * math.Pi
	}
	return area < 2*math.Pi
}

// vector3 is a vector in space.
type vector3 struct{ x, y, z float64 }

func (a vector3) plus(b vector3) vector3 { return vector3{a.x + b.x, a.y + b.y, a.z + b.z} }

func (a vector3) minus(b vector3) vector3 { return vector3{a.x - b.x, a.y - b.y, a.z - b.z} }

func (a vector3) times(f float64) vector3 { return vector3{a.x * f, a.y * f, a.z * f} }

func (a vector3) dot(b vector3) float64 { return a.x*b.x + a.y*b.y + a.z*b.z }

func (a vector3) cross(b vector3) vector3 {
	return vector3{a.y*b.z - a.z*b.y, a.z*b.x - a.x*b.z, a.x*b.y - a.y*b.x}
}

func (a vector3) norm() float64 { return math.Sqrt(a.dot(a)) }

func (a vector3) unit() vector3 {
	if n := a.norm(); n > 0 {
		return a.times(1 / n)
	}
	return a
}

// anyPerpendicular returns some unit vector at a right angle to a.
func (a vector3) anyPerpendicular() vector3 {
	if math.Abs(a.z) < 0.9 {
		return a.cross(vector3{0, 0, 1}).unit()
	}
	return a.cross(vector3{1, 0, 0}).unit()
}
