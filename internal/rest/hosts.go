// SPDX-License-Identifier: MIT

// The names by which a server is addressed. A web page can have its own name point to
// this machine (DNS rebinding). The browser then sends the page's requests here, with all
// that the page knows, and the key of the emulators is public. So a server with that key
// answers only to names that no web page can have: addresses, names of this machine, and
// those that the operator allows.

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

// dockerHost is the name by which containers reach the machine that they run on.
const dockerHost = "host.docker.internal"

// hosts decides which Host headers are accepted.
type hosts struct {
	any   bool
	named []string // in lower case; "*.x" stands for all names below x
	// last is the host of the last request, since most requests have the same.
	last atomic.Pointer[checkedHost]
}

// checkedHost is a Host header and the result of its check.
type checkedHost struct {
	text string
	// admitted says that the host is accepted, and loopback that it can only be this
	// machine.
	admitted, loopback bool
}

// newHosts returns the hosts of a server: all, or the account's and the allowed ones.
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

// check checks the Host of a request.
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
		return true // no web page can have such a name, or an empty one
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return slices.ContainsFunc(h.named, func(named string) bool {
		below, all := strings.CutPrefix(named, "*")
		return name == named || all && strings.HasSuffix(name, below)
	})
}

// isLoopback reports whether a name always means this machine (RFC 6761, section 6.3), or
// is a loopback address.
func isLoopback(name string) bool {
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(name)
	return err == nil && a.IsLoopback()
}

// hostName returns the name or address in a host without its port, in lower case and
// without the dot at the end.
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

// hostRefused is the error for a host that is not accepted.
func hostRefused(host string) error {
	name := value.Clip(hostName(host))
	return api.Refuse(403, 0, "The host '"+name+"' is not accepted with a public key, since a web page could have this name. "+
		"Start the server with --allow-host "+name+", or with a key of its own, or use an address or localhost.")
}
