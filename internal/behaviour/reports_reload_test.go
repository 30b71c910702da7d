package behaviour

// Field reports, section G: changes at run time, and reloads.

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// servers are the settings of a slot's servers by name, as HAProxy has them: all that is not about its life so far.
func (w *World) servers(t testing.TB, backend string) map[string]string {
	t.Helper()
	found := map[string]string{}
	lines := strings.Split(strings.TrimSpace(w.command(t, "show servers state "+backend)), "\n")
	columns := strings.Fields(strings.TrimPrefix(lines[1], "# "))
	for _, line := range lines[2:] {
		name, settings := "", ""
		for i, value := range strings.Fields(line) {
			switch column := columns[i]; column {
			case "srv_name":
				name = value
			case "be_id", "be_name", "srv_id", "srv_time_since_last_change":
			case "srv_check_health", "srv_iweight": // A count of checks, of which there are none, and what weights in percent refer to.
			default:
				settings += column + "=" + value + " "
			}
		}
		found[name] = settings
	}
	return found
}

// TestB51AnEndpointThatCameByCommandIsLikeOneFromTheFile: the same Service scaled at run time, reloaded, and started anew.
func TestB51AnEndpointThatCameByCommandIsLikeOneFromTheFile(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 1))
	w.scale(t, "shop", 4)
	w.pod("shop-2").drain()
	w.Sync(t)
	if reloads := w.Reloads(t); reloads != 0 {
		t.Fatalf("%d reloads: nothing is shown", reloads)
	}
	byCommand := w.servers(t, "s1")
	if len(byCommand) != 4 {
		t.Fatalf("%d servers: %v", len(byCommand), byCommand)
	}
	check := func(what string) {
		t.Helper()
		for name, settings := range w.servers(t, "s1") {
			if byCommand[name] != settings {
				t.Errorf("%s, %s is\n%s, by commands it was\n%s", what, name, settings, byCommand[name])
			}
		}
	}
	w.Apply(t, strings.Replace(w.manifests, "listeners: [", "listeners: [{name: more, port: 81, protocol: HTTP}, ", 1))
	if reloads := w.Reloads(t); reloads != 1 {
		t.Errorf("%d reloads, want 1", reloads)
	}
	check("after a reload")
	w.restart(t)
	check("after a start")
	// An endpoint that came by a command is left after one attempt, as all are.
	w.scale(t, "shop", 5)
	a := w.audience(t, 8)
	w.pod("shop-5").stop()
	a.leave(t, "shop-5")
}

// TestB51AnEndpointThatCameByCommandProvesWhoItIs: what holds for a Service's pods holds for those that come at run time:
// TLS with the name and the CA that the policy asks for, and HTTP/2. One with another's certificate gets no request.
func TestB51AnEndpointThatCameByCommandProvesWhoItIs(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(), newAuthority()
	names := []string{"tls", "h2c", "both", "plain"}
	w := Run(t, gateway+bundle("ca", ca)+backendTLS("tls", "hostname: s.internal, "+trustCA)+backendTLS("both", "hostname: s.internal, "+trustCA)+routeEach(names...),
		speaking("tls", "https", false, ca.server("s.internal")), speaking("h2c", "kubernetes.io/h2c", true, nil),
		speaking("both", "grpc", true, ca.server("s.internal")), speaking("plain", "", false, nil))
	strangers := map[string]bool{"tls-4": true, "both-4": true}
	speaks := func(when string) {
		t.Helper()
		for _, name := range names {
			s := w.service(name)
			want := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[s.http2]
			seen := map[string]int{}
			for range 4 * len(s.pods) {
				a := w.ask(t, get("a.com/"+name))
				if a.outcome() == name && (a.echo.Protocol != want || a.echo.Secure != (s.tls != nil) || s.tls != nil && a.echo.ServerName != "s.internal") {
					t.Errorf("%s: %s is spoken to in %s, TLS %t, as %s", when, a.echo.Pod, a.echo.Protocol, a.echo.Secure, a.echo.ServerName)
				}
				seen[a.echo.Pod]++
			}
			for _, p := range s.pods {
				if stranger := strangers[p.name]; stranger == (seen[p.name] > 0) || stranger && p.requests.Load() > 0 {
					t.Errorf("%s: %s got %d of %v", when, p.name, seen[p.name], seen)
				}
			}
		}
	}
	speaks("at first")
	for _, name := range names {
		w.scale(t, name, 3)
	}
	speaks("scaled up")
	for _, name := range []string{"tls", "both"} {
		s := w.service(name)
		ours := s.tls
		s.tls = other.server("s.internal")
		w.scale(t, name, 4)
		s.tls = ours
	}
	speaks("with a stranger each")
	if reloads := w.Reloads(t); reloads != 0 {
		t.Errorf("%d reloads: nothing is shown", reloads)
	}
	w.Apply(t, strings.Replace(w.manifests, "listeners: [", "listeners: [{name: more, port: 81, protocol: HTTP}, ", 1))
	speaks("reloaded")
}

// text is all that HAProxy is given, in an order of its own.
func (w *World) text() string {
	_, set := w.limpet.rendered()
	var all []string
	for _, section := range set.Sections {
		all = append(all, section.Name+"\n"+section.Text)
	}
	for name, entries := range set.Maps {
		for _, e := range entries.Sorted() {
			all = append(all, name+" "+e.Key+" "+e.Value.Value)
		}
	}
	for _, e := range set.Servers.Sorted() {
		all = append(all, fmt.Sprintf("%s %+v", e.Key, e.Value))
	}
	for _, e := range set.Assets.Sorted() {
		all = append(all, fmt.Sprintf("%s %+v", e.Key, e.Value))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// TestB55AnIdleInstallationIsLeftAlone: the same objects over and over, in any order, touched in what does not matter: no
// command and no reload. A fresh start from another order gives the same bytes.
func TestB55AnIdleInstallationIsLeftAlone(t *testing.T) {
	t.Parallel()
	objects := strings.SplitAfter(strings.ReplaceAll(listeners(twoPorts)+certificate("cert", "x.example")+route("shop", shopRules), "\n---\n", "\n\x00---\n"), "\x00")
	for i := range 12 {
		objects = append(objects, aged(fmt.Sprintf("%02d", i%3), fmt.Sprintf("r%d", i), fmt.Sprintf(`
hostnames: [h%d.example, shared.example, "*.w%[1]d.example"]
rules:
- matches: [{path: {value: /%[1]d}, headers: [{name: a, value: "1"}, {name: b, value: "2"}], queryParams: [{name: c, value: "3"}]}, {path: {value: /all}, headers: [{name: n%[1]d, value: x}]}]
  filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: b}, {name: c, value: d}]}}]
  backendRefs: [{name: shop, port: 80}, {name: other, port: 80, weight: %[1]d}]
  sessionPersistence: {cookie: {}}`, i)))
	}
	joined := func() string { return strings.ReplaceAll(strings.Join(objects, ""), "\x00", "") }
	w := Run(t, joined(), pods("shop", 3), pods("other", 2))
	shuffle := func() {
		rand.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		for _, s := range w.services {
			rand.Shuffle(len(s.pods), func(i, j int) { s.pods[i], s.pods[j] = s.pods[j], s.pods[i] })
			s.slices = 1 + rand.IntN(2)
		}
	}
	want, revision := w.text(), w.limpet.result.Revision
	for i := range 40 {
		shuffle()
		w.Apply(t, strings.Replace(joined(), "metadata: {name: gw}", fmt.Sprintf("metadata: {name: gw, labels: {touched: t%d}}", i), 1))
		if r := w.limpet.result; r.Commands > 0 || r.Reloaded || r.Revision != revision {
			t.Fatalf("change %d: %d commands, reloaded %t (%v)", i, r.Commands, r.Reloaded, r.Reasons)
		}
	}
	if w.text() != want {
		t.Error("what is rendered is not what it was")
	}
	for range 3 {
		shuffle()
		w.manifests = joined()
		w.restart(t)
		if got := w.text(); got != want {
			t.Errorf("after a start, from another order, what is rendered is\n%s\n\nwant\n%s", got, want)
		}
	}
}

// settle applies the manifests until it succeeds, as Limpet's loop does.
func (w *World) settle(t testing.TB, manifests string) {
	t.Helper()
	w.manifests = manifests
	w.write(t, "manifests.yaml", manifests)
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		snapshot, _ := w.limpet.files.Load()
		if err = w.limpet.controller.Step(t.Context(), snapshot); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// TestB56AWorkerThatDiesDuringAReload: reloads that take their time, in the midst of which the worker is killed. Each is
// tried again, and what is served then is what was asked for, by one master with one worker.
func TestB56AWorkerThatDiesDuringAReload(t *testing.T) {
	t.Parallel()
	many := scaled(150, 5000)
	w := Run(t, gateway, pods("shop", 3))
	var large strings.Builder
	for i := range many {
		large.WriteString((&service{name: fmt.Sprintf("many-%d", i), pods: w.service("shop").pods}).manifest())
		large.WriteString(route(fmt.Sprintf("many-%d", i), fmt.Sprintf("hostnames: [h%d.example]\nrules:\n- backendRefs: [{name: many-%[1]d, port: 80}]", i)))
	}
	manifests := gateway + route("shop", shopRules) + large.String()
	w.Apply(t, manifests)
	a := w.audience(t, 4)
	for round := range 4 {
		before := w.processes(t)
		var wait sync.WaitGroup
		wait.Go(func() {
			// The reload takes some ten milliseconds: the worker dies before, during and after it.
			time.Sleep(time.Duration(10+30*round) * time.Millisecond)
			_ = syscall.Kill(before.worker, syscall.SIGKILL)
		})
		w.settle(t, strings.Replace(manifests, "listeners: [", fmt.Sprintf("listeners: [{name: more, port: %d, protocol: HTTP}, ", 81+round), 1))
		wait.Wait()
		w.eventually(t, request{host: "shop.example", target: "/cookie", port: 81 + round}, "shop")
		w.eventually(t, get(fmt.Sprintf("h%d.example/", many-1)), "shop")
		a.stay(t, fmt.Sprintf("a worker was killed in reload %d", round))
		for range 200 {
			if now := w.processes(t); now.worker != before.worker && len(now.old) == 0 {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if now := w.processes(t); now.worker == before.worker || len(now.old) > 0 {
			t.Errorf("round %d: HAProxy is %+v, and was %+v", round, now, before)
		}
	}
	// What follows is done at run time again.
	reloads := w.Reloads(t)
	w.settle(t, w.manifests+route("last", "hostnames: [last.example]\nrules:\n- backendRefs: [{name: shop, port: 80}]"))
	w.eventually(t, get("last.example/"), "shop")
	if now := w.Reloads(t); now != reloads {
		t.Errorf("a route was added by %d reloads", now-reloads)
	}
}

// TestB57OldWorkersAreFewAndTheirConnectionsLive: with connections that stay open there is an old worker for each reload,
// but never more than eight; no connection is cut before that.
func TestB57OldWorkersAreFewAndTheirConnectionsLive(t *testing.T) {
	t.Parallel()
	const most = 8 // mworker-max-reloads
	w := Run(t, gateway+route("all", "rules:\n- backendRefs: [{name: one, port: 80}]"), pods("one", 2))
	var open [][]*upgraded
	for reload := range scaled(12, 50) {
		var some []*upgraded
		for range 2 {
			some = append(some, w.upgrade(t, "x.example", "/ws"))
		}
		open = append(open, some)
		w.Apply(t, strings.Replace(w.manifests, "listeners: [", fmt.Sprintf("listeners: [{name: more%d, port: %d, protocol: HTTP}, ", reload, 81+reload), 1))
		for generation := max(0, len(open)-most); generation < len(open); generation++ {
			for _, u := range open[generation] {
				u.alive(t, fmt.Sprintf("after reload %d, opened before reload %d", reload, generation))
			}
		}
		if now := w.processes(t); len(now.old) > most+1 {
			t.Errorf("after reload %d there are %d old workers", reload, len(now.old))
		}
	}
	last := w.processes(t)
	if children := w.children(t, last.master); len(children) > most+2 {
		t.Errorf("HAProxy's master has %d workers: %v", len(children), children)
	}
	for _, some := range open {
		for _, u := range some {
			_ = u.conn.Close()
		}
	}
	for range 200 {
		if len(w.processes(t).old) == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if now := w.processes(t); len(now.old) > 0 {
		t.Errorf("with all connections closed, the old workers %v are still there", now.old)
	}
}

// children are the processes that a process has started, and that are there.
func (w *World) children(t testing.TB, of int) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(of), "task", fmt.Sprint(of), "children"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}
