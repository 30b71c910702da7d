package behaviour

// Field reports, section F: what tables of sessions promise, and lose. Limpet has none: what it promises is the same.

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// opened are sessions, by token, with the pod that each is on.
type opened map[string]string

// open returns as many sessions as clients have that came one after the other, a second apart, to a rule whose absolute
// timeout is longer than that: the first of each pod is given, the others are signed as they would have been.
func (w *World) open(t testing.TB, count int, r request, cookie string) opened {
	t.Helper()
	first := map[string]token{}
	for range 20 * len(w.service("shop").pods) {
		a := w.ok(t, r)
		first[a.echo.Pod] = a.token(t, cookie)
	}
	scope := scopeOf(w.session(t, cookie))
	all := opened{}
	for age := int64(0); len(all) < count; age++ {
		for pod, k := range first {
			k.issued, k.seen = k.issued-age, k.seen-age
			all[k.signed(keyA, scope).String()] = pod
		}
	}
	return all
}

// lost asks for all sessions, as open does, and counts what became of those that are not where they were.
func (o opened) lost(t testing.TB, w *World, r request, cookie string) map[string]int {
	t.Helper()
	tokens := make(chan string, len(o))
	for token := range o {
		tokens <- token
	}
	close(tokens)
	lost := map[string]int{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range 4 {
		client := w.keepAlive(t)
		wait.Go(func() {
			for token := range tokens {
				one := r
				one.headers = append(slices.Clone(r.headers), "Cookie: "+cookie+"="+token)
				a := client.ask(t, one)
				if a.echo.Pod != o[token] || !a.keeps() {
					mu.Lock()
					lost[a.outcome()+" from "+o[token]]++
					mu.Unlock()
				}
			}
		})
	}
	wait.Wait()
	return lost
}

// TestB45NoSessionIsLostOverTwoReloadsInARow: 5,000 sessions, which are used while HAProxy is reloaded twice within 200 ms,
// and after that, with an endpoint more.
func TestB45NoSessionIsLostOverTwoReloadsInARow(t *testing.T) {
	t.Parallel()
	manifests := gateway + route("shop", shopRules)
	more := func(count int) string {
		listeners := "listeners: ["
		for i := range count {
			listeners += fmt.Sprintf("{name: more%d, port: %d, protocol: HTTP}, ", i, 81+i)
		}
		return strings.Replace(manifests, "listeners: [", listeners, 1)
	}
	w := Run(t, manifests, pods("shop", 4))
	r := get("shop.example/cookie")
	all := w.open(t, 5000, r, "shop")
	some := opened{}
	for token, pod := range all {
		if some[token] = pod; len(some) == scaled(1000, 5000) {
			break
		}
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		if lost := some.lost(t, w, r, "shop"); len(lost) > 0 {
			t.Errorf("while HAProxy is reloaded: %v", lost)
		}
	})
	w.Apply(t, more(1))
	time.Sleep(200 * time.Millisecond)
	w.addPod(t, w.service("shop"))
	w.Apply(t, more(2))
	wait.Wait()
	if reloads := w.Reloads(t); reloads != 2 {
		t.Errorf("%d reloads, want 2", reloads)
	}
	if lost := all.lost(t, w, r, "shop"); len(lost) > 0 {
		t.Errorf("after the reloads: %v", lost)
	}
}

// TestB47WhatOneInstanceGivesAllOthersTakeAtOnce: three instances with the same keys share nothing else. A session of one
// is good at the others with its next request, and when the first is gone.
func TestB47WhatOneInstanceGivesAllOthersTakeAtOnce(t *testing.T) {
	t.Parallel()
	manifests := gateway + route("shop", shopRules)
	first := Run(t, manifests, pods("shop", 5))
	replica := func() *World {
		return Run(t, manifests, func(r *World) {
			r.services = []*service{{name: "shop", pods: slices.Clone(first.service("shop").pods), slices: 1 + rand.IntN(3)}}
			rand.Shuffle(5, func(i, j int) { p := r.services[0].pods; p[i], p[j] = p[j], p[i] })
		})
	}
	others := []*World{replica(), replica()}
	a := first.audience(t, 8)
	at := func(w *World, what string) {
		t.Helper()
		for _, c := range a {
			for v := range c {
				v.world = w
			}
		}
		a.stay(t, what)
	}
	for path, c := range a {
		for v, pod := range c {
			v.world = others[rand.IntN(2)]
			if got := v.ok(t, path); got != pod {
				t.Errorf("%s: with the next request on %s, want %s", path, got, pod)
			}
		}
	}
	at(others[0], "at the second")
	at(others[1], "at the third")
	first.stop(t)
	at(others[0], "the first is gone, at the second")
	others[1].restart(t)
	at(others[1], "the first is gone, at the third, which started again")
}

// TestB48SessionsCostHAProxyNothing: as many clients as come have sessions, HAProxy remembers none of them, and each ends
// when its time is over, with a new one.
func TestB48SessionsCostHAProxyNothing(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", "rules:\n"+sticky("/", "shop", "{absoluteTimeout: 1h, cookie: {name: shop}}")), pods("shop", 4))
	r := get("shop.example/")
	come := func(count int) {
		t.Helper()
		var wait sync.WaitGroup
		for range 4 {
			client := w.keepAlive(t)
			wait.Go(func() {
				for range count / 4 {
					if a := client.ask(t, r); a.outcome() != "shop" || a.keeps() {
						t.Errorf("a new client: %s, given %q", a.outcome(), a.header.Values("Set-Cookie"))
						return
					}
				}
			})
		}
		wait.Wait()
	}
	come(400)
	worker := w.processes(t).worker
	sizes, memory := w.sizes(t), residentKiB(t, worker)
	count := scaled(1000, 50_000)
	come(count)
	if now := w.sizes(t); fmt.Sprint(now) != fmt.Sprint(sizes) {
		t.Errorf("after %d sessions the maps have %v entries, before %v", count, now, sizes)
	}
	if tables := w.command(t, "show table"); strings.TrimSpace(tables) != "" {
		t.Errorf("HAProxy has tables: %s", tables)
	}
	if grown := residentKiB(t, worker) - memory; grown > 4096 {
		t.Errorf("%d sessions cost HAProxy %d KiB", count, grown)
	}
	// Those of the last hour are kept, all older ones are over: none is dropped early, none stays.
	ended, kept, scope := opened{}, opened{}, scopeOf(w.session(t, "shop"))
	for token, pod := range w.open(t, min(count, 8000), r, "shop") {
		kept[token] = pod
		over := parseToken(t, token)
		over.issued -= 3600
		ended[over.signed(keyA, scope).String()] = pod
	}
	if lost := kept.lost(t, w, r, "shop"); len(lost) > 0 {
		t.Errorf("before their end: %v", lost)
	}
	over := 0
	for outcome, n := range ended.lost(t, w, r, "shop") {
		if !strings.HasPrefix(outcome, "shop from ") {
			t.Errorf("after its end a session is answered with %s", outcome)
		}
		over += n
	}
	if over != len(ended) {
		t.Errorf("%d of %d sessions ended", over, len(ended))
	}
}

// residentKiB is the memory that a process has.
func residentKiB(t testing.TB, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize() / 1024
}

// TestB50AnAddressThatAnotherTenantGetsLeadsNobodyThere: pods go, and other Services' pods get their addresses, while
// clients come with the tokens that they have, by commands and by reloads.
func TestB50AnAddressThatAnotherTenantGetsLeadsNobodyThere(t *testing.T) {
	t.Parallel()
	tenants := []string{"blue", "green"}
	manifests := gateway
	for _, name := range tenants {
		manifests += route(name, "hostnames: ["+name+".example]\nrules:\n"+sticky("/", name, "{cookie: {name: c}}")+sticky("/header", name, "{type: Header, header: {name: X-Session}}"))
	}
	w := Run(t, manifests, pods("blue", 3), pods("green", 3))
	var visitors []*visitor
	pinned := map[*visitor]string{}
	for _, name := range tenants {
		for range 8 {
			visitors = append(visitors, w.visitor(name+".example"), w.headerVisitor(name+".example", "X-Session"))
		}
	}
	path := func(v *visitor) string {
		if v.header != "" {
			return "/header"
		}
		return "/"
	}
	for _, v := range visitors {
		pinned[v] = v.ok(t, path(v))
	}
	for round := range 4 {
		// One pod of each is replaced, and each successor has the address of the other's.
		gone := map[string]bool{}
		var old []*pod
		for _, name := range tenants {
			s := w.service(name)
			old = append(old, s.pods[0])
			gone[s.pods[0].name] = true
			s.pods[0].stop()
			s.pods = s.pods[1:]
		}
		for i, name := range tenants {
			s := w.service(name)
			s.made++
			p := newPod(name, fmt.Sprintf("%s-%d", name, s.made), old[1-i].at.Addr())
			p.start(t)
			w.t.Cleanup(p.stop)
			s.pods = append(s.pods, p)
		}
		if round%2 == 1 {
			w.manifests = strings.Replace(manifests, "listeners: [", fmt.Sprintf("listeners: [{name: more, port: %d, protocol: HTTP}, ", 81+round), 1)
		}
		w.Sync(t)
		for _, v := range visitors {
			tenant, _, _ := strings.Cut(v.host, ".")
			now := v.ok(t, path(v))
			switch last := pinned[v]; {
			case !strings.HasPrefix(now, tenant+"-"):
				t.Errorf("round %d: a client of %s is answered by %s", round, tenant, now)
			case !gone[last] && now != last:
				t.Errorf("round %d: moved from %s, which is there, to %s", round, last, now)
			}
			pinned[v] = now
			// And a token of the one is worth nothing at the other.
			other := get(map[string]string{"blue": "green", "green": "blue"}[tenant]+".example"+path(v), "Cookie: "+v.cookies("/"), "X-Session: "+v.token)
			if a := w.ok(t, other); strings.HasPrefix(a.echo.Pod, tenant) || a.keeps() && a.header.Get("X-Session") == "" {
				t.Errorf("round %d: at the other tenant, a token of %s led to %s and is kept", round, tenant, a.echo.Pod)
			}
		}
	}
}
