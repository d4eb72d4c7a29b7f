// SPDX-License-Identifier: MIT

package cli

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"runtime/debug"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mayflydb/mayfly"
)

type checkCommand struct {
	engineFlag
	printed
	Data string `default:"mayfly-data" env:"MAYFLY_DATA" placeholder:"DIR" help:"Directory of the data (${default})."`
}

// Run checks the data and prints the problems. It fails if there are any.
func (c *checkCommand) Run(k *kong.Context) error {
	if err := c.alone(k); err != nil {
		return err
	}
	paceCollector(0)
	report, err := c.check()
	said := c.show(func() error {
		for _, p := range report.Problems {
			fmt.Println(p)
		}
		if err == nil && report.Found == 0 {
			fmt.Printf("ok: %d items, %d bytes\n", report.Items, report.Bytes)
		}
		return nil
	}, struct {
		OK       bool     `json:"ok"`
		Items    int64    `json:"items"`
		Bytes    int64    `json:"bytes"`
		Found    int      `json:"found"`
		Problems []string `json:"problems"`
	}{err == nil && report.Found == 0, report.Items, report.Bytes, report.Found, report.Problems})
	if err != nil {
		return openFailed(err)
	}
	if report.Found > 0 {
		if report.Found == 1 {
			return fmt.Errorf("1 problem in %d items", report.Items)
		}
		return fmt.Errorf("%d problems in %d items", report.Found, report.Items)
	}
	return said
}

// checked runs a check whose progress is shown.
func checked(check func(func(mayfly.CheckProgress)) (mayfly.CheckReport, error)) (mayfly.CheckReport, error) {
	w := &work{}
	w.begin("checking", "items", 0)
	defer showProgress(w)()
	known := false
	return check(func(p mayfly.CheckProgress) {
		if !known {
			known = true
			w.begin("checking", "items", p.AllItems)
		}
		w.reach(p.Items)
	})
}

func (c *checkCommand) check() (mayfly.CheckReport, error) {
	if c.Engine == "" {
		return checked(func(report func(mayfly.CheckProgress)) (mayfly.CheckReport, error) {
			return mayfly.Check(c.Data, report)
		})
	}
	db, err := c.tool()
	if err != nil {
		return mayfly.CheckReport{}, err
	}
	defer db.Close()
	return checked(func(report func(mayfly.CheckProgress)) (mayfly.CheckReport, error) {
		return mayfly.CheckCluster(db, report)
	})
}

type certCommand struct {
	engineFlag
	Data     string `default:"mayfly-data" env:"MAYFLY_DATA" placeholder:"DIR" help:"Directory of the data (${default})."`
	Endpoint string `env:"MAYFLY_ENDPOINT" placeholder:"URL" help:"A running server to ask instead, which may have its data in memory or a certificate of its own, as in --endpoint http://127.0.0.1:8081."`
}

// Run prints the certificate.
func (c *certCommand) Run(k *kong.Context) error {
	if err := c.alone(k); err != nil {
		return err
	}
	pem, err := c.certificate()
	if errors.Is(err, mayfly.ErrNoCertificate) {
		return fmt.Errorf("%w. That of a running server: mayfly cert --endpoint http://127.0.0.1:8081", err)
	}
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(pem)
	return err
}

func (c *certCommand) certificate() ([]byte, error) {
	if c.Endpoint != "" {
		return presented(c.Endpoint)
	}
	if c.Engine == "" {
		return mayfly.Certificate(c.Data)
	}
	db, err := c.tool()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return mayfly.ClusterCertificate(db)
}

// presentedLimit is how long a server may take to present its certificate.
const presentedLimit = 10 * time.Second

// presented returns the certificate that clients of a running server must trust: the last of
// the chain that it presents. Nothing vouches for it, so for a server on another machine its
// fingerprint is shown, to be compared.
func presented(endpoint string) ([]byte, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Hostname() == "" {
		return nil, fmt.Errorf("%q is no URL of a server, such as http://127.0.0.1:8081", endpoint)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80"}[u.Scheme]
	}
	address := net.JoinHostPort(u.Hostname(), cmp.Or(port, "443"))
	// The certificate is what is asked for, so it cannot be verified.
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: presentedLimit}, "tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return nil, fmt.Errorf("cannot ask the server at %s for its certificate: %w: is it running?", endpoint, err)
	}
	defer conn.Close()
	chain := conn.ConnectionState().PeerCertificates
	last := chain[len(chain)-1]
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		fmt.Fprintf(os.Stderr, "mayfly: the certificate came over the network. Compare its fingerprint with what openssl x509 -noout -fingerprint -sha256 shows on the server: %X\n", sha256.Sum256(last.Raw))
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: last.Raw}), nil
}

type versionCommand struct{}

// Run prints the version that the binary was built from.
func (versionCommand) Run() error {
	_, err := fmt.Println(versionLine())
	return err
}

// version is that of a release, which sets it when it links: -ldflags "-X …/cli.version=v0.1.0".
// The builds of images do not see the repository, from which Go would take it.
var version string

// versionLine names the version that the binary was built from.
func versionLine() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "mayfly " + cmp.Or(version, "unknown")
	}
	of := cmp.Or(version, info.Main.Version)
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (of == "" || of == "(devel)") {
			of = "devel-" + s.Value
		}
	}
	return fmt.Sprintf("mayfly %s, %s", of, info.GoVersion)
}
