// SPDX-License-Identifier: MIT

package engine

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/catalog"
)

func TestParseSession(t *testing.T) {
	point := func(version int64, lsn uint64) sessionPoint { return sessionPoint{version, lsn} }
	for token, want := range map[string]session{
		"":                          nil,
		"0:-1#5":                    {0: point(-1, 5)},
		"0:5":                       {0: point(-1, 5)},
		"0:0#1#12=-1":               {0: point(0, 1)},
		"3:7#8#1=9#2=10":            {3: point(7, 8)},
		"0:-1#5,1:-1#6":             {0: point(-1, 5), 1: point(-1, 6)},
		" 0:-1#5 , 1:-1#6 ":         {0: point(-1, 5), 1: point(-1, 6)},
		"0:-1#5,0:-1#9,0:-1#7":      {0: point(-1, 9)},
		"0:-1#18446744073709551615": {0: point(-1, math.MaxUint64)},
		SessionToken(12, 34):        {12: point(-1, 34)},
		"255:-1#0":                  {255: point(-1, 0)},
		"0:9223372036854775807#1":   {0: point(math.MaxInt64, 1)},
		"0:-1#1" + strings.Repeat(",1:-1#2", maxSessionTokens-1): {0: point(-1, 1), 1: point(-1, 2)},
	} {
		if got, err := parseSession(token); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%.60q: got %v, %v, want %v", token, got, err, want)
		}
	}
	for _, token := range []string{
		"x", "0", "0:", ":1", "0:#1", "0:-1#", "a:-1#5", "0:b#5", "0:-1#c", "-1:-1#5", "0:-1#-5", "0:-1#5,", ",", "0:-1#5,,1:-1#5", "0:-1#5#", "0:-1#5#1", "0:-1#5#1=", "0:-1#5#x=1", "0:-1#5#1=1#", "0:-1#5#-1=1",
		"0:-1#18446744073709551616", "0:9223372036854775808#1", "0:-1#5;1:-1#5", "99999999999999999999:-1#5", "0:-1 #5", "\x00:-1#5",
		"0:-1#1" + strings.Repeat(",1:-1#2", maxSessionTokens),
	} {
		_, err := parseSession(token)
		var bad *InvalidError
		if !errors.As(err, &bad) || !strings.HasPrefix(bad.Message, "The session token provided '") || len(bad.Message) > 400 {
			t.Errorf("%.60q: got %v, want it refused and quoted, in short", token, err)
		}
	}
}

func TestSessionCheck(t *testing.T) {
	for _, c := range []struct {
		token     string
		partition int
		lsn       uint64
		want      error
	}{
		{"", 0, 0, nil},
		{"0:-1#5", 0, 5, nil},
		{"0:-1#5", 0, 6, nil},
		{"0:-1#5", 0, 4, ErrSession},
		{"0:-1#5", 1, 0, nil}, // of another partition
		{"0:0#1", 0, 5, ErrSession},
		{"0:-1#1,1:-1#9", 1, 8, ErrSession},
		{"", 7, 0, nil},
		{"2:-1#5", 7, 4, ErrSession}, // of a partition that it was made from
		{"2:-1#5", 7, 5, nil},
		{"2:-1#5,7:-1#8", 7, 6, ErrSession},
		{"6:-1#9", 7, 5, nil}, // of one that was made from the same
	} {
		s, err := parseSession(c.token)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.check(&catalog.Range{ID: c.partition, Parents: map[int][]int{7: {0, 2}}[c.partition]}, c.lsn); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%q at %d of partition %d: got %v, want %v", c.token, c.lsn, c.partition, err, c.want)
		}
	}
}

// A client that sends the session token of an answer sees at least that answer's state. A
// token ahead of the partition is refused.
func TestSessionOfRequests(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 1)
	r := w.put("c", "k", "a", "")
	read := func(token string) error {
		_, err := w.e.ReadItem(&Request{Target: item("c", "k", "a"), SessionToken: token})
		return err
	}
	list := func(token string) error {
		_, err := w.e.ListItems(t.Context(), &Request{Target: Target{Database: "d", Container: "c"}, SessionToken: token})
		return err
	}
	for name, f := range map[string]func(string) error{"read": read, "list": list} {
		if err := f(SessionToken(r.Partition, r.LSN)); err != nil {
			t.Errorf("%s with the write's token: %v", name, err)
		}
		if err := f(SessionToken(r.Partition, r.LSN+1)); !errors.Is(err, ErrSession) {
			t.Errorf("%s with a later token: got %v, want ErrSession", name, err)
		}
		var bad *InvalidError
		if err := f("nonsense"); !errors.As(err, &bad) {
			t.Errorf("%s with no token: got %v, want it refused", name, err)
		}
	}
}

func FuzzParseSession(f *testing.F) {
	for _, token := range []string{"", "0:-1#5", "0:5", "0:0#1#12=-1,1:2#3", "0:", ":", "#", ",", "99:-1#18446744073709551615", "-1:-1#1"} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		s, err := parseSession(token)
		if err != nil {
			var bad *InvalidError
			if !errors.As(err, &bad) || s != nil {
				t.Errorf("%q: got %v, %v, want a refusal", token, s, err)
			}
			return
		}
		var parts []string
		for partition, p := range s {
			if partition < 0 {
				t.Errorf("%q names partition %d", token, partition)
			}
			parts = append(parts, fmt.Sprintf("%d:%d#%d", partition, p.version, p.lsn))
			if (s.check(&catalog.Range{ID: partition}, p.lsn) == nil) != (p.version <= sessionVersion) {
				t.Errorf("%q: what it has seen itself is ahead of it", token)
			}
		}
		again, err := parseSession(strings.Join(parts, ","))
		if err != nil || len(again) != len(s) || len(s) > 0 && !reflect.DeepEqual(again, s) {
			t.Errorf("%q: got %v, and written again %v, %v", token, s, again, err)
		}
	})
}
