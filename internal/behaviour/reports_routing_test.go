package behaviour

// Field reports, section A: precedence and hostnames. docs/field-reports.md lists all of them.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestB01TheOrderInWhichRoutesComeDoesNotMatter: routes with one match come in any order and go again. It is always the
// oldest that answers, of those of one second the first by namespace and name, within a route the first rule.
func TestB01TheOrderInWhichRoutesComeDoesNotMatter(t *testing.T) {
	t.Parallel()
	open := strings.Replace(gateway, "protocol: HTTP}", "protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}", 1)
	rules := func(names ...string) string {
		var b strings.Builder
		b.WriteString("rules:")
		for _, name := range names {
			for _, match := range []string{"path: {value: /c}", "path: {value: /h}, headers: [{name: a, value: b}]", "path: {type: Exact, value: /e}"} {
				fmt.Fprintf(&b, "\n- matches: [{%s}]\n  filters: [{type: RequestRedirect, requestRedirect: {hostname: %s.example}}]", match, name)
			}
		}
		return b.String()
	}
	in := func(namespace, manifest string) string {
		return strings.Replace(strings.Replace(manifest, "metadata: {", "metadata: {namespace: "+namespace+", ", 1), "parentRefs: [{name: gw}]", "parentRefs: [{name: gw, namespace: default}]", 1)
	}
	// In the order of their precedence.
	routes := []struct{ winner, manifest string }{
		{"oldest", aged("00", "zzz", rules("oldest"))},
		{"namespace", in("aaa", aged("05", "zzz", rules("namespace")))},
		{"name", aged("05", "a", rules("name"))},
		{"rule", aged("05", "b", rules("rule", "never"))},
		{"youngest", in("aaa", aged("06", "aaa", rules("youngest")))},
	}
	w := Run(t, open)
	check := func(there []int, what string) {
		t.Helper()
		manifests := open
		for _, i := range there {
			manifests += routes[i].manifest
		}
		w.Apply(t, manifests)
		want := "404"
		if len(there) > 0 {
			want = "302 http://" + routes[slices.Min(there)].winner + ".example/"
		}
		for _, r := range []request{get("x.example/c"), get("x.example/h", "A: b"), get("x.example/e")} {
			if got := w.ask(t, r).outcome(); strings.TrimRight(got, "che") != want {
				t.Errorf("%s, %v: %s is answered with %s, want %s", what, there, r.target, got, want)
			}
		}
	}
	for range 6 {
		order := rand.Perm(len(routes))
		for n := range order {
			check(order[:n+1], "coming")
		}
		w.restartLimpet(t)
		check(order, "Limpet started again")
		for n := range order {
			check(order[n+1:], "going")
		}
	}
	w.restart(t)
	check([]int{4, 3, 2, 1, 0}, "both started again")
}

// TestB02ASlashAtTheEndOfAPrefixChangesNothing: "/v2" and "/v2/" are one prefix, so that of two routes the older has it,
// whichever way it is written, with conditions too.
func TestB02ASlashAtTheEndOfAPrefixChangesNothing(t *testing.T) {
	t.Parallel()
	rules := func(prefix, service string) string {
		return "rules:\n- matches: [{path: {value: " + prefix + "}}]\n  backendRefs: [{name: " + service + ", port: 80}]\n" +
			"- matches: [{path: {value: /c" + prefix + "}, headers: [{name: a, value: b}]}]\n  backendRefs: [{name: " + service + ", port: 80}]\n"
	}
	w := Run(t, gateway, pods("one", 1), pods("two", 1))
	for _, prefixes := range [][2]string{{"/v2", "/v2/"}, {"/v2/", "/v2"}, {"/v2/", "/v2/"}} {
		w.Apply(t, gateway+aged("00", "zzz", rules(prefixes[0], "one"))+aged("01", "aaa", rules(prefixes[1], "two")))
		for target, want := range map[string]string{
			"/v2": "one", "/v2/": "one", "/v2/x": "one", "/v2?q": "one", "/v2//": "one", "/v2example": "404", "/v2.": "404", "/v2%2F": "404", "/v": "404",
			"/c/v2": "one", "/c/v2/": "one", "/c/v2/x": "one", "/c/v2example": "404",
		} {
			if got := w.ask(t, get("x.example"+target, "A: b")).outcome(); got != want {
				t.Errorf("%v: %s is answered by %s, want %s", prefixes, target, got, want)
			}
		}
	}
}

// TestB08WhateverARequestMatchedByItIsNotPassedOn: path, header, method, query, expression and hostname choose a rule
// whose backend is down while a broader one is up.
func TestB08WhateverARequestMatchedByItIsNotPassedOn(t *testing.T) {
	t.Parallel()
	down := func(backend string) string {
		var b strings.Builder
		for _, match := range []string{
			"path: {value: /prefix}", "path: {type: Exact, value: /exact}", "path: {type: RegularExpression, value: \"/re.*\"}",
			"headers: [{name: x-down, value: header}]", "method: DELETE", "queryParams: [{name: down, value: query}]",
		} {
			fmt.Fprintf(&b, "- matches: [{%s}]\n  backendRefs: [%s]\n", match, backend)
		}
		return b.String()
	}
	requests := []request{
		get("x.example/prefix/x"), get("x.example/exact"), get("x.example/regular"), get("x.example/", "X-Down: header"),
		{method: "DELETE", host: "x.example", target: "/"}, get("x.example/?down=query"), get("down.example/"),
	}
	manifests := func(backend string) string {
		return gateway + route("all", "rules:\n- backendRefs: [{name: one, port: 80}]\n"+down(backend)) +
			route("wild", "hostnames: [\"*.example\"]\nrules:\n- backendRefs: [{name: one, port: 80}]\n"+down(backend)) +
			route("host", "hostnames: [down.example]\nrules:\n- backendRefs: ["+backend+"]")
	}
	w := Run(t, gateway, pods("one", 1), pods("down", 0))
	for _, c := range []struct{ what, backend, want string }{
		{"no endpoint", "{name: down, port: 80}", "503"},
		{"no Service", "{name: missing, port: 80}", "500"},
		{"no such port", "{name: one, port: 81}", "500"},
		{"no grant", "{name: one, namespace: elsewhere, port: 80}", "500"},
		{"no such kind", "{kind: Nothing, name: one, port: 80}", "500"},
		{"no weight", "{name: one, port: 80, weight: 0}", "500"},
	} {
		w.Apply(t, manifests(c.backend))
		for _, r := range requests {
			if got := w.ask(t, r).outcome(); got != c.want {
				t.Errorf("%s: %s of %s is answered with %s, want %s", c.what, firstLine(r.text()), r.host, got, c.want)
			}
		}
		if got := w.ask(t, get("x.example/")).outcome(); got != "one" {
			t.Errorf("%s: the broader rule is answered with %s", c.what, got)
		}
	}
	// In a pair, the share of what is missing is 500, and nobody else's.
	w.Apply(t, manifests("{name: down, port: 80, weight: 3}, {name: missing, port: 80, weight: 1}"))
	w.scale(t, "down", 1)
	if counts := w.count(t, 200, get("x.example/prefix"), answer.outcome); counts["down"]+counts["500"] != 200 || !within(counts["500"], 200, 0.25) {
		t.Errorf("a quarter is missing: %v of 200", counts)
	}
	w.scale(t, "down", 0)
	if counts := w.count(t, 200, get("x.example/prefix"), answer.outcome); counts["503"]+counts["500"] != 200 || !within(counts["500"], 200, 0.25) {
		t.Errorf("a quarter is missing, the rest is down: %v of 200", counts)
	}
	w.pod("one-1").stop()
	if got := w.ask(t, get("x.example/")).outcome(); got != "503" {
		t.Errorf("an endpoint that refuses: %s", got)
	}
}

// TestB10EveryParentIsInTheStatusOnce: a route with as many parents as there may be, of two Gateways of ours and one of
// somebody else's. The order is that of the route, and nothing flips.
func TestB10EveryParentIsInTheStatusOnce(t *testing.T) {
	t.Parallel()
	var gateways strings.Builder
	var refs []string
	for g := range 2 {
		var all []string
		for i := range 16 - g {
			all = append(all, fmt.Sprintf("{name: l%d, port: %d, protocol: HTTP}", i, 100*(g+1)+i))
			refs = append(refs, fmt.Sprintf("{name: gw%d, sectionName: l%d}", g, i))
		}
		fmt.Fprintf(&gateways, "---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: gw%d}\nspec:\n  gatewayClassName: limpet\n  listeners: [%s]\n", g, strings.Join(all, ", "))
	}
	foreign := "{name: foreign}"
	manifests := func(refs []string) string {
		return class + gateways.String() + routeOf("all", "parentRefs: ["+strings.Join(refs, ", ")+"]\nrules:\n- backendRefs: [{name: one, port: 80}]")
	}
	w := Run(t, manifests(append([]string{foreign}, refs...)), pods("one", 1))
	check := func(what string, refs []string) {
		t.Helper()
		var want []string
		for _, ref := range refs {
			want = append(want, "parent default/"+strings.NewReplacer("{name: ", "", ", sectionName: ", " ", "}", "").Replace(ref))
		}
		var got []string
		for _, update := range w.limpet.status {
			if update.Object.String() == "HTTPRoute default/all" {
				for _, section := range update.Sections() {
					got = append(got, section.Name)
					if accepted := section.Conditions[0]; accepted.Type != "Accepted" || accepted.Status != "True" {
						t.Errorf("%s: %s is %s: %s", what, section.Name, accepted.Reason, accepted.Message)
					}
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the status has\n%s, want\n%s", what, strings.Join(got, ", "), strings.Join(want, ", "))
		}
	}
	check("at first", refs)
	before := w.limpet.status
	for range 3 {
		w.Sync(t)
	}
	if !slices.Equal(before, w.limpet.status) {
		t.Error("the statuses are not the same, although nothing changed")
	}
	w.restartLimpet(t)
	check("Limpet started again", refs)
	slices.Reverse(refs)
	w.Apply(t, manifests(append(slices.Clone(refs), foreign)))
	check("in another order", refs)
	for _, port := range []int{100, 114, 200, 214} {
		if got := w.ask(t, request{host: "x.example", target: "/", port: port}).outcome(); got != "one" {
			t.Errorf("port %d: %s", port, got)
		}
	}
}
