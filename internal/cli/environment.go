// SPDX-License-Identifier: MIT

package cli

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/alecthomas/kong"
)

const ownPrefix = "MAYFLY_"

// ofKubernetes matches the variables that Kubernetes gives every container beside a service
// named mayfly.
var ofKubernetes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^MAYFLY_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_\d+_(TCP|UDP)(_(ADDR|PORT|PROTO))?)?)$`)
})

// strange returns the names of the variables that look like settings and are none of the
// model's.
func strange(model *kong.Application, environment []string) []string {
	known := variables(model.Node)
	var names []string
	for _, line := range environment {
		name, _, _ := strings.Cut(line, "=")
		if strings.HasPrefix(name, ownPrefix) && !slices.Contains(known, name) && !ofKubernetes().MatchString(name) {
			names = append(names, name)
		}
	}
	return names
}

// warnOfVariables names the variables that are strange: a setting that is spelled wrongly has
// no effect.
func warnOfVariables(w io.Writer, model *kong.Application, environment []string) {
	for _, name := range strange(model, environment) {
		hint := ""
		if near := nearest(name, variables(model.Node)); near != "" {
			hint = ": is it " + near + "?"
		}
		fmt.Fprintf(w, "mayfly: there is no setting %s%s\n", name, hint)
	}
}

// variables returns the variables that set the flags of a command and of those below it.
func variables(n *kong.Node) []string {
	var names []string
	for _, f := range n.Flags {
		names = append(names, f.Envs...)
	}
	for _, child := range n.Children {
		names = append(names, variables(child)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// farthest is by how many letters a name may differ from the one that was meant.
const farthest = 3

// nearest returns the known name that a name was probably meant to be; empty for none.
func nearest(name string, known []string) string {
	best, at := "", farthest+1
	for _, k := range known {
		if d := distance(name, k); d < at {
			best, at = k, d
		}
	}
	return best
}

// distance returns how many letters must be changed, added or removed to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
