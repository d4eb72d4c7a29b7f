// SPDX-License-Identifier: MIT

package clock

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// machineBoot returns a function that reads the id of the boot and the clock that counts
// while the machine is suspended.
func machineBoot() func(Reading) Boot {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	id := strings.TrimSpace(string(raw))
	if err != nil {
		id = ""
	}
	return func(r Reading) Boot {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			return Boot{Ms: r.MonoMs}
		}
		return Boot{ID: id, Ms: time.Duration(ts.Nano()).Milliseconds()}
	}
}
