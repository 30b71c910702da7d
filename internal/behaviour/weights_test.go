package behaviour

import (
	"math"
	"testing"
)

// within says whether a count is plausible for a share: five standard deviations around what is expected, beyond which one
// in a million honest runs lies.
func within(count, total int, share float64) bool {
	mean := float64(total) * share
	return math.Abs(float64(count)-mean) <= 5*math.Sqrt(mean*(1-share))+1
}

func TestWeightsShareRequestsOut(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", `
rules:
- matches: [{path: {value: /even}}]
  backendRefs: [{name: one, port: 80}, {name: two, port: 80}]
- matches: [{path: {value: /nine}}]
  backendRefs: [{name: one, port: 80, weight: 9}, {name: two, port: 80, weight: 1}]
- matches: [{path: {value: /zero}}]
  backendRefs: [{name: one, port: 80, weight: 0}, {name: two, port: 80, weight: 1}]
- matches: [{path: {value: /huge}}]
  backendRefs: [{name: one, port: 80, weight: 1000000}, {name: two, port: 80, weight: 1000000}, {name: three, port: 80, weight: 0}]
- matches: [{path: {value: /invalid}}]
  backendRefs: [{name: one, port: 80, weight: 3}, {name: missing, port: 80, weight: 1}]
- matches: [{path: {value: /down}}]
  backendRefs: [{name: one, port: 80, weight: 1}, {name: none, port: 80, weight: 1}]
- matches: [{path: {value: /invalid-zero}}]
  backendRefs: [{name: one, port: 80, weight: 1}, {name: missing, port: 80, weight: 0}]
- matches: [{path: {value: /twice}}]
  backendRefs: [{name: one, port: 80, weight: 1}, {name: two, port: 80, weight: 1}, {name: one, port: 80, weight: 2}]
- matches: [{path: {value: /uneven}}]
  backendRefs: [{name: one, port: 80, weight: 1}, {name: three, port: 80, weight: 1}]`),
		pods("one", 1), pods("two", 1), pods("three", 4), pods("none", 0))
	for path, shares := range map[string]map[string]float64{
		"/even":         {"one": 0.5, "two": 0.5},
		"/nine":         {"one": 0.9, "two": 0.1},
		"/zero":         {"two": 1},
		"/huge":         {"one": 0.5, "two": 0.5},
		"/invalid":      {"one": 0.75, "500": 0.25},
		"/down":         {"one": 0.5, "503": 0.5},
		"/invalid-zero": {"one": 1},
		"/twice":        {"one": 0.75, "two": 0.25},
		"/uneven":       {"one": 0.5, "three": 0.5},
	} {
		const times = 240
		counts := w.count(t, times, get("x.example"+path), answer.outcome)
		for outcome, share := range shares {
			if !within(counts[outcome], times, share) {
				t.Errorf("%s: %v of %d, want %v", path, counts, times, shares)
			}
			delete(counts, outcome)
		}
		if len(counts) > 0 {
			t.Errorf("%s: also %v", path, counts)
		}
	}
}

func TestEndpointsOfABackendTakeTurns(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", "rules:\n- backendRefs: [{name: one, port: 80}]"), pods("one", 4))
	counts := w.count(t, 200, get("x.example/"), func(a answer) string { return a.echo.Pod })
	for _, pod := range []string{"one-1", "one-2", "one-3", "one-4"} {
		if counts[pod] < 40 || counts[pod] > 60 {
			t.Errorf("%v of 200, want about 50 each", counts)
			break
		}
	}
}
