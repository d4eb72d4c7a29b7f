// SPDX-License-Identifier: MIT

// The command shell: queries and commands one after the other, with history and completion.

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/mayflydb/mayfly/internal/client"
)

type shellCommand struct {
	running
	Database  string `arg:"" optional:"" help:"The database to begin with."`
	Container string `arg:"" optional:"" help:"The container to begin with."`
	JSON      bool   `name:"json" help:"Print rows as lines of JSON."`
}

// Help is shown below the usage.
func (*shellCommand) Help() string {
	return `A query may have several lines, and ends with a semicolon. Tab completes, and the arrow keys
go through the history, which is kept in the user's cache directory. Standard input that
is no terminal is read to its end, for scripts; an error ends it.

Examples:

  mayfly shell shop carts
  echo 'SELECT VALUE COUNT(1) FROM c;' | mayfly shell shop carts`
}

const shellHelp = `  use DATABASE [CONTAINER]   choose what queries are for
  ls                         list databases and containers, or the items of the container
  get ID [KEY]               print an item
  put {…}                    write an item
  rm ID [KEY]                delete an item
  json on|off                print rows as JSON, or as a table
  SELECT …;                  run a query, of one line or several
  exit                       leave; so does Ctrl-D. Ctrl-C drops what was typed
`

// shell is a shell that runs.
type shell struct {
	c       *client.Client
	command shellCommand
	out     io.Writer
	says    io.Writer
	name    client.Name
	lines   lineReader
}

// lineReader reads lines; io.EOF is the end, errDropped a line that the user wants no more.
type lineReader interface {
	read(prompt string) (string, error)
	// done notes a whole statement.
	done(statement string)
}

// Run reads statements until the end.
func (s *shellCommand) Run() error {
	c, err := s.open(1)
	if err != nil {
		return err
	}
	sh := &shell{c: c, command: *s, out: os.Stdout, says: os.Stderr, name: client.Name{Database: s.Database, Container: s.Container}}
	if !isTerminal(os.Stdin) {
		sh.lines = &scriptLines{bufio.NewReader(os.Stdin)}
		return sh.run(true)
	}
	fd := int(os.Stdin.Fd())
	keys := &keyboard{r: os.Stdin}
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keys, os.Stdout}, "")
	if width, height, err := term.GetSize(fd); err == nil && width > 0 {
		_ = t.SetSize(width, height)
	}
	history := openHistory()
	t.History = history
	t.AutoCompleteCallback = sh.complete
	sh.lines = &terminalLines{t, fd, history, keys}
	fmt.Fprintf(sh.says, "%s. Type help for help, and exit to leave.\n", c.Endpoint())
	return sh.run(false)
}

// run reads and runs statements. In a script the first error ends it.
func (s *shell) run(script bool) error {
	for {
		statement, err := s.statement()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if statement == "exit" || statement == "quit" {
			return nil
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		err = explained(s.execute(ctx, statement), "")
		stop()
		if err != nil && script {
			return err
		}
		if err != nil {
			fmt.Fprintln(s.says, err)
		}
	}
}

// statement reads a statement: a line, or for a query lines up to a semicolon.
func (s *shell) statement() (string, error) {
	var lines []string
	first := plain(s.name.String()) + "> "
	prompt := first
	for {
		line, err := s.lines.read(prompt)
		if errors.Is(err, errDropped) {
			lines, prompt = nil, first
			continue
		}
		line = strings.TrimSpace(line)
		if err != nil && (!errors.Is(err, io.EOF) || line == "" && len(lines) == 0) {
			return "", err
		}
		if line == "" && len(lines) == 0 {
			continue
		}
		lines = append(lines, line)
		text := strings.TrimSpace(strings.Join(lines, "\n"))
		if err != nil || strings.HasSuffix(line, ";") || !isQuery(text) && complete(text) {
			text = strings.TrimSpace(strings.TrimRight(text, "; \n"))
			s.lines.done(strings.Join(lines, " "))
			return text, nil
		}
		prompt = strings.Repeat(" ", max(0, len(first)-5)) + "...> "
	}
}

func isQuery(text string) bool {
	return len(text) >= 6 && strings.EqualFold(text[:6], "select")
}

// complete reports whether a command has all its lines: an item may have several.
func complete(text string) bool {
	word, rest, _ := strings.Cut(text, " ")
	return !strings.EqualFold(word, "put") || json.Valid([]byte(rest))
}

func (s *shell) execute(ctx context.Context, statement string) error {
	if isQuery(statement) {
		if err := s.chosen(); err != nil {
			return err
		}
		out := newRowPrinter(s.out, s.says, s.command.JSON, 0)
		if err := runQuery(ctx, s.c, s.name, statement, "", nil, out); err != nil {
			return err
		}
		return out.end()
	}
	word, rest, _ := strings.Cut(statement, " ")
	args := strings.Fields(rest)
	switch word = strings.ToLower(word); {
	case word == "help" || word == "?":
		_, err := io.WriteString(s.out, shellHelp)
		return err
	case word == "use" && (len(args) == 1 || len(args) == 2):
		return s.use(ctx, args)
	case word == "json" && len(args) == 1 && (args[0] == "on" || args[0] == "off"):
		s.command.JSON = args[0] == "on"
		return nil
	case word == "ls" && len(args) == 0:
		return s.list(ctx)
	case word == "get" && len(args) > 0:
		return s.get(ctx, args)
	case word == "rm" && len(args) > 0:
		return s.remove(ctx, args)
	case word == "put" && rest != "":
		return s.put(ctx, rest)
	}
	return fmt.Errorf("there is no command %q: type help", statement)
}

// chosen returns an error if no container is chosen.
func (s *shell) chosen() error {
	if s.name.Container == "" {
		return errors.New("choose a container first: use DATABASE CONTAINER")
	}
	return nil
}

func (s *shell) use(ctx context.Context, args []string) error {
	n := client.Name{Database: args[0]}
	if len(args) == 2 {
		n.Container = args[1]
		if _, err := s.c.Container(ctx, n); err != nil {
			return err
		}
	} else if _, err := s.c.Read(ctx, client.Name{}, client.Databases, n.Database); err != nil {
		return err
	}
	s.name = n
	return nil
}

func (s *shell) list(ctx context.Context) error {
	if s.name.Container != "" {
		return s.execute(ctx, everything)
	}
	kind := client.Databases
	if s.name.Database != "" {
		kind = client.Containers
	}
	names, err := s.c.Names(ctx, s.name, kind)
	for _, name := range names {
		fmt.Fprintln(s.out, plain(name))
	}
	return err
}

// keyArgument returns the partition key in the arguments after an id, which may have spaces.
func keyArgument(args []string) string { return strings.Join(args[1:], " ") }

func (s *shell) get(ctx context.Context, args []string) error {
	if err := s.chosen(); err != nil {
		return err
	}
	of, key, err := itemKey(ctx, s.c, s.name, args[0], keyArgument(args))
	if err != nil {
		return err
	}
	a, err := s.c.ReadItem(ctx, of.Name, args[0], key)
	if err != nil {
		return keyHint(err, keyArgument(args))
	}
	var b bytes.Buffer
	if err := json.Indent(&b, a.Body, "", "  "); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "%s\n", b.Bytes())
	return err
}

func (s *shell) remove(ctx context.Context, args []string) error {
	if err := s.chosen(); err != nil {
		return err
	}
	of, key, err := itemKey(ctx, s.c, s.name, args[0], keyArgument(args))
	if err != nil {
		return err
	}
	_, err = s.c.DeleteItem(ctx, of.Name, args[0], key)
	return keyHint(err, keyArgument(args))
}

func (s *shell) put(ctx context.Context, item string) error {
	if err := s.chosen(); err != nil {
		return err
	}
	p := putCommand{Database: s.name.Database, Container: s.name.Container, Item: item}
	done, err := p.writeItem(ctx, s.c)
	if err == nil {
		fmt.Fprintln(s.says, done)
	}
	return err
}

// words are what a statement may consist of.
var words = []string{
	"SELECT", "VALUE", "DISTINCT", "TOP", "FROM", "WHERE", "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "JOIN", "GROUP BY", "ORDER BY", "ASC", "DESC", "OFFSET", "LIMIT",
	"COUNT(1)", "SUM(", "AVG(", "MIN(", "MAX(", "IS_DEFINED(", "CONTAINS(", "STARTSWITH(", "ARRAY_CONTAINS(", "ARRAY_LENGTH(", "GetCurrentTimestamp()",
	"use", "ls", "get", "put", "rm", "json", "help", "exit",
}

// complete completes the word before the cursor, for the line editor.
func (s *shell) complete(line string, at int, key rune) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}
	begin := strings.LastIndexAny(line[:at], " \t(") + 1
	word := line[begin:at]
	candidates := s.candidates(strings.Fields(line[:begin]))
	var found []string
	for _, c := range candidates {
		if len(c) >= len(word) && strings.EqualFold(c[:len(word)], word) {
			found = append(found, c)
		}
	}
	if len(found) == 0 || word == "" && len(found) > 1 {
		return "", 0, false
	}
	prefix := found[0]
	for _, c := range found[1:] {
		for !strings.HasPrefix(c, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	if len(prefix) < len(word) {
		return "", 0, false
	}
	if len(found) == 1 && !strings.HasSuffix(prefix, "(") {
		prefix += " "
	}
	return line[:begin] + prefix + line[at:], begin + len(prefix), true
}

// candidates returns what may come after words.
func (s *shell) candidates(before []string) []string {
	if len(before) == 0 || !strings.EqualFold(before[0], "use") {
		return words
	}
	n, kind := client.Name{}, client.Databases
	if len(before) > 1 {
		n, kind = client.Name{Database: before[1]}, client.Containers
	}
	ctx, cancel := context.WithTimeout(context.Background(), doctorLimit)
	defer cancel()
	names, _ := s.c.Names(ctx, n, kind) // without an answer there is nothing to offer
	return names
}

// scriptLines reads lines from a file.
type scriptLines struct{ r *bufio.Reader }

func (l *scriptLines) read(string) (string, error) { return l.r.ReadString('\n') }
func (l *scriptLines) done(string)                 {}

// terminalLines reads lines from a terminal. Between two lines the terminal is as it was, so
// that Ctrl-C ends what is under way.
type terminalLines struct {
	t    *term.Terminal
	fd   int
	h    *history
	keys *keyboard
}

// errDropped: the user has pressed Ctrl-C in the middle of a line.
var errDropped = errors.New("the line was dropped")

// keyboard reads keys, and notes Ctrl-C, which term.Terminal would take for the end of the input.
// In its place come the keys that go to the end of the line, empty it, and end it.
type keyboard struct {
	r       io.Reader
	ahead   []byte
	dropped int // how often
}

const (
	ctrlC     = "\x03"
	emptyLine = "\x05\x15\r"
)

func (k *keyboard) Read(p []byte) (int, error) {
	if len(k.ahead) == 0 {
		n, err := k.r.Read(p)
		if err != nil || !bytes.Contains(p[:n], []byte(ctrlC)) {
			return n, err
		}
		k.dropped += bytes.Count(p[:n], []byte(ctrlC))
		k.ahead = bytes.ReplaceAll(p[:n], []byte(ctrlC), []byte(emptyLine))
	}
	n := copy(p, k.ahead)
	k.ahead = k.ahead[n:]
	return n, nil
}

func (l *terminalLines) read(prompt string) (line string, err error) {
	before, err := term.MakeRaw(l.fd)
	if err != nil {
		return "", err
	}
	defer func() {
		if failed := term.Restore(l.fd, before); err == nil {
			err = failed
		}
	}()
	return l.line(prompt)
}

// line reads a line from a terminal that passes every key on.
func (l *terminalLines) line(prompt string) (line string, err error) {
	l.t.SetPrompt(prompt)
	line, err = l.t.ReadLine()
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil
	}
	if err == nil && line == "" && l.keys.dropped > 0 {
		l.keys.dropped--
		err = errDropped
	}
	return line, err
}

func (l *terminalLines) done(statement string) { l.h.keep(statement) }

const (
	// maxHistory is how many statements are kept, and maxStatement the longest.
	maxHistory   = 1000
	maxStatement = 64 << 10
)

// history is the statements of this shell and of those before, the oldest first.
type history struct {
	name string // of the file; empty for none
	all  []string
}

func openHistory() *history {
	h := &history{}
	dir, err := os.UserCacheDir()
	if err != nil {
		return h
	}
	dir = filepath.Join(dir, "mayfly")
	if os.MkdirAll(dir, privateDir) != nil {
		return h
	}
	h.name = filepath.Join(dir, "history")
	raw, err := os.ReadFile(h.name)
	if err != nil {
		return h
	}
	h.all = strings.Split(strings.TrimSpace(string(raw)), "\n")
	if len(h.all) > maxHistory {
		h.all = slices.Clone(h.all[len(h.all)-maxHistory:])
		_ = writeSynced(h.name, []byte(strings.Join(h.all, "\n")+"\n")) // a history that stays long does no harm
	}
	return h
}

// Add implements term.History. Whole statements are kept instead of their lines.
func (h *history) Add(string) {}

// Len implements term.History.
func (h *history) Len() int { return len(h.all) }

// At implements term.History.
func (h *history) At(i int) string { return h.all[len(h.all)-1-i] }

// keep adds a statement.
func (h *history) keep(statement string) {
	if len(statement) > maxStatement || len(h.all) > 0 && h.all[len(h.all)-1] == statement {
		return
	}
	h.all = append(h.all, statement)
	if h.name == "" {
		return
	}
	f, err := os.OpenFile(h.name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, privateFile)
	if err != nil {
		return // the history is a comfort
	}
	_, _ = f.WriteString(statement + "\n")
	_ = f.Close()
}
