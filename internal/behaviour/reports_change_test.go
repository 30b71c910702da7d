package behaviour

// Field reports, section E: sessions while things change.

import (
	"fmt"
	"testing"
)

// TestB40AtWeightZeroASessionWaits: sessions do not override weights (GEP-1619), so that a visitor follows them; when a
// backend has weight again, its sessions are where they were, and none was opened twice.
func TestB40AtWeightZeroASessionWaits(t *testing.T) {
	t.Parallel()
	split := func(onOld, onNew int) string {
		return gateway + route("all", fmt.Sprintf("rules:\n- backendRefs: [{name: old, port: 80, weight: %d}, {name: new, port: 80, weight: %d}]\n  sessionPersistence: {cookie: {name: c}}", onOld, onNew))
	}
	w := Run(t, split(100, 0), pods("old", 4), pods("new", 4))
	onOld := w.crowd(t, 10, "x.example", "/")
	for v, pod := range onOld {
		if pod[:3] != "old" {
			t.Fatalf("at weight 0 a session is opened on %s", pod)
		}
		onOld[v] = pod
	}
	onNew := crowd{}
	for round := range 3 {
		w.Apply(t, split(0, 100))
		for v := range onOld {
			now := v.ok(t, "/")
			if last, been := onNew[v]; now[:3] != "new" || been && now != last {
				t.Errorf("round %d, at 0 to 100: on %s, last time on %s", round, now, last)
			}
			onNew[v] = now
		}
		w.Apply(t, split(100, 0))
		if moved := onOld.moved(t, "/"); len(moved) > 0 {
			t.Errorf("round %d, at 100 to 0 again: moved %v", round, moved)
		}
	}
	if reloads := w.Reloads(t); reloads != 0 {
		t.Errorf("%d reloads", reloads)
	}
}
