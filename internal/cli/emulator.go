// SPDX-License-Identifier: MIT

// Emulator mode: the server takes the place of the service's emulators in containers. It
// understands their arguments and variables, listens on their ports, and says in their words
// that it is ready, so that programs which start them need nothing but another image.
// docs/emulator.md lists what is understood.

package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly"
)

const (
	emulatorFlag     = "--emulator"
	emulatorVariable = "MAYFLY_EMULATOR"
	// maxPEMBytes bounds what is read of a file that may be a certificate.
	maxPEMBytes = 1 << 20
)

// The ports of the emulators.
const (
	emulatorPort         = "8081"
	emulatorExplorerPort = "1234"
	emulatorHealthPort   = "8080"
)

// emulatorSettings are the arguments of the emulators, with their variables. An argument wins
// over a variable. A setting without a function has no effect here.
var emulatorSettings = []struct {
	arg, variable string
	apply         func(*emulation, string) error
}{
	{"--port", "PORT", func(e *emulation, v string) error { e.port = v; return nil }},
	{"--protocol", "PROTOCOL", (*emulation).protocol},
	{"--enable-explorer", "ENABLE_EXPLORER", (*emulation).explorer},
	{"--explorer-port", "EXPLORER_PORT", func(e *emulation, v string) error { e.explorerPort = v; return nil }},
	{"--explorer-protocol", "EXPLORER_PROTOCOL", nil},
	{"--gateway-endpoint", "GATEWAY_PUBLIC_ENDPOINT", (*emulation).name},
	{"", "AZURE_COSMOS_EMULATOR_IP_ADDRESS_OVERRIDE", (*emulation).name},
	{"--key-file", "KEY_FILE", func(e *emulation, v string) error { return e.flag("--key-file", v) }},
	{"", "AZURE_COSMOS_EMULATOR_KEY", func(e *emulation, v string) error { return e.flag("--key", v) }},
	{"--data-path", "DATA_PATH", func(e *emulation, v string) error { return e.flag("--data", v) }},
	{"", "AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE", (*emulation).persistence},
	{"--cert-path", "CERT_PATH", (*emulation).certificate},
	{"", "CERT_SECRET", nil},
	{"--log-level", "LOG_LEVEL", (*emulation).level},
	{"--enable-otlp", "ENABLE_OTLP_EXPORTER", nil},
	{"--enable-console", "ENABLE_CONSOLE_EXPORTER", nil},
	{"--enable-telemetry", "ENABLE_TELEMETRY", nil},
	{"", "AZURE_COSMOS_EMULATOR_PARTITION_COUNT", nil},
	{"", "AZURE_COSMOS_EMULATOR_ARGS", nil},
}

// emulation is the translation of the emulators' settings.
type emulation struct {
	args               []string // for the server
	given              []string // flags that the user gave, which win
	lookup             func(string) (string, bool)
	port, explorerPort string
	noExplorer         bool
}

// emulated returns the arguments of a server that is to take the place of an emulator, with
// the emulators' own translated. Without emulator mode it returns them as they are.
func emulated(args []string, lookup func(string) (string, bool)) ([]string, error) {
	asked := slices.Contains(args, emulatorFlag) || emulating(lookup)
	if !asked || !serves(args) {
		return args, nil
	}
	values, rest, err := emulatorArguments(args)
	if err != nil {
		return nil, err
	}
	if len(rest) == 0 || rest[0] != "serve" {
		rest = append([]string{"serve"}, rest...)
	}
	e := &emulation{given: rest, lookup: lookup, port: emulatorPort, explorerPort: emulatorExplorerPort}
	for i, s := range emulatorSettings {
		value, given := values[i]
		if !given {
			if value, given = lookup(s.variable); !given || value == "" {
				continue
			}
		}
		if s.apply == nil {
			continue
		}
		if err := s.apply(e, value); err != nil {
			return nil, fmt.Errorf("%s is %q: %w", s.variable, value, err)
		}
	}
	if !slices.Contains(rest, emulatorFlag) {
		rest = append(rest, emulatorFlag)
	}
	e.orDefault("--listen", "MAYFLY_LISTEN", "0.0.0.0:"+e.port)
	if !e.noExplorer {
		e.orDefault("--explorer-listen", "MAYFLY_EXPLORER_LISTEN", "0.0.0.0:"+e.explorerPort)
	}
	e.orDefault("--health-listen", "MAYFLY_HEALTH_LISTEN", "0.0.0.0:"+emulatorHealthPort)
	return append(rest, e.args...), nil
}

// emulating reports whether the environment asks for emulator mode.
func emulating(lookup func(string) (string, bool)) bool {
	on, _ := lookup(emulatorVariable)
	return on == "true" || on == "1"
}

// emulatorArguments separates the emulators' arguments, by the indexes of their settings, from
// the server's own. --key-file and --log-level are both, with the same meaning.
func emulatorArguments(args []string) (values map[int]string, rest []string, err error) {
	values = map[int]string{}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		at := -1
		for n, s := range emulatorSettings {
			if s.arg == name && name != "" {
				at = n
			}
		}
		if at < 0 {
			rest = append(rest, args[i])
			continue
		}
		if !joined {
			if i++; i == len(args) {
				return nil, nil, fmt.Errorf("%s needs a value", name)
			}
			value = args[i]
		}
		values[at] = value
	}
	return values, rest, nil
}

// orDefault sets a flag unless the user has set it.
func (e *emulation) orDefault(flag, variable, value string) {
	_, inEnvironment := e.lookup(variable)
	if !inEnvironment && !slices.ContainsFunc(e.given, func(arg string) bool { return arg == flag || strings.HasPrefix(arg, flag+"=") }) {
		e.args = append(e.args, flag+"="+value)
	}
}

func (e *emulation) flag(name, value string) error {
	e.args = append(e.args, name+"="+value)
	return nil
}

// protocol checks a protocol. The server speaks both on one port.
func (e *emulation) protocol(value string) error {
	if !slices.Contains([]string{"http", "https", "https-insecure"}, strings.ToLower(value)) {
		return errors.New("give http, https or https-insecure")
	}
	return nil
}

func (e *emulation) explorer(value string) error {
	on, err := truth(value)
	if err == nil && !on {
		e.noExplorer = true
		return e.flag("--explorer", "false")
	}
	return err
}

// name adds a host by which clients reach the server to its certificate.
func (e *emulation) name(value string) error {
	e.args = append(e.args, "--tls-name="+value, "--allow-host="+value)
	return nil
}

func (e *emulation) persistence(value string) error {
	on, err := truth(value)
	if err == nil && !on {
		return e.flag("--memory", "true")
	}
	return err
}

// certificate takes a file with a certificate and its key, in PEM.
func (e *emulation) certificate(value string) error {
	f, err := os.Open(value)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxPEMBytes))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if !strings.Contains(string(text), "-----BEGIN ") {
		return errors.New("it is not PEM, and files of type PFX are not read: convert it with openssl pkcs12 -in FILE.pfx -nodes -out FILE.pem, or give --tls-cert and --tls-key")
	}
	e.args = append(e.args, "--tls-cert="+value, "--tls-key="+value)
	return nil
}

func (e *emulation) level(value string) error {
	level, ok := map[string]string{
		"quiet": "error", "error": "error", "warn": "warn", "info": "info", "debug": "debug", "trace": "debug",
	}[strings.ToLower(value)]
	if !ok {
		return errors.New("give quiet, error, warn, info, debug or trace")
	}
	return e.flag("--log-level", level)
}

// truth reads a truth value as the emulators do: Python and .NET write it with a capital.
func truth(value string) (bool, error) {
	switch strings.ToLower(value) {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, errors.New("give true or false")
}

// emulatorFlags are the flags of a server that takes the place of an emulator.
type emulatorFlags struct {
	Emulator       bool   `env:"MAYFLY_EMULATOR" help:"Take the place of the service's emulators in a container: listen on all addresses with their public key, understand their arguments and variables, and say in their words when all is ready. Anybody who reaches the port has all rights. See docs/emulator.md."`
	ExplorerListen string `env:"MAYFLY_EXPLORER_LISTEN" placeholder:"HOST:PORT" help:"One more address at which the explorer is served, as the emulators do on port 1234."`
	HealthListen   string `env:"MAYFLY_HEALTH_LISTEN" placeholder:"HOST:PORT" help:"One more address, over HTTP, with nothing but /alive, /ready and /status, as the emulators have on port 8080."`
	WriteCert      string `env:"MAYFLY_WRITE_CERT" placeholder:"FILE" help:"Write the certificate that clients must trust to this file at the start."`
}

// healthTimeout bounds a request for health.
const healthTimeout = 10 * time.Second

// listenMore serves the additional addresses. In emulator mode one that is taken is only
// logged, since few programs need it. served gets the end of serving, and close ends the rest.
func (c *serveCommand) listenMore(s *mayfly.Server, served chan<- error, logger *slog.Logger) (close func(), err error) {
	var health *http.Server
	for _, more := range []struct {
		address string
		serve   func(net.Listener)
	}{
		{c.ExplorerListen, func(l net.Listener) { served <- s.Serve(l) }},
		{c.HealthListen, func(l net.Listener) {
			health = &http.Server{Handler: healthPages(s.Handler()), ReadHeaderTimeout: healthTimeout, WriteTimeout: healthTimeout}
			go func() { _ = health.Serve(l) }()
		}},
	} {
		if more.address == "" {
			continue
		}
		l, err := net.Listen("tcp", more.address)
		if err != nil {
			if !c.Emulator {
				return nil, listenFailed(more.address, err)
			}
			logger.Warn("an address of the emulators is not served", "address", more.address, "error", err)
			continue
		}
		if err := (mayfly.Options{Emulator: c.Emulator, Key: s.Key()}).Admits(l.Addr()); err != nil {
			return nil, errors.Join(err, l.Close())
		}
		if more.address == c.ExplorerListen {
			go more.serve(l)
			fmt.Printf("The explorer is at http://%s too.\n", l.Addr())
		} else {
			more.serve(l)
			fmt.Printf("Health is at http://%s/ready.\n", l.Addr())
		}
	}
	return func() {
		if health != nil {
			_ = health.Close()
		}
	}, nil
}

// healthPages are the pages of the emulators' port 8080.
func healthPages(h http.Handler) http.Handler {
	pages := map[string]string{"/alive": "/_mayfly/health", "/ready": "/_mayfly/ready", "/status": "/_mayfly/ready"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, known := pages[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		own := r.Clone(r.Context())
		own.URL.Path, own.URL.RawPath, own.Host = page, "", "localhost"
		h.ServeHTTP(w, own)
	})
}

// announce says in the emulators' words that the server is ready. Programs wait for these
// lines: the Testcontainers modules for Node.js, Go, Python and Java, in this order. Java
// wants the last one alone, with the line end of Windows.
func announce(w io.Writer, a net.Addr) {
	fmt.Fprintf(w, "WARNING: emulator mode. The key is public: anybody who reaches this port has all rights.\n")
	fmt.Fprintf(w, "Now listening on: http://%s\n", a)
	fmt.Fprintf(w, "System is now fully ready to accept requests\n")
	fmt.Fprintf(w, "Started\r\n")
}

// writeCertificate writes the certificate that clients must trust to a file.
func writeCertificate(name string, pem []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("write the certificate for clients: %w", err)
	}
	if err := os.WriteFile(name, pem, 0o644); err != nil {
		return fmt.Errorf("write the certificate for clients: %w", err)
	}
	return nil
}
