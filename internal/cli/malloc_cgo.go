// SPDX-License-Identifier: MIT

//go:build cgo && linux

package cli

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

// mappedBlockBytes is the size from which each block of C memory is mapped separately, so
// that it returns to the system as soon as it is freed. It is above the usual blocks of a
// table and below a block that holds an item of 2 MB.
const mappedBlockBytes = 256 << 10

// paceMalloc returns large blocks of C memory to the system when they are freed. The
// storage engine's cache and memtables consist of such blocks. By default glibc raises the
// threshold to the largest block ever freed and keeps smaller ones: under a load of 2 MB
// items, 250 MB were free but kept, and 22 MB in use.
func paceMalloc() {
	C.mayfly_map_large_blocks(mappedBlockBytes)
}
