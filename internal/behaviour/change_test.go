package behaviour

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// upgraded is a connection that was upgraded, on which everything comes back.
type upgraded struct {
	conn net.Conn
	from *bufio.Reader
	pod  string
}

func (w *World) upgrade(t testing.TB, host, path string, headers ...string) *upgraded {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.at(80))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	lines := append(headers, "Connection: Upgrade", "Upgrade: echo")
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n", path, host, strings.Join(lines, "\r\n")); err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(conn)
	a := read(from, "GET")
	if a.status != 101 {
		t.Fatalf("an upgrade: %s", a.outcome())
	}
	return &upgraded{conn, from, a.header.Get("Pod")}
}

// alive says a word and waits for it to come back.
func (u *upgraded) alive(t testing.TB, what string) {
	t.Helper()
	_ = u.conn.SetDeadline(time.Now().Add(5 * time.Second))
	word := "are you there?\n"
	if _, err := io.WriteString(u.conn, word); err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if got, err := u.from.ReadString('\n'); got != word {
		t.Errorf("%s: %q, %v", what, got, err)
	}
}

func TestB42B57UpgradedConnectionsOutlastChangesAndReloads(t *testing.T) {
	t.Parallel()
	shop := route("shop", shopRules)
	plain := route("plain", "hostnames: [plain.example]\nrules:\n- backendRefs: [{name: one, port: 80}]")
	w := Run(t, gateway+plain, pods("one", 2), pods("shop", 2))
	var all []*upgraded
	for range 10 {
		all = append(all, w.upgrade(t, "plain.example", "/ws"))
	}
	alive := func(what string) {
		t.Helper()
		for _, u := range all {
			u.alive(t, what)
		}
	}
	w.Apply(t, gateway+plain+shop)
	alive("a sticky route added")
	w.scale(t, "one", 3)
	alive("scaled up")
	w.Apply(t, gateway+shop)
	alive("its own route gone")
	w.Apply(t, gateway+shop+plain)
	for i := range 4 {
		w.Apply(t, strings.Replace(gateway, "listeners: [", fmt.Sprintf("listeners: [{name: more, port: %d, protocol: HTTP}, ", 81+i), 1)+plain+shop)
		alive(fmt.Sprintf("reload %d", i+1))
	}
	if now := w.processes(t); now.reloads != 4 || len(now.old) != 1 {
		// The first worker has the connections, the others had none and are gone, but for the one that just ended.
		for range 100 {
			if now = w.processes(t); len(now.old) == 1 {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if now.reloads != 4 || len(now.old) != 1 {
			t.Errorf("%d reloads and the old workers %v, want 4 and the one with the connections", now.reloads, now.old)
		}
	}
	// An endpoint that goes leaves what is under way alone.
	w.pod("one-1").gone = true
	w.Sync(t)
	alive("an endpoint gone")
	for _, u := range all {
		_ = u.conn.Close()
	}
	// A session's endpoint is also an upgraded connection's.
	first := w.ok(t, get("shop.example/cookie"))
	for range 4 {
		if u := w.upgrade(t, "shop.example", "/cookie", "Cookie: shop="+first.token(t, "shop").String()); u.pod != first.echo.Pod {
			t.Errorf("upgraded at %s, the session is on %s", u.pod, first.echo.Pod)
		}
	}
}

// TestNoRequestFailsWhileEverythingChanges: visitors walk on while objects of all kinds come, go and change, by commands
// and by reloads.
func TestNoRequestFailsWhileEverythingChanges(t *testing.T) {
	t.Parallel()
	shop := route("shop", shopRules)
	w := Run(t, gateway+shop, pods("shop", 3), pods("other", 1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wait sync.WaitGroup
	var mu sync.Mutex
	asked, wrong := 0, map[string]int{}
	for _, path := range []string{"/cookie", "/header", "/generated"} {
		v := w.visitor("shop.example")
		if path == "/header" {
			v = w.headerVisitor("shop.example", "X-Session")
		}
		home := v.ok(t, path)
		wait.Go(func() {
			for ctx.Err() == nil {
				a := v.get(t, path)
				mu.Lock()
				asked++
				switch {
				case ctx.Err() != nil:
				case a.outcome() != "shop":
					wrong[path+": "+a.outcome()]++
				case a.echo.Pod != home:
					wrong[path+": moved from "+home]++
				}
				mu.Unlock()
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	other := route("other", "hostnames: [other.example]\nrules:\n"+sticky("/", "other", "{cookie: {}}"))
	for i := range 3 {
		w.Apply(t, gateway+shop+other)
		w.scale(t, "shop", 4+i)
		w.Apply(t, gateway+other+strings.Replace(shop, "name: shop, port: 80}", "name: shop, port: 80, weight: 5}", 1))
		w.scale(t, "other", 3-i)
		w.Apply(t, strings.Replace(gateway, "listeners: [", fmt.Sprintf("listeners: [{name: more, port: %d, protocol: HTTP}, ", 81+i), 1)+shop)
		s := w.service("shop")
		last := len(s.pods) - 1
		s.pods[last].drain()
		w.Sync(t)
		s.pods = s.pods[:last]
		w.Sync(t)
		w.restartLimpet(t)
		w.Apply(t, gateway+shop)
	}
	cancel()
	wait.Wait()
	if len(wrong) > 0 || asked < 200 {
		t.Errorf("of %d requests: %v", asked, wrong)
	}
	if reloads := w.Reloads(t); reloads != 6 {
		t.Errorf("%d reloads, want 6: a listener came and went three times", reloads)
	}
}

func TestB55B58WhatChangesNothingDoesNothing(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 3))
	before := w.limpet.result.Revision
	foreign := strings.Replace(route("foreign", "rules:\n- backendRefs: [{name: shop, port: 80}]"), "name: gw", "name: another", 1)
	for i, manifests := range []string{
		w.manifests, w.manifests, "# a comment\n" + w.manifests, w.manifests + foreign, foreign + w.manifests, w.manifests + certificate("unused", "x.example"),
		w.manifests + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: b}\n",
		gateway + strings.Replace(route("shop", shopRules), "metadata: {name: shop}", "metadata: {name: shop, labels: {a: b}, annotations: {c: d}}", 1),
	} {
		w.Apply(t, manifests)
		if r := w.limpet.result; r.Commands > 0 || r.Reloaded || r.Revision != before {
			t.Errorf("change %d: %d commands, reloaded %t (%v), revision %d after %d", i, r.Commands, r.Reloaded, r.Reasons, r.Revision, before)
		}
	}
	w.restartLimpet(t)
	if r := w.limpet.result; r.Commands > 0 || r.Reloaded {
		t.Errorf("Limpet started again: %d commands, reloaded %t (%v)", r.Commands, r.Reloaded, r.Reasons)
	}
	if reloads := w.Reloads(t); reloads != 0 {
		t.Errorf("%d reloads", reloads)
	}
}

func TestB65TheOrderInWhichObjectsComeDoesNotMatter(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway, pods("shop", 2))
	s := w.service("shop")
	w.services = nil
	objects := []string{
		route("shop", "rules:\n- backendRefs: [{name: shop, port: 80}, {name: shop, port: 80}]\n  sessionPersistence: {cookie: {name: c}}"),
		"---\napiVersion: v1\nkind: Service\nmetadata: {name: shop}\nspec: {ports: [{name: http, port: 80}]}\n",
		s.slice("shop-1", s.pods[0].endpoint()+s.pods[1].endpoint()),
	}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		w.Apply(t, gateway)
		manifests := gateway
		for _, i := range order {
			manifests += objects[i]
			w.Apply(t, manifests)
		}
		reached := w.count(t, 20, get("x.example/"), func(a answer) string { return a.echo.Pod })
		if reached["shop-1"] < 4 || reached["shop-2"] < 4 || len(reached) != 2 {
			t.Errorf("in the order %v: %v", order, reached)
		}
		// And in that order they go.
		for n := range order {
			manifests := gateway
			for _, i := range order[n+1:] {
				manifests += objects[i]
			}
			w.Apply(t, manifests)
			want := "404"
			if gone := order[:n+1]; !slices.Contains(gone, 0) {
				want = "500"
				if !slices.Contains(gone, 1) {
					want = "503"
				}
			}
			if got := w.ask(t, get("x.example/")).outcome(); got != want {
				t.Errorf("the first %d of %v gone: %s, want %s", n+1, order, got, want)
			}
		}
	}
	if reloads := w.Reloads(t); reloads != 0 {
		t.Errorf("%d reloads", reloads)
	}
}

func TestB66AnEndpointServesWithinASecond(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 40))
	var waits []time.Duration
	for range 10 {
		// A rollout's step: one comes, one goes, and what is about others changes meanwhile.
		s := w.service("shop")
		gone := s.pods[0]
		s.pods = s.pods[1:]
		p := w.addPod(t, s)
		start := time.Now()
		w.Sync(t)
		for p.requests.Load() == 0 {
			w.ask(t, get("shop.example/cookie"))
			if time.Since(start) > 10*time.Second {
				t.Fatal("no request reached it in ten seconds")
			}
		}
		waits = append(waits, time.Since(start))
		gone.stop()
	}
	// The median, because other tests take the machine's time at any one of them.
	slices.Sort(waits)
	if median := waits[len(waits)/2]; median > time.Second {
		t.Errorf("the first request reached an endpoint after %s: %s", median, waits)
	}
	if reloads := w.Reloads(t); reloads != 0 {
		t.Errorf("%d reloads", reloads)
	}
}

func TestB63AServicesPortIsWhatItsSlicesSay(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway, pods("one", 1), pods("two", 1))
	one, two := w.pod("one-1").at.Addr(), w.pod("two-1").at.Addr()
	w.services = nil
	slice := func(name, ports string, address any) string {
		return fmt.Sprintf(`---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %s, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [%s]
endpoints: [{addresses: [%s]}]
`, name, ports, address)
	}
	service := func(name, spec string) string {
		return "---\napiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
	}
	rules := "rules:\n"
	for _, name := range []string{"headless", "manual", "named", "several", "udp", "external", "appl"} {
		rules += "- matches: [{path: {value: /" + name + "}}]\n  backendRefs: [{name: " + name + ", port: 80}]\n"
	}
	w.Apply(t, gateway+route("all", rules+"- matches: [{path: {value: /other-port}}]\n  backendRefs: [{name: several, port: 81}]\n")+
		service("headless", "{clusterIP: None, ports: [{port: 80}]}")+slice("headless", "{port: 8080}", one)+
		service("manual", "{ports: [{port: 80, targetPort: 1234}]}")+slice("manual", "{name: '', port: 8080}", one)+
		service("named", "{ports: [{name: web, port: 80, targetPort: http}]}")+slice("named", "{name: http, port: 1}, {name: web, port: 8080}", one)+
		service("several", "{ports: [{name: a, port: 80}, {name: b, port: 81}]}")+slice("several", "{name: b, port: 1}, {name: a, port: 8080}", one)+
		strings.Replace(slice("several", "{name: b, port: 8080}, {name: a, port: 1, protocol: UDP}", two), "name: several, labels", "name: several-2, labels", 1)+
		service("udp", "{ports: [{name: a, port: 80, protocol: UDP}]}")+slice("udp", "{name: a, port: 8080, protocol: UDP}", one)+
		service("external", "{type: ExternalName, externalName: x.example, ports: [{port: 80}]}")+slice("external", "{port: 8080}", one)+
		service("appl", "{ports: [{port: 80, appProtocol: example.com/own}]}")+slice("appl", "{port: 8080}", one))
	w.check(t, []row{
		{"headless, another port than the Service's", get("x.example/headless"), "one"},
		{"slices by hand, without a selector", get("x.example/manual"), "one"},
		{"by the Service port's name", get("x.example/named"), "one"},
		{"several ports", get("x.example/several"), "one"},
		{"UDP", get("x.example/udp"), "500"},
		{"ExternalName", get("x.example/external"), "500"},
		{"B68: a protocol that is not spoken", get("x.example/appl"), "500"},
	})
	// The two slices have the other port on two addresses; one of them is wrong.
	if reached := w.count(t, 20, get("x.example/other-port"), answer.outcome); reached["two"] != 20 {
		t.Errorf("a port in several slices: %v", reached)
	}
	if got := w.condition(t, "HTTPRoute default/all", "ResolvedRefs"); got.Status != "False" || !strings.Contains(got.Message, "h2c") || !strings.Contains(got.Message, "ExternalName") {
		t.Errorf("ResolvedRefs is %s: %s", got.Status, got.Message)
	}
}
