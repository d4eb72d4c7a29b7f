// SPDX-License-Identifier: MIT

package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// machineBoot returns a function that reads the id of the boot and the clock that counts
// while the machine sleeps. Go's monotonic time comes from another clock, which does not.
func machineBoot() func(Reading) Boot {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		id = ""
	}
	return func(r Reading) Boot {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			return Boot{Ms: r.MonoMs}
		}
		return Boot{ID: id, Ms: time.Duration(ts.Nano()).Milliseconds()}
	}
}
