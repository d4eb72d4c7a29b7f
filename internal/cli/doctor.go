// SPDX-License-Identifier: MIT

// The command doctor looks at what most often keeps a server or its clients from working.

package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/client"
)

type doctorCommand struct {
	running
	printed
	Data string `default:"mayfly-data" env:"MAYFLY_DATA" placeholder:"DIR" help:"Directory of the data (${default})."`
}

// Help is shown below the usage.
func (*doctorCommand) Help() string {
	return `It changes nothing. It fails if something has to be mended.

Examples:

  mayfly doctor
  mayfly doctor --endpoint https://db.example:8081 --ca mayfly.pem --key-file mayfly.key`
}

// finding is what doctor found out about one thing.
type finding struct {
	what, says string
	// remedy is what to do; empty if all is well. bad says that it has to be done.
	remedy string
	bad    bool
}

// mark says at a glance whether something is to be done.
func (f *finding) mark() string {
	switch {
	case f.bad:
		return "BAD"
	case f.remedy != "":
		return "look"
	}
	return "ok"
}

const (
	doctorLimit = 5 * time.Second
	// leastMemory is below what a server needs for a small load.
	leastMemory = 128 << 20
	// signatureSlack is how far the clock of a client may be off that of the server.
	signatureSlack = 15 * time.Minute
	// soonExpires is when the end of a certificate is worth a word.
	soonExpires = 30 * 24 * time.Hour
)

// Run prints what it finds.
func (d *doctorCommand) Run() error {
	ctx, stop := interruptible()
	defer stop()
	endpoint, key, err := d.address()
	if err != nil {
		return err
	}
	findings := []finding{d.version()}
	open := d.port(ctx, endpoint)
	findings = append(findings, open)
	if !open.bad {
		findings = append(findings, d.server(ctx, endpoint, key)...)
		findings = append(findings, d.certificate(ctx, endpoint))
	}
	findings = append(findings, d.disk()...)
	findings = append(findings, d.memory())
	bad := 0
	var all []any
	for _, f := range findings {
		if f.bad {
			bad++
		}
		all = append(all, map[string]string{"state": strings.ToLower(f.mark()), "what": f.what, "says": f.says, "remedy": f.remedy})
	}
	err = d.show(func() error {
		for _, f := range findings {
			fmt.Printf("%-5s %-12s %s\n", f.mark(), f.what, f.says)
			if f.remedy != "" {
				fmt.Printf("%-5s %-12s %s\n", "", "", f.remedy)
			}
		}
		return nil
	}, all...)
	if err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d of these have to be mended", bad)
	}
	return nil
}

func (d *doctorCommand) version() finding {
	return finding{what: "version", says: fmt.Sprintf("%s, %s/%s", versionLine(), runtime.GOOS, runtime.GOARCH)}
}

// port connects to the server.
func (d *doctorCommand) port(ctx context.Context, endpoint string) finding {
	f := finding{what: "port"}
	at, err := url.Parse(endpoint)
	if err != nil {
		return finding{"port", err.Error(), "Give the server's URL with --endpoint, such as https://localhost:8081/.", true}
	}
	host := at.Host
	if at.Port() == "" {
		host = net.JoinHostPort(at.Hostname(), map[string]string{"https": "443"}[at.Scheme])
		if at.Scheme == "http" {
			host = net.JoinHostPort(at.Hostname(), "80")
		}
	}
	conn, err := (&net.Dialer{Timeout: doctorLimit}).DialContext(ctx, "tcp", host)
	if err != nil {
		f.says, f.bad = fmt.Sprintf("nothing answers at %s: %v", host, err), true
		f.remedy = "Start a server (mayfly), or name the one that is meant with --endpoint or MAYFLY_ENDPOINT."
		if !onThisMachine(at.Hostname()) {
			f.remedy = "Is the server started with --listen 0.0.0.0:PORT and a key of its own, and is the port open in firewalls and published by its container?"
		}
		return f
	}
	_ = conn.Close()
	f.says = host + " answers"
	return f
}

// server asks the server whether it is ready, what it thinks of the key, and its time.
func (d *doctorCommand) server(ctx context.Context, endpoint, key string) []finding {
	c, err := dial(client.Options{Endpoint: endpoint, Key: key, Patience: -1}, d.CA)
	if err != nil {
		return []finding{{"key", err.Error(), "Give the server's key in base64, with --key-file or MAYFLY_KEY.", true}}
	}
	a, err := c.Do(ctx, &client.Request{Method: http.MethodGet, Path: "/"})
	known := "the key is right"
	if key == mayfly.WellKnownKey {
		known = "the well-known key of the emulators is right"
	}
	keys := finding{what: "key", says: known}
	var refused *client.Error
	var unknown x509.UnknownAuthorityError
	var named x509.HostnameError
	switch {
	case err == nil:
	case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized:
		keys = finding{"key", refused.Message, "Give the server's key with --key-file or MAYFLY_KEY. Without one, the well-known key is used.", true}
	case errors.As(err, &refused) && refused.Status == http.StatusForbidden:
		keys = finding{"key", refused.Message, "If it is about the date, set this machine's clock; if about the host, start the server with --allow-host.", true}
	case errors.As(err, &unknown):
		return []finding{{"certificate", err.Error(), "Trust the server's certificate: mayfly cert > mayfly.pem there, and --ca mayfly.pem here. SDKs: NODE_EXTRA_CA_CERTS, REQUESTS_CA_BUNDLE, a trust store.", true}}
	case errors.As(err, &named):
		return []finding{{"certificate", err.Error(), "Reach the server by a name that its certificate has, or give it one with that name.", true}}
	default:
		keys = finding{"key", err.Error(), "Is it a server of this kind? mayfly health says whether it is ready.", true}
	}
	findings := []finding{keys}
	if a != nil {
		if date, err := http.ParseTime(a.Header.Get("Date")); err == nil {
			off := time.Since(date).Round(time.Second)
			f := finding{what: "clock", says: fmt.Sprintf("the machines' clocks differ by %v", off.Abs())}
			if off.Abs() > signatureSlack/2 {
				f.remedy, f.bad = "Signatures are refused if they are more than 15 minutes off: set the clocks, for example with NTP.", off.Abs() > signatureSlack
			}
			findings = append(findings, f)
		}
	}
	if keys.bad {
		return findings
	}
	return append(findings, d.databaseTime(ctx, c))
}

// databaseTime asks for the time by which items expire.
func (d *doctorCommand) databaseTime(ctx context.Context, c *client.Client) finding {
	f := finding{what: "time"}
	_, key, _ := d.address()
	warnOfClearKey(c.Endpoint(), key)
	res, err := c.Page(ctx, http.MethodGet, "clock", nil, nil, doctorLimit)
	if err != nil {
		f.says = "the server does not say by which time items expire: it is another emulator, or the service"
		return f
	}
	defer res.Body.Close()
	var s struct {
		Now, Mode, Advice, Reason string
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxResponseBytes)).Decode(&s); err != nil {
		f.says, f.remedy = "the server's answer cannot be read", "Use the mayfly of the server's version."
		return f
	}
	f.says = fmt.Sprintf("items expire by %s (%s clock)", s.Now, s.Mode)
	if s.Mode == "ahead" || s.Mode == "held" || s.Mode == "standing still" {
		f.remedy = "See mayfly clock for what to do."
	}
	return f
}

// certificate looks at the certificate that the server presents.
func (d *doctorCommand) certificate(ctx context.Context, endpoint string) finding {
	f := finding{what: "certificate"}
	at, err := url.Parse(endpoint)
	if err != nil {
		return finding{"certificate", err.Error(), "", true}
	}
	host := at.Hostname()
	address := at.Host
	if at.Port() == "" {
		address = net.JoinHostPort(host, "443")
	}
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: doctorLimit}, Config: &tls.Config{ServerName: host, InsecureSkipVerify: true}} // it is looked at, and nothing is sent
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		f.says = "the port speaks no TLS"
		f.remedy = "Java and .NET in direct mode need it; other SDKs can use http."
		return f
	}
	defer conn.Close()
	chain := conn.(*tls.Conn).ConnectionState().PeerCertificates
	leaf := chain[0]
	f.says = fmt.Sprintf("valid until %s, for %v", leaf.NotAfter.Format(time.DateOnly), names(leaf))
	pool, err := roots(d.CA, onThisMachine(host))
	if err != nil {
		f.says, f.remedy, f.bad = err.Error(), "Give a file with a certificate, as mayfly cert prints it.", true
		return f
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err = leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: pool, Intermediates: between})
	var unknown x509.UnknownAuthorityError
	switch {
	case time.Now().After(leaf.NotAfter):
		f.remedy, f.bad = "It has ended: restart the server, which makes a new one if it made this one.", true
	case errors.As(err, &unknown):
		f.remedy = "Clients do not trust it by themselves: mayfly cert prints it, and --ca, NODE_EXTRA_CA_CERTS and the like take it."
	case err != nil:
		f.remedy = "Clients will refuse it: " + err.Error()
	case time.Until(leaf.NotAfter) < soonExpires:
		f.remedy = "It ends soon."
	}
	return f
}

func names(c *x509.Certificate) []string {
	all := append([]string{}, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	return all
}

// disk looks at the directory of the data.
func (d *doctorCommand) disk() []finding {
	f := finding{what: "data"}
	info, err := os.Stat(mayfly.StoreDir(d.Data))
	if err != nil {
		f.says = "there is no data in " + d.Data + " yet"
		return []finding{f}
	}
	f.says = d.Data
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		f.remedy = "Other users have access to it: a server closes it when it starts."
	}
	findings := []finding{f}
	probe, err := os.CreateTemp(d.Data, "doctor-")
	if err != nil {
		return append(findings, finding{"disk", err.Error(), "Run the server as a user that may write there, or choose another directory with --data.", true})
	}
	_, err = probe.Write(bytes.Repeat([]byte{0}, 4096))
	err = errors.Join(err, probe.Sync(), probe.Close(), os.Remove(probe.Name()))
	if err != nil {
		return append(findings, finding{"disk", err.Error(), "Free some space, or choose another directory with --data.", true})
	}
	free, known := mayfly.FreeBytes(d.Data)
	switch {
	case !known:
		findings = append(findings, finding{what: "disk", says: "it can be written to"})
	case free < mayfly.LeastFreeBytes:
		findings = append(findings, finding{"disk", byteCount(int64(free)) + " are free", "The server refuses writes that add data below " + byteCount(mayfly.LeastFreeBytes) + ": free some space.", true})
	default:
		findings = append(findings, finding{what: "disk", says: byteCount(int64(free)) + " are free"})
	}
	if raw, err := mayfly.Certificate(d.Data); err == nil {
		if block, _ := pem.Decode(raw); block == nil {
			findings = append(findings, finding{"data", "the certificate in it cannot be read", "Remove it: the next start makes a new one.", true})
		}
	}
	return findings
}

// memory looks at the memory that a server would divide.
func (d *doctorCommand) memory() finding {
	bytes := mayfly.AvailableMemory()
	f := finding{what: "memory", says: byteCount(bytes) + " for a server on this machine or in this container"}
	switch {
	case bytes == 0:
		f.says, f.remedy = "not known on this system", "A server assumes 2 GiB: set --memory-limit."
	case bytes < leastMemory:
		f.remedy = "That is little: raise the limit of the container, or expect 429 for large requests."
	}
	return f
}
