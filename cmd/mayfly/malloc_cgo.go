// SPDX-License-Identifier: MIT

//go:build cgo && linux

package main

/*
#include <stdlib.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

static void mayfly_map_large_blocks(int bytes) {
#if defined(__GLIBC__)
	mallopt(M_MMAP_THRESHOLD, bytes);
#endif
}
*/
import "C"

// mappedBlockBytes is the size from which a block of C memory is mapped by itself, so
// that it goes back to the system as soon as it is freed. It is above the usual blocks of
// a table and below a block that holds an item of 2 MB.
const mappedBlockBytes = 256 << 10

// paceMalloc gives large blocks of C memory, which the storage engine's cache and
// memtables are made of, back to the system when they are freed. By itself, glibc raises
// the threshold to the largest block that was ever freed and keeps the rest for later:
// under items of 2 MB, 250 MB of holes lay beside 22 MB in use.
func paceMalloc() {
	C.mayfly_map_large_blocks(mappedBlockBytes)
}
