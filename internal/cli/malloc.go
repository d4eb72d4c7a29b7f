// SPDX-License-Identifier: MIT

//go:build !cgo || !linux

package cli

// paceMalloc does nothing: without cgo there is no C memory, and the allocators of other
// systems do not keep large blocks.
func paceMalloc() {}
