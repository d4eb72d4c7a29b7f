// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/mayflydb/mayfly"
)

type checkCommand struct {
	Data string `default:"mayfly-data" env:"MAYFLY_DATA" placeholder:"DIR" help:"Directory of the data (${default})."`
}

// Run checks the data and prints the problems. It fails if there are any.
func (c *checkCommand) Run() error {
	paceCollector(0)
	report, err := mayfly.Check(c.Data, os.Stderr)
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

type certCommand struct {
	Data string `default:"mayfly-data" env:"MAYFLY_DATA" placeholder:"DIR" help:"Directory of the data (${default})."`
}

// Run prints the certificate.
func (c *certCommand) Run() error {
	pem, err := mayfly.Certificate(c.Data)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(pem)
	return err
}

type versionCommand struct{}

// Run prints the version that the binary was built from.
func (versionCommand) Run() error {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && (version == "" || version == "(devel)") {
				version = "devel-" + s.Value
			}
		}
		fmt.Printf("mayfly %s, %s\n", version, info.GoVersion)
		return nil
	}
	fmt.Println("mayfly", version)
	return nil
}
