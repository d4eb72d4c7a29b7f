// SPDX-License-Identifier: MIT

package geo

import "math"

// vector is a vector in space: on the globe a direction from the middle of the Earth,
// of unit length; on a plane a point whose z is zero.
type vector struct{ x, y, z float64 }

// direction returns the direction of a point whose coordinates are in radians.
func direction(lon, lat float64) vector {
	sinLat, cosLat := math.Sincos(lat)
	sinLon, cosLon := math.Sincos(lon)
	return vector{cosLat * cosLon, cosLat * sinLon, sinLat}
}

func (a vector) plus(b vector) vector { return vector{a.x + b.x, a.y + b.y, a.z + b.z} }

func (a vector) minus(b vector) vector { return vector{a.x - b.x, a.y - b.y, a.z - b.z} }

func (a vector) times(f float64) vector { return vector{a.x * f, a.y * f, a.z * f} }

func (a vector) over(f float64) vector { return vector{a.x / f, a.y / f, a.z / f} }

func (a vector) dot(b vector) float64 { return a.x*b.x + a.y*b.y + a.z*b.z }

func (a vector) cross(b vector) vector {
	return vector{a.y*b.z - a.z*b.y, a.z*b.x - a.x*b.z, a.x*b.y - a.y*b.x}
}

func (a vector) norm() float64 { return math.Sqrt(a.dot(a)) }

// unit returns the vector of length one in the same direction.
func (a vector) unit() vector {
	if n := a.norm(); n > 0 {
		return a.times(1 / n)
	}
	return a
}

// angle returns the angle between two vectors in radians.
func (a vector) angle(b vector) float64 { return math.Atan2(a.cross(b).norm(), a.dot(b)) }

// anyPerpendicular returns some unit vector at a right angle to a.
func (a vector) anyPerpendicular() vector {
	if math.Abs(a.z) < 0.9 {
		return a.cross(vector{0, 0, 1}).unit()
	}
	return a.cross(vector{1, 0, 0}).unit()
}
