// SPDX-License-Identifier: MIT

package tikvkv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tikv/client-go/v2/config"
)

// Scheme is that of the URL of a store.
const Scheme = "tikv"

// Example is the URL of a store, for help.
const Example = "tikv://pd1:2379,pd2:2379/mayfly"

// defaultName is the name of a store whose URL has none.
const defaultName = "mayfly"

// address is a URL that was understood.
type address struct {
	pds                   []string // host:port
	name                  string
	ca, cert, key         string // files in PEM
	onePhase, asyncCommit bool
}

var (
	storeName  = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)
	errAddress = errors.New("the address of the storage engine must be like " + Example)
)

// parseAddress understands a URL. It has several hosts, which package url does not parse.
func parseAddress(text string) (a address, err error) {
	rest, ok := strings.CutPrefix(text, Scheme+"://")
	if !ok {
		return a, errAddress
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, name, _ := strings.Cut(rest, "/")
	for host := range strings.SplitSeq(hosts, ",") {
		if host == "" || strings.ContainsAny(host, "@/ ") {
			return a, errAddress
		}
		if !strings.Contains(host, ":") || strings.HasSuffix(host, "]") {
			host += ":2379"
		}
		a.pds = append(a.pds, host)
	}
	if a.name = name; name == "" {
		a.name = defaultName
	}
	if !storeName.MatchString(a.name) {
		return a, fmt.Errorf("%w: %q is no name of a store, which has lower-case letters, digits, - and _, 32 at most", errAddress, name)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return a, fmt.Errorf("%w: %w", errAddress, err)
	}
	for name, all := range values {
		value := all[len(all)-1]
		switch name {
		case "ca":
			a.ca = value
		case "cert":
			a.cert = value
		case "key":
			a.key = value
		case "one-phase-commit":
			a.onePhase, err = strconv.ParseBool(value)
		case "async-commit":
			a.asyncCommit, err = strconv.ParseBool(value)
		default:
			err = errors.New("the parameters are ca, cert, key, one-phase-commit and async-commit")
		}
		if err != nil {
			return a, fmt.Errorf("%w: %s: %w", errAddress, name, err)
		}
	}
	return a, nil
}

// prefix is how all keys of a part of a store begin.
type prefix string

// The keys of TiDB in the same cluster begin with m and t. No name of a store contains a byte
// of those that follow it, so that no prefix begins another.
func (a address) rows() prefix { return prefix("y" + a.name + "\x00") }
func (a address) own() prefix  { return prefix("y" + a.name + "\x01") }

// key returns a key of TiKV.
func (p prefix) key(key []byte) []byte {
	return append(append(make([]byte, 0, len(p)+len(key)), p...), key...)
}

// bounds returns the bounds of a range in TiKV. A nil bound is open.
func (p prefix) bounds(lower, upper []byte) (from, to []byte) {
	if upper == nil {
		to = []byte(p)
		to[len(to)-1]++
	} else {
		to = p.key(upper)
	}
	return p.key(lower), to
}

const (
	// defaultStep is how PD's time moves unless it is configured.
	defaultStep = 50 * time.Millisecond
	// configBytesMax bounds PD's description of its configuration.
	configBytesMax = 1 << 20
)

// timeStep asks PD for the step in which its time moves.
func (a address) timeStep(ctx context.Context) (time.Duration, error) {
	security := config.NewSecurity(a.ca, a.cert, a.key, nil)
	tls, err := security.ToTLSConfig()
	if err != nil {
		return 0, err
	}
	scheme := "http"
	if tls != nil {
		scheme = "https"
	}
	transport := &http.Transport{TLSClientConfig: tls, DisableKeepAlives: true}
	client := http.Client{Transport: transport, Timeout: connectLimit}
	for _, host := range a.pds {
		var step time.Duration
		if step, err = askStep(ctx, &client, scheme+"://"+host+"/pd/api/v1/config"); err == nil {
			return step, nil
		}
	}
	return 0, err
}

func askStep(ctx context.Context, client *http.Client, address string) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s answers %s", address, res.Status)
	}
	var c struct {
		Interval string `json:"tso-update-physical-interval"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, configBytesMax)).Decode(&c); err != nil {
		return 0, fmt.Errorf("%s: %w", address, err)
	}
	return time.ParseDuration(c.Interval)
}
