// SPDX-License-Identifier: MIT

// The names by which a server is addressed. A page that a browser was shown at a
// name of its own can have that name point to this machine (DNS rebinding), and then
// it is the browser that asks, with whatever the page knows. It knows the key of the
// emulators. So a server with that key answers only to names that nobody else can
// have: addresses, names of this machine, and those that its operator gave.

package rest

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/value"
)

// dockerHost is the name that containers have for the machine that they run on.
const dockerHost = "host.docker.internal"

// hosts tells by which names clients may come.
type hosts struct {
	any   bool
	named []string // in lower case; "*.x" is for all names below x
	// last is the host of the request before, for most come by the same.
	last atomic.Pointer[checkedHost]
}

// checkedHost is a Host header and what was found out about it.
type checkedHost struct {
	text string
	// admitted says that clients may come by it, and loopback that it can only be
	// this machine.
	admitted, loopback bool
}

// newHosts returns the hosts of a server: all, or the account's and those allowed.
func newHosts(any bool, account *api.Account, allowed []string) (*hosts, error) {
	h := &hosts{any: any}
	for _, text := range allowed {
		name := hostName(text)
		if _, err := netip.ParseAddr(name); err != nil && !isHostName(name) || strings.Contains(text, "/") {
			return nil, fmt.Errorf("the allowed host %q is neither a name nor an address", text)
		}
		h.named = append(h.named, name)
	}
	if u, err := url.Parse(account.Advertise); err == nil && u.Host != "" {
		h.named = append(h.named, hostName(u.Host))
	}
	for _, host := range account.Hosts() {
		h.named = append(h.named, hostName(host))
	}
	return h, nil
}

// check looks at the Host of a request.
func (h *hosts) check(text string) *checkedHost {
	if last := h.last.Load(); last != nil && last.text == text {
		return last
	}
	name := hostName(text)
	c := &checkedHost{text: text, loopback: isLoopback(name)}
	c.admitted = h.any || c.loopback || h.admits(name)
	h.last.Store(c)
	return c
}

func (h *hosts) admits(name string) bool {
	if !strings.Contains(name, ".") || name == dockerHost {
		return true // no page can be at such a name, nor at none
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return slices.ContainsFunc(h.named, func(named string) bool {
		below, all := strings.CutPrefix(named, "*")
		return name == named || all && strings.HasSuffix(name, below)
	})
}

// isLoopback reports whether a name is this machine's for itself (RFC 6761, section
// 6.3), or an address is.
func isLoopback(name string) bool {
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(name)
	return err == nil && a.IsLoopback()
}

// hostName is the name or address in a host, which may have a port, in lower case
// and without the dot at its end.
func hostName(host string) string {
	if inside, ok := strings.CutPrefix(host, "["); ok {
		if address, port, closed := strings.Cut(inside, "]"); closed && (port == "" || port[0] == ':') {
			return strings.ToLower(address)
		}
	}
	if name, _, port := strings.Cut(host, ":"); port && strings.Count(host, ":") == 1 {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// hostRefused refuses a request by the name that it came by.
func hostRefused(host string) error {
	name := value.Clip(hostName(host))
	return api.Refuse(403, 0, "The host '"+name+"' is not answered with the key that everybody knows, since a page in a browser could be behind it. "+
		"Start the server with --allow-host "+name+", or with a key of its own, or use an address or localhost.")
}
