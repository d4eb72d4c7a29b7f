// SPDX-License-Identifier: MIT

// Manual pages and shell completions, from the commands and flags that the parser has.

package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type manCommand struct {
	Dir string `arg:"" optional:"" help:"Directory to write a page for the program and for each command to. Default: print the page of the program."`
}

// Help is shown below the usage.
func (*manCommand) Help() string {
	return `Examples:

  mayfly man | man -l -
  mayfly man /usr/local/share/man/man1`
}

// manMode is the mode of pages: everybody may read them.
const manMode = 0o644

// Run writes the pages.
func (m *manCommand) Run(k *kong.Kong) error {
	if m.Dir == "" {
		return writeManual(os.Stdout, k.Model.Node)
	}
	for _, n := range append([]*kong.Node{k.Model.Node}, commandsBelow(k.Model.Node)...) {
		f, err := os.OpenFile(filepath.Join(m.Dir, manualName(n)+".1"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, manMode)
		if err != nil {
			return err
		}
		if err := writeManual(f, n); err != nil {
			_ = f.Close()
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// commandsBelow returns the commands below a node, each before those below it.
func commandsBelow(n *kong.Node) []*kong.Node {
	var all []*kong.Node
	for _, child := range n.Children {
		if child.Type == kong.CommandNode && !child.Hidden {
			all = append(append(all, child), commandsBelow(child)...)
		}
	}
	return all
}

// wordsOf returns the words of a command, with the name of the program.
func wordsOf(n *kong.Node) []string {
	if n.Parent == nil {
		return []string{n.Name}
	}
	return append(wordsOf(n.Parent), n.Name)
}

func manualName(n *kong.Node) string { return strings.Join(wordsOf(n), "-") }

// roff returns text for a manual page.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// paragraphs returns text with examples as a manual page shows it: lines that begin with
// spaces as they are.
func paragraphs(text string) string {
	var b strings.Builder
	plain := true
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		switch example := strings.HasPrefix(line, "  "); {
		case strings.TrimSpace(line) == "" && plain:
			b.WriteString(".PP\n")
			continue
		case example == plain:
			if plain = !example; plain {
				b.WriteString(".fi\n")
			} else {
				b.WriteString(".nf\n")
			}
		}
		b.WriteString(roff(line) + "\n")
	}
	if !plain {
		b.WriteString(".fi\n")
	}
	return b.String()
}

// writeManual writes the page of a command.
func writeManual(w io.Writer, n *kong.Node) error {
	var b strings.Builder
	words := strings.Join(wordsOf(n), " ")
	short, long, _ := strings.Cut(n.Help, "\n")
	fmt.Fprintf(&b, ".TH %q 1\n.SH NAME\n%s \\- %s\n", strings.ToUpper(manualName(n)), roff(manualName(n)), roff(strings.TrimSuffix(short, ".")))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(words))
	for _, p := range n.Positional {
		fmt.Fprintf(&b, "%s\n", roff(p.Summary()))
	}
	if len(n.Children) > 0 {
		b.WriteString("[COMMAND]\n")
	}
	b.WriteString("[FLAGS]\n")
	if text := strings.TrimSpace(long + "\n" + n.Detail); text != "" {
		b.WriteString(".SH DESCRIPTION\n" + paragraphs(text))
	}
	if len(n.Positional) > 0 {
		b.WriteString(".SH ARGUMENTS\n")
		for _, p := range n.Positional {
			fmt.Fprintf(&b, ".TP\n.I %s\n%s\n", roff(p.Name), roff(p.Help))
		}
	}
	var below []*kong.Node
	for _, child := range n.Children {
		if child.Type == kong.CommandNode && !child.Hidden {
			below = append(below, child)
		}
	}
	if len(below) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, c := range below {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(strings.Join(wordsOf(c), " ")), roff(c.Help))
		}
	}
	if flags := flagsOf(n); len(flags) > 0 {
		b.WriteString(".SH FLAGS\n")
		for _, f := range flags {
			text := f.Help
			if len(f.Envs) > 0 {
				text += " Environment: " + strings.Join(f.Envs, ", ") + "."
			}
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(flagText(f)), roff(text))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func flagText(f *kong.Flag) string {
	text := "--" + f.Name
	if f.Short != 0 {
		text = fmt.Sprintf("-%c, %s", f.Short, text)
	}
	if f.IsBool() {
		return text
	}
	return text + "=" + f.FormatPlaceHolder()
}

// flagsOf returns the flags of a command and of those above it.
func flagsOf(n *kong.Node) []*kong.Flag {
	var all []*kong.Flag
	for at := n; at != nil; at = at.Parent {
		for _, f := range at.Flags {
			if !f.Hidden {
				all = append(all, f)
			}
		}
	}
	if n.DefaultCmd != nil && n.Parent == nil { // the flags of serve are those of the program
		all = append(all, n.DefaultCmd.Flags...)
	}
	return all
}

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: ${enum}."`
}

// Help is shown below the usage.
func (*completionCommand) Help() string {
	return `Examples:

  source <(mayfly completion bash)                       in ~/.bashrc
  source <(mayfly completion zsh)                        in ~/.zshrc
  mayfly completion fish > ~/.config/fish/completions/mayfly.fish`
}

// Run prints the script.
func (c *completionCommand) Run(k *kong.Kong) error {
	script := bashCompletion
	switch c.Shell {
	case "zsh":
		script = func(name, table string) string {
			return "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" + bashCompletion(name, table)
		}
	case "fish":
		script = nil
	}
	if script == nil {
		_, err := io.WriteString(os.Stdout, fishCompletion(k.Model.Node))
		return err
	}
	_, err := io.WriteString(os.Stdout, script(k.Model.Name, bashTable(k.Model.Node)))
	return err
}

// bashTable returns a line of a case for each command: what may come after its words.
func bashTable(root *kong.Node) string {
	var b strings.Builder
	for _, n := range append([]*kong.Node{root}, commandsBelow(root)...) {
		var words []string
		for _, child := range n.Children {
			if child.Type == kong.CommandNode && !child.Hidden {
				words = append(words, child.Name)
			}
		}
		for _, f := range flagsOf(n) {
			word := "--" + f.Name
			if !f.IsBool() {
				word += "="
			}
			words = append(words, word)
		}
		fmt.Fprintf(&b, "    %q) words=%q ;;\n", strings.Join(wordsOf(n), " "), strings.Join(words, " "))
	}
	return b.String()
}

// bashCompletion returns a script that finds the command among the words before the cursor,
// and offers what may come after it. Anything else is a file.
func bashCompletion(name, table string) string {
	function := "_" + strings.ReplaceAll(name, "-", "_")
	return function + `() {
  local at word words path="` + name + `"
  words_of() {
    words=""
    case "$1" in
` + table + `    *) return 1 ;;
    esac
  }
  for ((at = 1; at < COMP_CWORD; at++)); do
    word="${COMP_WORDS[at]}"
    if [[ "$word" != -* ]] && words_of "$path $word"; then path="$path $word"; fi
  done
  words_of "$path"
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
  if [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -o default -F ` + function + ` ` + name + `
`
}

// fishCompletion returns the lines for fish.
func fishCompletion(root *kong.Node) string {
	quote := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
	}
	var b strings.Builder
	var first []string
	for _, n := range commandsBelow(root) {
		if n.Parent == root {
			first = append(first, n.Name)
		}
	}
	for _, n := range commandsBelow(root) {
		words := wordsOf(n)[1:]
		when := "not __fish_seen_subcommand_from " + strings.Join(first, " ")
		if len(words) > 1 {
			when = "__fish_seen_subcommand_from " + words[0]
		}
		fmt.Fprintf(&b, "complete -c %s -n %s -a %s -d %s\n", root.Name, quote(when), n.Name, quote(n.Help))
		var seen []string
		for _, f := range flagsOf(n) {
			if slices.Contains(seen, f.Name) {
				continue
			}
			seen = append(seen, f.Name)
			if len(words) > 1 {
				continue // they are those of the command above, or few
			}
			value := " -r"
			if f.IsBool() {
				value = ""
			}
			fmt.Fprintf(&b, "complete -c %s -n %s -l %s%s -d %s\n", root.Name, quote("__fish_seen_subcommand_from "+words[0]), f.Name, value, quote(f.Help))
		}
	}
	return b.String()
}
