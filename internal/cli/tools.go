// SPDX-License-Identifier: MIT

package cli

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/mayflydb/mayfly"
)

type checkCommand struct {
	engineFlag
	Data string `default:"mayfly-data" env:"MAYFLY_DATA" placeholder:"DIR" help:"Directory of the data (${default})."`
}

// Run checks the data and prints the problems. It fails if there are any.
func (c *checkCommand) Run() error {
	paceCollector(0)
	report, err := c.check()
	for _, p := range report.Problems {
		fmt.Println(p)
	}
	if err != nil {
		return openFailed(err)
	}
	if report.Found > 0 {
		return fmt.Errorf("%d problems in %d items", report.Found, report.Items)
	}
	fmt.Printf("ok: %d items, %d bytes\n", report.Items, report.Bytes)
	return nil
}

func (c *checkCommand) check() (mayfly.CheckReport, error) {
	if c.Engine == "" {
		return mayfly.Check(c.Data, os.Stderr)
	}
	db, err := c.tool()
	if err != nil {
		return mayfly.CheckReport{}, err
	}
	defer db.Close()
	return mayfly.CheckCluster(db, os.Stderr)
}

type certCommand struct {
	engineFlag
	Data string `default:"mayfly-data" env:"MAYFLY_DATA" placeholder:"DIR" help:"Directory of the data (${default})."`
}

// Run prints the certificate.
func (c *certCommand) Run() error {
	pem, err := c.certificate()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(pem)
	return err
}

func (c *certCommand) certificate() ([]byte, error) {
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

type versionCommand struct{}

// Run prints the version that the binary was built from.
func (versionCommand) Run() error {
	_, err := fmt.Println(versionLine())
	return err
}

// versionLine names the version that the binary was built from.
func versionLine() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "mayfly unknown"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (version == "" || version == "(devel)") {
			version = "devel-" + s.Value
		}
	}
	return fmt.Sprintf("mayfly %s, %s", version, info.GoVersion)
}
