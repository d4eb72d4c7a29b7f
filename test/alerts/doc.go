// SPDX-License-Identifier: MIT

// Package alerts evaluates the alerts and the dashboard in deploy with Prometheus's own
// parser and engine, against the metrics page of a real server. It is a module of its own,
// since Prometheus brings more dependencies than the database has.
package alerts
