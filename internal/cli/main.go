// SPDX-License-Identifier: MIT

// Package cli is the command line of the server and its tools: flags, environment and
// signals. The binaries differ only in the storage engines that they can open.
package cli

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/clock"
)

// server is the command that servers run.
type server struct {
	Serve serveCommand `cmd:"" default:"withargs" help:"Serve clients (the default)."`
}

type commands struct {
	ShowVersion kong.VersionFlag `name:"version" short:"v" help:"Print the version."`

	server
	Check      checkCommand      `cmd:"" help:"Check the data of a stopped server."`
	Copy       copyCommand       `cmd:"" help:"Copy all data to another directory or storage engine."`
	Cert       certCommand       `cmd:"" help:"Print the certificate for clients to trust."`
	Clock      clockCommand      `cmd:"" help:"Show, move or correct the time of a server."`
	Explorer   explorerCommand   `cmd:"" help:"Print a link that opens a running server in a browser, signed in. It works once."`
	TTL        ttlCommand        `cmd:"" name:"ttl" help:"Show what expires in a running server, when and why, and control purge."`
	Cluster    clusterCommand    `cmd:"" help:"Show or change the nodes of a cluster."`
	Query      queryCommand      `cmd:"" help:"Run a query."`
	Get        getCommand        `cmd:"" help:"Print an item, or the definition of a container or database."`
	Put        putCommand        `cmd:"" help:"Write an item, or make a container or database."`
	Rm         rmCommand         `cmd:"" help:"Delete an item, a container or a database."`
	Ls         lsCommand         `cmd:"" help:"List databases, containers or items."`
	Export     exportCommand     `cmd:"" help:"Write items to a file, or containers with their definitions to a directory."`
	Import     importCommand     `cmd:"" help:"Read items from a file, or containers from a directory or from another account."`
	Backup     backupCommand     `cmd:"" help:"Back up a running server."`
	Restore    restoreCommand    `cmd:"" help:"Make a directory of data from a backup."`
	Doctor     doctorCommand     `cmd:"" help:"Find out why a server or its clients do not work: port, key, certificate, clock, disk, memory."`
	Bench      benchCommand      `cmd:"" help:"Measure a running server."`
	Shell      shellCommand      `cmd:"" help:"Run queries and commands one after the other, with history and completion."`
	Man        manCommand        `cmd:"" help:"Print manual pages."`
	Completion completionCommand `cmd:"" help:"Print the completion of a shell."`
	Health     healthCommand     `cmd:"" help:"Is a running server ready? For checks of containers: fails if it is not."`
	Help       helpCommand       `cmd:"" help:"Show help for a command."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
}

const description = `A document database that forgets on time. It speaks the REST protocol of Azure Cosmos DB for NoSQL.

Examples:

  mayfly                                  serve on 127.0.0.1:8081, data in ./mayfly-data
  mayfly serve --memory --test-clock      for tests: data in memory, the time can be moved
  mayfly serve --listen 0.0.0.0:8081 --key-file mayfly.key
  mayfly serve --engine postgres://db/mayfly --node a --peer https://10.0.0.1:8081
  mayfly check --data ./mayfly-data       does every item have all its rows?
  mayfly copy --from ./mayfly-data --to postgres://db/mayfly
  mayfly cert > mayfly.pem                NODE_EXTRA_CA_CERTS=mayfly.pem node app.js
  mayfly clock advance 90s                with serve --test-clock
  mayfly clock rewind                     after the machine's clock was wrong, on a stopped server
  mayfly explorer                         a link that opens the server in a browser, signed in
  mayfly put shop carts --key-path /customer --ttl 1h
  mayfly put shop carts '{"id":"1","customer":"ada"}'
  mayfly query shop carts 'SELECT * FROM c WHERE c.customer = "ada"'
  mayfly export shop carts --to carts.jsonl
  mayfly import --from 'AccountEndpoint=https://…;AccountKey=…;' --follow
  mayfly ttl                              what is live and what has expired; see mayfly ttl --help`

// durations lets flags take durations as all of Mayfly does.
func durations() kong.Option {
	return kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration))
}

// decodeDuration decodes the value of a flag that is a duration.
func decodeDuration(c *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := c.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := clock.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is %w", text, err)
	}
	target.SetInt(int64(d))
	return nil
}

// options say how the command line of the program name is read.
func options(name string) []kong.Option {
	return []kong.Option{
		kong.Name(name), kong.Description(description), kong.Vars{"engines": engineExamples(), "version": versionLine()},
		durations(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	}
}

type helpCommand struct {
	Command  []string `arg:"" optional:"" help:"The command, as in mayfly help ttl events."`
	Markdown bool     `help:"Print all commands and settings as one page of Markdown."`
}

// Run prints the help of a command, and ends the process.
func (h *helpCommand) Run(k *kong.Kong) error {
	if h.Markdown {
		_, err := fmt.Fprint(k.Stdout, reference(k.Model))
		return err
	}
	_, err := k.Parse(append(slices.Clone(h.Command), "--help"))
	k.FatalIfErrorf(err)
	return nil
}

// serves reports whether arguments are those of a server, which is the command where none is
// named.
func serves(args []string) bool {
	return len(args) == 0 || strings.HasPrefix(args[0], "-") || args[0] == "serve"
}

// serving returns the parsed command line of a server; nil if it is not one, and if there is
// something to say of it, as help, errors and unknown variables, for which all commands are
// needed. What the library makes of the flags of all commands is three times what they take
// here, and a server would keep it as long as it runs: it leaves so little garbage while
// nothing is asked of it that the collector does not run.
func serving(name string, args, environment []string) *kong.Context {
	if !serves(args) {
		return nil
	}
	var only server
	k := kong.Must(&only, append(options(name), kong.NoDefaultHelp())...)
	if len(strange(k.Model, environment)) > 0 {
		return nil
	}
	parsed, err := k.Parse(args)
	if err != nil {
		return nil
	}
	return parsed
}

// suggested adds the command that was probably meant to an error of a command line that begins
// with none. The library takes such a word for an argument of the server, which is the default.
func suggested(err error, args []string, model *kong.Application) error {
	if err == nil || len(args) == 0 || err.Error() != "unexpected argument "+args[0] {
		return err
	}
	var names []string
	for _, n := range model.Children {
		names = append(names, n.Name)
	}
	near := nearest(args[0], names)
	if near == "" || 2*distance(args[0], near) > len(args[0]) {
		return fmt.Errorf("%w: mayfly help lists the commands", err)
	}
	return fmt.Errorf("%w, did you mean %q?", err, near)
}

// Main runs the program with its arguments, and ends the process if that fails. name is what
// people call the program, and more are the storage engines that it can open besides
// PostgreSQL.
func Main(name string, more ...Engine) {
	mayfly.RunScriptWorker()
	engines = append(engines, more...)
	args, err := emulated(os.Args[1:], os.LookupEnv)
	parsed := serving(name, args, os.Environ())
	if err != nil || parsed == nil {
		var c commands
		k := kong.Must(&c, options(name)...)
		warnOfVariables(os.Stderr, k.Model, os.Environ())
		k.FatalIfErrorf(err)
		parsed, err = k.Parse(args)
		k.FatalIfErrorf(suggested(err, args, k.Model))
	}
	if err := parsed.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "mayfly:", err)
		os.Exit(1)
	}
}
