// SPDX-License-Identifier: MIT

// Package compose checks deploy/compose.yaml without a container engine: it reads the file,
// starts what it says, with its commands, settings and balancer, as processes of this machine,
// and uses them. Only the names of hosts and the ports are others. What it does not show is
// that images can be pulled and built.
//
// It is a module of its own, since a reader of YAML is needed for this alone.
package compose
