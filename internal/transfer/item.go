// SPDX-License-Identifier: MIT

// What of an item is moved, and how long it still lives.

package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/client"
	"github.com/mayflydb/mayfly/internal/value"
)

// TTL says what becomes of the time that items have left.
type TTL string

// The ways.
const (
	// Full: the countdown begins anew.
	Full TTL = "full"
	// Remaining: the item expires when it would have, rounded up to a second. What has
	// expired is left out.
	Remaining TTL = "remaining"
)

const msPerSecond = 1000

// lives computes what is left of the time of items.
type lives struct {
	mode     TTL
	byType   *int64 // the container's default TTL; nil if nothing expires
	expireAt value.Path
	// sliding says that reads may have moved deadlines, so that the last write does not tell
	// when an item expires. It then gets its full time: no item expires early.
	sliding bool
}

func newLives(mode TTL, of *client.Container) (*lives, error) {
	var d struct {
		ExpireAtPath      string
		SlidingTTLPercent int `json:"slidingTtlPercent"`
	}
	if err := json.Unmarshal(of.Definition, &d); err != nil {
		return nil, err
	}
	l := &lives{mode: mode, byType: of.DefaultTTL, sliding: d.SlidingTTLPercent > 0}
	if d.ExpireAtPath != "" {
		path, err := value.ParsePath(d.ExpireAtPath)
		if err != nil {
			return nil, err
		}
		l.expireAt = path
	}
	return l, nil
}

// left returns the ttl that an item gets, in whole seconds; 0 to leave it as it is, and
// negative if the item has expired.
func (l *lives) left(item *value.Object, nowMs int64) int64 {
	if l.mode != Remaining || l.byType == nil || l.sliding {
		return 0
	}
	if len(l.expireAt) > 0 {
		if raw, ok := item.At(l.expireAt); ok && string(raw) != "null" {
			return 0 // it names its deadline
		}
	}
	life := *l.byType
	if own, ok := integer(item, "ttl"); ok {
		life = own
	}
	written, ok := integer(item, "_ts")
	if life <= 0 || !ok {
		return 0
	}
	// The last write was some time in the second of _ts. The end of that second is taken, so
	// that no item expires early.
	leftMs := (written+1+life)*msPerSecond - nowMs
	if leftMs <= 0 {
		return -1
	}
	return min((leftMs+msPerSecond-1)/msPerSecond, life)
}

// integer returns a property that is a whole number.
func integer(o *value.Object, name string) (int64, bool) {
	raw, ok := o.Lookup(name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil
}

// isSystem reports whether a property of an item is the server's.
func isSystem(name string) bool {
	switch name {
	case "_rid", "_self", "_etag", "_attachments", "_ts", "_lsn":
		return true
	}
	return false
}

// appendItem appends an item without the server's properties. ttl replaces its own unless it
// is 0, and id is added unless it is empty.
func appendItem(dst []byte, o *value.Object, ttl int64, id string, keep func(name string) bool) []byte {
	start := len(dst)
	dst = append(dst, '{')
	if id != "" {
		dst = append(dst, `"id":`...)
		dst = value.AppendString(dst, id)
	}
	before := len(dst)
	if len(dst) > start+1 {
		dst = append(dst, ',')
	}
	members := len(dst)
	dst = o.AppendMembers(dst, func(name string) bool {
		return isSystem(name) && (keep == nil || !keep(name)) || ttl != 0 && name == "ttl"
	})
	if len(dst) == members {
		dst = dst[:before]
	}
	if ttl != 0 {
		if len(dst) > start+1 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(append(dst, `"ttl":`...), ttl, 10)
	}
	return append(dst, '}')
}

// madeID returns an id for a row without one, which is the same whenever the row is read.
func madeID(source string, at int64, row []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%d\n", source, at)
	h.Write(row)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// askEvery is how often a server is asked for its time.
const askEvery = 5 * time.Second

// clockOf tells the time of a server: of its database if it says so, or else that of its
// machine.
type clockOf struct {
	c *client.Client

	mu     sync.Mutex
	asked  time.Time
	nowMs  int64
	frozen bool
	other  bool // it is a server of another kind
}

// now returns the time in milliseconds.
func (k *clockOf) now(ctx context.Context) (int64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked.IsZero() || time.Since(k.asked) > askEvery {
		if err := k.ask(ctx); err != nil {
			return 0, fmt.Errorf("ask for the server's time: %w", err)
		}
		k.asked = time.Now()
	}
	if k.frozen {
		return k.nowMs, nil
	}
	return k.nowMs + time.Since(k.asked).Milliseconds(), nil
}

const askLimit = 30 * time.Second

func (k *clockOf) ask(ctx context.Context) error {
	if !k.other {
		res, err := k.c.Page(ctx, http.MethodGet, "clock", nil, nil, askLimit)
		if err == nil {
			defer res.Body.Close()
			var status struct {
				NowMs int64  `json:"nowMs"`
				Mode  string `json:"mode"`
			}
			if err := json.NewDecoder(res.Body).Decode(&status); err == nil && status.NowMs > 0 {
				k.nowMs, k.frozen = status.NowMs, status.Mode == "test frozen"
				return nil
			}
		}
		k.other = true
	}
	a, err := k.c.Do(ctx, &client.Request{Method: http.MethodGet, Path: "/"})
	if err != nil {
		return err
	}
	date, err := http.ParseTime(a.Header.Get("Date"))
	if err != nil {
		date = time.Now()
	}
	k.nowMs = date.UnixMilli()
	return nil
}
