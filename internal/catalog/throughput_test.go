// SPDX-License-Identifier: MIT

package catalog

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func TestManualThroughput(t *testing.T) {
	for _, n := range []int{400, 500, 10_000, 10_100, 1_000_000} {
		if got, err := ManualThroughput(n); err != nil || got != (Throughput{Manual: n}) || got.PerSecond() != n || got.None() {
			t.Errorf("%d: got %+v, %v", n, got, err)
		}
	}
	const rule = "The offer should have valid throughput values between 400 and 1000000 inclusive in increments of 100. "
	for n, want := range map[int]string{
		0:         rule + "Requested throughput 0 is less than required minimum throughput 400.",
		-200:      rule + "Requested throughput -200 is less than required minimum throughput 400.",
		399:       rule + "Requested throughput 399 is less than required minimum throughput 400.",
		450:       rule + "Requested throughput 450 is not a multiple of 100.",
		1_000_100: rule + "Requested throughput 1000100 is more than possible maximum throughput 1000000.",
		1 << 40:   rule + "Requested throughput 1099511627776 is more than possible maximum throughput 1000000.",
	} {
		if got, err := ManualThroughput(n); !refusedWith(err, want) || !got.None() {
			t.Errorf("%d: got %+v, %v, want %q", n, got, err, want)
		}
	}
}

func TestAutoscaleThroughput(t *testing.T) {
	policy := func(percent string) string {
		return `{"maxThroughput":4000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":` + percent + `}}}`
	}
	for settings, want := range map[string]Throughput{
		`{"maxThroughput":1000}`:                          {AutoscaleMax: 1000, Fixed: true},
		`{"maxThroughput":4e3}`:                           {AutoscaleMax: 4000, Fixed: true},
		`{"maxThroughput":1000000}`:                       {AutoscaleMax: 1_000_000, Fixed: true},
		` {"other":1,"maxThroughput":4000} `:              {AutoscaleMax: 4000, Fixed: true},
		`{"maxThroughput":4000,"autoUpgradePolicy":null}`: {AutoscaleMax: 4000, Fixed: true},
		policy("0"):    {AutoscaleMax: 4000},
		policy("100"):  {AutoscaleMax: 4000, IncrementPercent: 100},
		policy("null"): {AutoscaleMax: 4000, Fixed: true},
	} {
		if got, err := AutoscaleThroughput([]byte(settings)); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", settings, got, err, want)
		}
	}
	for _, settings := range []string{
		"", "4000", `"4000"`, "[]", "{}", "{", `{"maxThroughput":null}`, `{"maxThroughput":"4000"}`, `{"maxThroughput":1.5}`,
		`{"maxThroughput":1e99}`, `{"maxThroughput":4000,"maxThroughput":4000}`, policy("-1"), policy("101"), policy(`"1"`), policy("0.5"),
	} {
		if got, err := AutoscaleThroughput([]byte(settings)); !errors.Is(err, ErrAutoscaleSettings) || !got.None() {
			t.Errorf("%s: got %+v, %v, want ErrAutoscaleSettings", settings, got, err)
		}
	}
	for settings, want := range map[string]string{
		`{"maxThroughput":0}`:       "Requested throughput 0 is less than required minimum throughput 1000.",
		`{"maxThroughput":-1000}`:   "Requested throughput -1000 is less than required minimum throughput 1000.",
		`{"maxThroughput":1100}`:    "Requested throughput 1100 is not a multiple of 1000.",
		`{"maxThroughput":1001000}`: "between 1000 and 1000000 inclusive in increments of 1000. Requested throughput 1001000 is more than",
	} {
		if got, err := AutoscaleThroughput([]byte(settings)); !refusedWith(err, want) || !got.None() {
			t.Errorf("%s: got %+v, %v, want %q", settings, got, err, want)
		}
	}
}

// The documented minimum, part by part.
func TestMinimumThroughput(t *testing.T) {
	for _, c := range []struct {
		highest, sharing  int
		manual, autoscale int
	}{
		{0, 0, 400, 1000},
		{400, 0, 400, 1000},
		{10_000, 0, 400, 1000},
		{10_100, 0, 400, 2000}, // a tenth is 1,010
		{40_000, 0, 400, 4000},
		{40_100, 0, 500, 5000}, // a hundredth is 401
		{50_000, 0, 500, 5000},
		{1_000_000, 0, 10_000, 100_000},
		{400, 25, 400, 1000},
		{400, 26, 500, 2000},
		{400, 30, 900, 6000},
		{100_000, 30, 1000, 10_000},
	} {
		if got := manualRule.minimum(c.highest, c.sharing); got != c.manual {
			t.Errorf("manual, highest %d, %d containers: got %d, want %d", c.highest, c.sharing, got, c.manual)
		}
		if got := autoscaleRule.minimum(c.highest, c.sharing); got != c.autoscale {
			t.Errorf("autoscale, highest %d, %d containers: got %d, want %d", c.highest, c.sharing, got, c.autoscale)
		}
	}
}

// The minimum is accepted, nothing below it is, and it never falls.
func TestMinimumCanBeHad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		highest := rapid.IntRange(0, maxThroughput).Draw(t, "highest")
		sharing := rapid.IntRange(0, 500).Draw(t, "sharing")
		for _, r := range []throughputRule{manualRule, autoscaleRule} {
			least := r.minimum(highest, sharing)
			if _, err := (throughputRequest{rule: r, perSecond: least}).grant(highest, sharing); err != nil {
				t.Errorf("the minimum %d is refused: %v", least, err)
			}
			if _, err := (throughputRequest{rule: r, perSecond: least - r.step}).grant(highest, sharing); err == nil {
				t.Errorf("less than the minimum %d is granted", least)
			}
			if more := r.minimum(highest+rapid.IntRange(0, 1000).Draw(t, "more"), sharing); more < least {
				t.Errorf("the minimum falls from %d to %d", least, more)
			}
		}
	})
}

// The property ttlFinality is Mayfly's own: kept, echoed, and changeable.
func TestTTLFinality(t *testing.T) {
	for property, want := range map[string]bool{"": false, `"ttlFinality":false`: false, `"ttlFinality":true`: true, `"ttlFinality":null`: false} {
		d := parse(t, with(property))
		if d.TTLFinality != want {
			t.Errorf("%s: got %v", property, d.TTLFinality)
		}
		if got := string(d.raw("ttlFinality")); property != "" && `"ttlFinality":`+got != property {
			t.Errorf("%s: echoed as %s", property, got)
		}
		if again := parse(t, render(d)); again.TTLFinality != want {
			t.Errorf("%s: read again as %v", property, again.TTLFinality)
		}
		if err := d.replaces(parse(t, with(`"ttlFinality":true`))); err != nil {
			t.Errorf("%s after true: %v", property, err)
		}
	}
	for _, raw := range []string{`"true"`, "1", "0", "{}", "[]"} {
		if _, err := ParseDefinition([]byte(with(`"ttlFinality":` + raw))); !refusedWith(err, "'ttlFinality' must be a boolean") {
			t.Errorf("%s: got %v", raw, err)
		}
	}
}
