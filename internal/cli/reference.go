// SPDX-License-Identifier: MIT

// The reference of all commands and settings as a page, made from the flags, so that it never
// says anything else than they do.

package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// reference returns the page.
func reference(app *kong.Application) string {
	var b strings.Builder
	b.WriteString("# Configuration\n\nEvery command with its flags, made from the program. A flag that has a variable may be given by either; the flag wins. `mayfly help COMMAND` says the same.\n")
	describe(&b, app.Node, "mayfly")
	return b.String()
}

// describe writes a command and those below it.
func describe(b *strings.Builder, n *kong.Node, name string) {
	for _, child := range n.Children {
		if child.Hidden {
			continue
		}
		path := name + " " + child.Name
		fmt.Fprintf(b, "\n## %s\n\n%s\n", path, child.Help)
		if child.Detail != "" {
			// Examples, which have two spaces before them, are code.
			fmt.Fprintf(b, "\n%s\n", strings.ReplaceAll(child.Detail, "\n  ", "\n    "))
		}
		rows := []string{}
		for _, p := range child.Positional {
			rows = append(rows, fmt.Sprintf("| `%s` | | | %s |", p.Summary(), tableCell(p.Help)))
		}
		for _, f := range child.Flags {
			if f.Hidden || f.Name == "help" {
				continue
			}
			rows = append(rows, fmt.Sprintf("| `--%s` | %s | %s | %s |", f.Name, code(strings.Join(f.Envs, ", ")), code(f.Default), tableCell(f.Help)))
		}
		if len(rows) > 0 {
			fmt.Fprintf(b, "\n| flag | variable | default | |\n| --- | --- | --- | --- |\n%s\n", strings.Join(rows, "\n"))
		}
		describe(b, child, path)
	}
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// tableCell makes a text the cell of a table.
func tableCell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(text)
}
