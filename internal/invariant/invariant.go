// SPDX-License-Identifier: MIT

// Package invariant checks, in test builds, what the code relies on. It is for
// bugs alone: data from clients, disks or other nodes is answered with errors,
// never with a Check. With the build tag "invariants" Enabled is true and a
// failed Check panics; without the tag every call compiles to nothing, so no
// program may depend on one having run.
//
// Arguments are evaluated in both builds. A check that costs something to
// prepare stands inside "if invariant.Enabled".
package invariant
