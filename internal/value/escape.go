// SPDX-License-Identifier: MIT

package value

// EscapeSpace escapes the tabs, carriage returns and line feeds in the strings of a JSON
// text, where JSON has none, and returns src itself if there are none. It checks nothing:
// what is not JSON otherwise stays so.
func EscapeSpace(src []byte) []byte {
	var dst []byte
	from, inString := 0, false // src is in dst up to from
	for i := 0; i < len(src); i++ {
		escape := byte(0)
		switch src[i] {
		case '"':
			inString = !inString
		case '\\':
			i++ // what it escapes is no end of a string
		case '\t':
			escape = 't'
		case '\r':
			escape = 'r'
		case '\n':
			escape = 'n'
		}
		if escape != 0 && inString {
			dst = append(append(dst, src[from:i]...), '\\', escape)
			from = i + 1
		}
	}
	if dst == nil {
		return src
	}
	return append(dst, src[from:]...)
}
