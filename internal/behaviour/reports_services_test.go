package behaviour

// Field reports, section H: Services and their endpoints.

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestB66ARolloutUnderNoise: a rollout of 40 pods, while other Services and routes change with every step. Each pod gets its
// first request within a second, and each step costs what it changes, not what there is.
func TestB66ARolloutUnderNoise(t *testing.T) {
	t.Parallel()
	const count = 40
	w := Run(t, gateway+route("shop", shopRules), pods("shop", count), pods("other", 1))
	other := w.service("other").pods
	noise := func(step int) {
		text := ""
		for i := range 20 {
			text += (&service{name: fmt.Sprintf("noise-%d", i), pods: other[:(step+i)%2]}).manifest() +
				route(fmt.Sprintf("noise-%d", i), fmt.Sprintf("hostnames: [n%d-%d.example]\nrules:\n- backendRefs: [{name: noise-%[1]d, port: 80}]", i, (step+i)%3))
		}
		w.write(t, "noise.yaml", text)
		w.Sync(t)
	}
	noise(0)
	var waits []time.Duration
	s := w.service("shop")
	for step := range scaled(20, 2*count) {
		gone := s.pods[0]
		s.pods = s.pods[1:]
		p := w.addPod(t, s)
		start := time.Now()
		w.Sync(t)
		// A server that comes, a server that goes.
		if commands := w.limpet.result.Commands; commands > 8 {
			t.Errorf("step %d: %d commands for a pod that replaces another", step, commands)
		}
		for p.requests.Load() == 0 {
			w.ask(t, get("shop.example/cookie"))
			if time.Since(start) > 10*time.Second {
				t.Fatal("no request reached it in ten seconds")
			}
		}
		waits = append(waits, time.Since(start))
		gone.stop()
		noise(step + 1)
	}
	slices.Sort(waits)
	if median := waits[len(waits)/2]; median > time.Second {
		t.Errorf("the first request reached a pod after %s: %s", median, waits)
	}
	if reloads := w.Reloads(t); reloads != 0 {
		t.Errorf("%d reloads", reloads)
	}
}
