package behaviour

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// leaves checks that exactly the sessions of one pod move, each once and with a new token, to others.
func (a audience) leave(t testing.TB, gone string) {
	t.Helper()
	had := a.on()[gone]
	moved := a.moved(t)
	if moved[gone] != had || len(moved) != min(had, 1) {
		t.Errorf("%d sessions were on %s; moved, by the pod they had: %v", had, gone, moved)
	}
	if left := a.on()[gone]; left > 0 {
		t.Errorf("%d sessions are still on %s", left, gone)
	}
	a.stay(t, "a second time")
}

func TestB39ADrainingEndpointKeepsItsSessionsAndGetsNoNewOnes(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*pod){
		"terminating":            func(p *pod) { p.ready, p.terminating = false, true },
		"not ready, yet serving": func(p *pod) { p.ready = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := Run(t, gateway+route("shop", shopRules)+route("plain", "hostnames: [plain.example]\nrules:\n- backendRefs: [{name: shop, port: 80}]"), pods("shop", 3))
			a := w.audience(t, 6)
			change(w.pod("shop-2"))
			w.Sync(t)
			a.stay(t, "draining")
			if a.on()["shop-2"] == 0 {
				t.Error("nobody was on the pod that drains")
			}
			if reached := w.reaches(t, 60); reached["shop-2"] > 0 || len(reached) != 2 {
				t.Errorf("new sessions reach %v", reached)
			}
			if reached := w.count(t, 30, get("plain.example/"), func(a answer) string { return a.echo.Pod }); reached["shop-2"] > 0 {
				t.Errorf("requests without sessions reach %v", reached)
			}
			// Through a reload and a restart, for which there is only the file.
			w.Apply(t, strings.Replace(w.manifests, "listeners: [", "listeners: [{name: more, port: 81, protocol: HTTP}, ", 1))
			a.stay(t, "draining, after a reload")
			w.restart(t)
			a.stay(t, "draining, after a start")
			if reached := w.reaches(t, 30); reached["shop-2"] > 0 {
				t.Errorf("new sessions reach %v after a start", reached)
			}
			// It may come back,
			w.pod("shop-2").ready, w.pod("shop-2").terminating = true, false
			w.Sync(t)
			a.stay(t, "ready again")
			if reached := w.reaches(t, 60); reached["shop-2"] == 0 {
				t.Errorf("new sessions reach %v", reached)
			}
			// and drain again, and go.
			change(w.pod("shop-2"))
			w.Sync(t)
			a.stay(t, "draining again")
			w.pod("shop-2").gone = true
			w.Sync(t)
			a.leave(t, "shop-2")
		})
	}
}

func TestWhereAllEndpointsDrainTheyTakeNewSessionsToo(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 2))
	a := w.audience(t, 3)
	for _, p := range w.service("shop").pods {
		p.drain()
	}
	w.Sync(t)
	a.stay(t, "all draining")
	if reached := w.reaches(t, 20); len(reached) != 2 {
		t.Errorf("new sessions reach %v", reached)
	}
	w.scale(t, "shop", 3)
	a.stay(t, "one is ready")
	if reached := w.reaches(t, 20); reached["shop-3"] != 20 {
		t.Errorf("new sessions reach %v, want the one that is ready", reached)
	}
}

func TestB34AnEndpointThatIsGoneLosesItsSessionsAndNoOthers(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 4))
	a := w.audience(t, 8)
	w.pod("shop-3").gone = true
	w.Sync(t)
	a.leave(t, "shop-3")
	w.pod("shop-3").stop()
	w.pod("shop-1").gone = true
	w.pod("shop-1").stop()
	w.Sync(t)
	a.leave(t, "shop-1")
	if reloads := w.Reloads(t); reloads != 0 {
		t.Errorf("%d reloads", reloads)
	}
}

func TestAnEndpointThatRefusesIsLeftAtOnce(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 3))
	a := w.audience(t, 6)
	w.pod("shop-2").stop()
	start := time.Now()
	a.leave(t, "shop-2")
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
	// Bodies are sent to the next one.
	first := w.ok(t, get("shop.example/cookie"))
	w.pod(first.echo.Pod).stop()
	r := get("shop.example/cookie", "Cookie: shop="+first.token(t, "shop").String())
	r.method, r.body = "POST", strings.Repeat("x", 5000)
	again := w.ok(t, r)
	if again.echo.Pod == first.echo.Pod || again.echo.Body != r.body || again.keeps() {
		t.Errorf("a POST was answered by %s with %d bytes", again.echo.Pod, len(again.echo.Body))
	}
}

func TestAnEndpointThatSwallowsConnectionsIsLeftWithinOneTimeout(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 3))
	a := w.audience(t, 3)
	w.pod("shop-2").blackHole(t)
	moves := 0
	for path, c := range a {
		for v, last := range c {
			answer := v.get(t, path)
			moved := answer.echo.Pod != last
			switch {
			case answer.outcome() != "shop":
				t.Errorf("%s: %s", path, answer.outcome())
			case last != "shop-2" && moved:
				t.Errorf("%s: from %s to %s", path, last, answer.echo.Pod)
			case last == "shop-2" && (!moved || answer.took < 900*time.Millisecond || answer.took > 3*time.Second):
				t.Errorf("%s: from %s to %s in %s, want another one after a second", path, last, answer.echo.Pod, answer.took)
			case last == "shop-2" && answer.keeps() && answer.header.Get("X-Session") == "":
				t.Errorf("%s: no new token", path)
			}
			if moved {
				moves++
			}
			c[v] = answer.echo.Pod
		}
	}
	// The machine may be slow; HAProxy itself counts how often it tried.
	if tried := w.counter(t, "s1", "BACKEND", "wretr") + w.counter(t, "s1", "BACKEND", "wredis"); tried != moves || moves == 0 {
		t.Errorf("%d further attempts for %d sessions", tried, moves)
	}
	a.stay(t, "a second time")
}

func TestB35AfterOneMoveASessionStays(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 4))
	a := w.audience(t, 4)
	for i, lose := range []func(*pod){func(p *pod) { p.gone = true }, func(p *pod) { p.stop() }} {
		p := w.service("shop").pods[i]
		lose(p)
		w.Sync(t)
		a.leave(t, p.name)
		for range 5 {
			a.stay(t, "after its move")
		}
	}
}

// TestB34AnAddressThatAnotherPodGetsInheritsNoSession: the address is the same, the pod is not.
func TestB34AnAddressThatAnotherPodGetsInheritsNoSession(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 3))
	first := w.ok(t, get("shop.example/cookie"))
	line := "Cookie: shop=" + first.token(t, "shop").String()
	a := w.audience(t, 4)
	old := w.pod(first.echo.Pod)
	old.uid = "uid-of-its-successor"
	w.Sync(t)
	again := w.ok(t, get("shop.example/cookie", line))
	if again.keeps() {
		t.Error("the pod's successor inherits its session")
	}
	if now := again.token(t, "shop").endpoint; now == first.token(t, "shop").endpoint {
		t.Error("the successor has the name of its predecessor")
	}
	// Who is moved to the successor by chance is answered by a pod of the same name, here; all others stay where they were.
	for pod := range a.moved(t) {
		if pod != old.name {
			t.Errorf("a session of %s moved", pod)
		}
	}
}

func TestB44ATokenFollowsThePodNotItsPlace(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 3))
	s := w.service("shop")
	for round := range 4 {
		a := w.audience(t, 4)
		// The oldest pod is replaced, and the slices list them in another order.
		gone := s.pods[0]
		s.pods = s.pods[1:]
		w.addPod(t, s)
		s.pods[0], s.pods[2] = s.pods[2], s.pods[0]
		s.slices = 1 + round%3
		w.Sync(t)
		a.leave(t, gone.name)
		gone.stop()
	}
	if reloads := w.Reloads(t); reloads != 0 {
		t.Errorf("%d reloads", reloads)
	}
}

func TestSlicesThatMoveKeepSessions(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 4))
	a := w.audience(t, 5)
	s := w.service("shop")
	for _, slices := range []int{2, 4, 3, 1} {
		s.slices = slices
		s.pods[0], s.pods[3], s.pods[1] = s.pods[3], s.pods[1], s.pods[0]
		w.Sync(t)
		a.stay(t, fmt.Sprintf("in %d slices", slices))
	}
	// A pod is in two slices for a moment while it moves from one to the other.
	w.Apply(t, w.manifests+s.slice("shop-twice", w.pod("shop-1").endpoint()))
	a.stay(t, "in two slices at once")
	if reached := w.reaches(t, 40); len(reached) != 4 || reached["shop-1"] != 10 {
		t.Errorf("new sessions reach %v, want ten each", reached)
	}
}

func TestB22AfterScalingDownAndUpEveryTokenLeadsToALivePod(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 3))
	for _, count := range []int{1, 3, 0, 2} {
		w.scale(t, "shop", count)
		if count == 0 {
			if got := w.ask(t, get("shop.example/cookie")).outcome(); got != "503" {
				t.Errorf("without an endpoint: %s", got)
			}
			continue
		}
		live := map[string]bool{}
		for _, p := range w.service("shop").pods {
			live[p.name] = true
		}
		a := w.audience(t, 10)
		for pod := range a.on() {
			if !live[pod] {
				t.Errorf("with %d pods, a new session is on %s", count, pod)
			}
		}
		a.stay(t, fmt.Sprintf("with %d pods", count))
	}
}

func TestB53FromNoneToOneAndBackNeedsNoReload(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 0))
	for range 10 {
		w.scale(t, "shop", 1)
		if got := w.ask(t, get("shop.example/cookie")).outcome(); got != "shop" {
			t.Errorf("with an endpoint: %s", got)
		}
		w.scale(t, "shop", 0)
		if got := w.ask(t, get("shop.example/cookie")).outcome(); got != "503" {
			t.Errorf("without an endpoint: %s", got)
		}
	}
	if reloads := w.Reloads(t); reloads != 0 {
		t.Errorf("%d reloads", reloads)
	}
}
