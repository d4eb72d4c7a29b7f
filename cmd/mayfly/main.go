// SPDX-License-Identifier: MIT

// Command mayfly is the server and its tools. Its commands and flags are in package
// internal/cli, the database is in package mayfly.
package main

import "github.com/mayflydb/mayfly/internal/cli"

func main() { cli.Main("mayfly") }
