package behaviour

// Field reports, section J: statuses.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/status"
)

// TestB75AStatusHasOurEntriesAlone: a route with parents of two controllers, and what others wrote into its status, as it
// is read. Ours are written once each, in the route's order, and never again while they are equal.
func TestB75AStatusHasOurEntriesAlone(t *testing.T) {
	t.Parallel()
	const others = `---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: other}
spec: {controllerName: other.example/controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: theirs}
spec: {gatewayClassName: other, listeners: [{name: http, port: 80, protocol: HTTP}]}
`
	junk := `status:
  parents:
  - {parentRef: {name: gw}, controllerName: junk.example/x, conditions: [{type: Accepted, status: "False", reason: Junk, message: junk, lastTransitionTime: "2026-01-01T00:00:00Z"}]}
  - {parentRef: {name: theirs}, controllerName: other.example/controller, conditions: []}
  - {parentRef: {name: gw}, controllerName: limpet.dev/gateway-controller, conditions: []}
  - {parentRef: {name: gw}, controllerName: limpet.dev/gateway-controller, conditions: []}
`
	both := routeOf("both", "parentRefs: [{name: theirs, sectionName: http}, {name: gw}, {name: theirs, sectionName: other}]\nrules:\n- backendRefs: [{name: one, port: 80}]")
	theirs := routeOf("theirs", "parentRefs: [{name: theirs}]\nrules:\n- backendRefs: [{name: one, port: 80}]")
	w := Run(t, gateway+others+both+theirs, pods("one", 1))
	file := filepath.Join(w.folder, "status.yaml")
	store := status.NewStore(status.StoreOptions{File: file})
	check := func(what string) {
		t.Helper()
		if err := store.Write(t.Context(), w.limpet.status); err != nil {
			t.Fatal(err)
		}
		for _, update := range w.limpet.status {
			switch object := update.Object.String(); {
			case strings.HasSuffix(object, "theirs") || strings.HasSuffix(object, " other"):
				t.Errorf("%s: %s gets a status from us", what, object)
			case object == "HTTPRoute default/both":
				parents := update.Status.Route.Parents
				if len(parents) != 1 || parents[0].ParentRef.Name != "gw" || parents[0].ControllerName != "limpet.dev/gateway-controller" {
					t.Errorf("%s: the parents are %+v", what, parents)
				}
				if got := w.condition(t, object, "Accepted"); got.Status != "True" || got.Reason == "Junk" {
					t.Errorf("%s: Accepted is %s, %s", what, got.Status, got.Reason)
				}
			}
		}
	}
	check("at first")
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		w.Apply(t, gateway+others+strings.Replace(both, "spec:", strings.Repeat(junk, i%2)+"spec:", 1)+theirs)
		check(fmt.Sprintf("written by others, %d", i))
	}
	w.restartLimpet(t)
	check("Limpet started again")
	if after, err := os.Stat(file); err != nil || after.ModTime() != before.ModTime() || !os.SameFile(before, after) {
		t.Errorf("the status was written again, although nothing changed: %v", err)
	}
}

// TestB77AFailedReloadChangesNoRoutesStatus: HAProxy does not take a reload, since it hangs. Routes stay accepted, Gateways
// that it serves programmed, the one that changed says that it is not served yet; traffic goes on, and it heals.
func TestB77AFailedReloadChangesNoRoutesStatus(t *testing.T) {
	t.Parallel()
	more := strings.Replace(strings.TrimPrefix(gateway, class), "{name: gw}", "{name: more}", 1)
	more = strings.Replace(more, "port: 80", "port: 81", 1)
	routes := route("shop", shopRules) + routeOf("more", "parentRefs: [{name: more}]\nrules:\n- backendRefs: [{name: shop, port: 80}]")
	w := Run(t, gateway+more+routes, pods("shop", 3))
	a := w.audience(t, 3)
	w.limpet.options.timeout = 2 * time.Second
	w.restartLimpet(t)
	master := w.processes(t).master
	if err := syscall.Kill(master, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(master, syscall.SIGCONT) }()
	changed := strings.Replace(gateway, "listeners: [", "listeners: [{name: new, port: 82, protocol: HTTP}, ", 1) + more + routes
	w.write(t, "manifests.yaml", changed)
	snapshot, _ := w.limpet.files.Load()
	if err := w.limpet.controller.Step(t.Context(), snapshot); err == nil {
		t.Fatal("HAProxy hangs, and was reloaded: nothing is shown")
	}
	conditions := func(when string, want map[string]string) {
		t.Helper()
		for of, status := range want {
			object, kind, _ := strings.Cut(of, ": ")
			if got := w.condition(t, object, kind); string(got.Status) != status {
				t.Errorf("%s: %s is %s, %s: %s", when, of, got.Status, got.Reason, got.Message)
			}
		}
	}
	conditions("failed", map[string]string{
		"HTTPRoute default/shop: Accepted": "True", "HTTPRoute default/shop: ResolvedRefs": "True", "HTTPRoute default/more: Accepted": "True",
		"Gateway default/gw: Accepted": "True", "Gateway default/gw: Programmed": "False", "Gateway default/more: Programmed": "True",
	})
	a.stay(t, "HAProxy's master hangs")
	if got := w.ask(t, request{host: "x.example", target: "/", port: 81}).outcome(); got != "shop" {
		t.Errorf("the other Gateway: %s", got)
	}
	if err := syscall.Kill(master, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.settle(t, changed)
	conditions("healed", map[string]string{"HTTPRoute default/shop: Accepted": "True", "Gateway default/gw: Programmed": "True", "Gateway default/more: Programmed": "True"})
	w.eventually(t, request{host: "shop.example", target: "/cookie", port: 82}, "shop")
	a.stay(t, "healed")
}

// TestB79AnEditChangesTheStatusesThatItIsAbout: three listeners on one port, routes with several sections, thirty edits. No
// edit gives more objects another status than it touches, and one that changes nothing none.
func TestB79AnEditChangesTheStatusesThatItIsAbout(t *testing.T) {
	t.Parallel()
	listener := func(name string) string {
		return "  - {name: " + name + ", port: 443, protocol: HTTPS, hostname: " + name + ".ex.com, tls: {certificateRefs: [{name: cert}]}}\n"
	}
	base := listeners("\n"+listener("a")+listener("b")+listener("c")) + certificate("cert", "a.ex.com", "b.ex.com", "c.ex.com")
	const count = 12
	edits := make([]int, count)
	manifests := func() string {
		all := base
		for i, edit := range edits {
			all += routeOf(fmt.Sprintf("r%d", i), fmt.Sprintf("parentRefs: [{name: gw, sectionName: a}, {name: gw, sectionName: b}, {name: gw, sectionName: c}]\nrules:\n- matches: [{path: {value: /%d/%d}}]\n  backendRefs: [{name: one, port: 80}]", i, edit))
		}
		return all
	}
	w := Run(t, manifests(), pods("one", 1))
	for edit := range 30 {
		before := map[string]*status.Update{}
		for _, update := range w.limpet.status {
			before[update.Object.String()] = update
		}
		edits[edit%count]++
		w.Apply(t, manifests())
		for _, update := range w.limpet.status {
			object := update.Object.String()
			if object != fmt.Sprintf("HTTPRoute default/r%d", edit%count) && before[object] != update {
				t.Errorf("edit %d: %s has another status", edit, object)
			}
		}
		now := w.limpet.status
		w.Sync(t)
		for i, update := range w.limpet.status {
			if now[i] != update {
				t.Errorf("after edit %d: %s has another status, although nothing changed", edit, update.Object)
			}
		}
		if got := w.ask(t, request{host: "b.ex.com", target: fmt.Sprintf("/%d/%d", edit%count, edits[edit%count]), tls: true}).outcome(); got != "one" {
			t.Errorf("edit %d: %s", edit, got)
		}
	}
	if reloads := w.Reloads(t); reloads != 0 {
		t.Errorf("%d reloads", reloads)
	}
}
