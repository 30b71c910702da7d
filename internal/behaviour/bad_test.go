package behaviour

import (
	"fmt"
	"strings"
	"testing"
)

// TestB19OneBadObjectFreezesNobody: whatever somebody writes, the others' changes go on, after a fresh start too, and it is
// said what is wrong.
func TestB19OneBadObjectFreezesNobody(t *testing.T) {
	t.Parallel()
	good := route("good", "hostnames: [good.example]\nrules:\n"+sticky("/", "one", "{cookie: {name: good}}"))
	bad := map[string]string{
		"a parent that is not there":     strings.Replace(route("bad", "hostnames: [bad.example]"), "name: gw", "name: nobody", 1),
		"no rule":                        route("bad", "hostnames: [bad.example]\nrules: []"),
		"a host that is none":            route("bad", "hostnames: [\"-_/ \"]\nrules:\n- backendRefs: [{name: one, port: 80}]"),
		"an expression that is none":     route("bad", "rules:\n- matches: [{path: {type: RegularExpression, value: \"/(\"}}]\n  backendRefs: [{name: one, port: 80}]"),
		"an expression only for Perl":    route("bad", "rules:\n- matches: [{path: {type: RegularExpression, value: \"/(?=x)(?<n>a)\\\\1\"}}]\n  backendRefs: [{name: one, port: 80}]"),
		"an expression of RE2 alone":     route("bad", "rules:\n- matches: [{path: {type: RegularExpression, value: \"/\\\\pN\\\\z\\\\C[[:word:]]\"}}]\n  backendRefs: [{name: one, port: 80}]"),
		"a type that is none":            route("bad", "rules:\n- matches: [{path: {type: Glob, value: /x}}]\n  backendRefs: [{name: one, port: 80}]"),
		"a weight that is too large":     route("bad", "rules:\n- matches: [{path: {value: /x}}]\n  backendRefs: [{name: one, port: 80, weight: 1000001}]"),
		"a weight below zero":            route("bad", "rules:\n- matches: [{path: {value: /x}}]\n  backendRefs: [{name: one, port: 80, weight: -1}]"),
		"a port that is too large":       route("bad", "rules:\n- matches: [{path: {value: /x}}]\n  backendRefs: [{name: one, port: 99999}]"),
		"two cookies of one name":        route("bad", "hostnames: [bad.example]\nrules:\n"+sticky("/a", "one", "{cookie: {name: c}}")+sticky("/b", "one", "{cookie: {name: c}}")),
		"an endpoint that is no address": strings.ReplaceAll(strings.ReplaceAll((&service{name: "bad"}).manifest(), "endpoints: []", "endpoints: [{addresses: [nowhere]}, {addresses: [0.0.0.0]}, {addresses: ['::']}, {addresses: [224.0.0.1]}]"), "kind: Pod", "kind: Pod"),
		"the same address in two pods":   (&service{name: "bad", pods: []*pod{newPod("bad", "bad-1", block{1, 1}.address(1)), newPod("bad", "bad-2", block{1, 1}.address(1))}}).manifest(),
		"a Gateway without a listener":   "---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: bad}\nspec: {gatewayClassName: limpet, listeners: []}\n",
		"a Gateway on the same port":     "---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: zzz}\nspec: {gatewayClassName: limpet, listeners: [{name: http, port: 80, protocol: HTTP}]}\n",
		"a Gateway elsewhere":            "---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: bad}\nspec: {gatewayClassName: limpet, addresses: [{value: 192.0.2.1}], listeners: [{name: http, port: 80, protocol: HTTP}]}\n",
		"a Gateway with a hostname":      "---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: bad}\nspec: {gatewayClassName: limpet, addresses: [{type: Hostname, value: x.example}], listeners: [{name: http, port: 80, protocol: HTTP}]}\n",
		"no object":                      "---\nkind: Nothing\n",
		"no YAML":                        "---\n\t{[\n",
		"a class twice":                  class,
		"16 rules of 8 long matches":     route("bad", "hostnames: [bad.example]\nrules:\n"+strings.Repeat("- backendRefs: [{name: one, port: 80}]\n  matches: ["+strings.Repeat("{path: {value: /"+strings.Repeat("x", 1000)+"}, headers: [{name: a, value: "+strings.Repeat("y", 4000)+"}]}, ", 8)+"]\n", 16)),
		"17 rules":                       route("bad", "hostnames: [bad.example]\nrules:\n"+strings.Repeat("- backendRefs: [{name: one, port: 80}]\n", 17)),
	}
	w := Run(t, gateway+good, pods("one", 3), problems())
	c := w.crowd(t, 3, "good.example", "/")
	i := 0
	for name, manifest := range bad {
		i++
		host := fmt.Sprintf("fresh%d.example", i)
		fresh := route("fresh", "hostnames: ["+host+"]\nrules:\n- backendRefs: [{name: one, port: 80}]")
		w.write(t, "bad.yaml", manifest)
		w.Apply(t, gateway+good)
		w.Apply(t, gateway+good+fresh)
		if got := w.ask(t, get(host+"/")).outcome(); got != "one" {
			t.Errorf("%s: a route that is added is not served: %s", name, got)
		}
		if moved := c.moved(t, "/"); len(moved) > 0 {
			t.Errorf("%s: moved: %v", name, moved)
		}
		if i%8 == 0 {
			w.restart(t)
			if got := w.ask(t, get(host+"/")).outcome(); got != "one" {
				t.Errorf("%s, after a start: %s", name, got)
			}
		}
	}
}

func TestB10ARouteOfTwoGatewaysIsServedByBoth(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+`---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: more}
spec:
  gatewayClassName: limpet
  listeners: [{name: http, port: 81, protocol: HTTP}]
`+routeOf("both", "parentRefs: [{name: gw}, {name: more}]\nrules:\n"+sticky("/", "one", "{cookie: {}}"))+
		routeOf("other", "parentRefs: [{name: more}]\nrules:\n- matches: [{path: {value: /other}}]\n  backendRefs: [{name: two, port: 80}]"), pods("one", 3), pods("two", 1))
	onPort := func(port int, path string, headers ...string) request {
		return request{host: "x.example", target: path, port: port, headers: headers}
	}
	w.check(t, []row{
		{"the one", onPort(80, "/"), "one"}, {"the other", onPort(81, "/"), "one"},
		{"what only the other has", onPort(81, "/other"), "two"}, {"is not the one's", onPort(80, "/other"), "one"},
	})
	first := w.ok(t, onPort(80, "/"))
	cookie := first.given()[0]
	if a := w.ok(t, onPort(81, "/", "Cookie: "+cookie.Name+"="+cookie.Value)); a.echo.Pod != first.echo.Pod || !a.keeps() {
		t.Errorf("at the other Gateway the session is on %s, want %s", a.echo.Pod, first.echo.Pod)
	}
	for _, update := range w.limpet.status {
		if update.Object.String() != "HTTPRoute default/both" {
			continue
		}
		var parents []string
		for _, section := range update.Sections() {
			parents = append(parents, section.Name)
		}
		if strings.Join(parents, ", ") != "parent default/gw, parent default/more" {
			t.Errorf("the status has %v", parents)
		}
	}
}

func TestB21WhatIsNotServedOnAPortLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	w := Run(t, listeners(`
  - {name: https, port: 443, protocol: HTTPS, hostname: a.ex.com, tls: {certificateRefs: [{name: a}]}}
  - {name: pass, port: 443, protocol: TLS, hostname: pass.ex.com, tls: {mode: Terminate, certificateRefs: [{name: missing}]}}
  - {name: http, port: 80, protocol: HTTP}
  - {name: udp, port: 82, protocol: UDP}
`)+certificate("a", "a.ex.com")+route("all", "rules:\n"+sticky("/", "one", "{cookie: {}}"))+`---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: pass}
spec:
  parentRefs: [{name: gw, sectionName: pass}]
  hostnames: [pass.ex.com]
  rules: [{backendRefs: [{name: one, port: 80}]}]
`, pods("one", 2))
	for _, r := range []request{get("a.ex.com/"), {host: "a.ex.com", target: "/", tls: true}} {
		if a := w.ok(t, r); a.keeps() {
			t.Errorf("TLS %t: no session", r.tls)
		}
	}
	if a := w.ask(t, request{host: "pass.ex.com", target: "/", tls: true}); a.err == nil {
		t.Errorf("the listener without a certificate answers: %s", a.outcome())
	}
	if got := w.condition(t, "Gateway default/gw", "Accepted"); got.Reason != "ListenersNotValid" || !strings.Contains(got.Message, "udp") {
		t.Errorf("Accepted is %s, %s: %s", got.Status, got.Reason, got.Message)
	}
	if got := w.listenerCondition(t, "gw", "pass", "Programmed"); got.Status != "False" {
		t.Errorf("the listener without a certificate is Programmed: %+v", got)
	}
}

func TestASessionIsOneOnAllListeners(t *testing.T) {
	t.Parallel()
	w := Run(t, listeners(twoPorts)+certificate("cert", "x.example")+route("all", "rules:\n"+sticky("/", "one", "{cookie: {name: c}}")), pods("one", 4))
	v := w.visitor("x.example")
	first := v.ok(t, "/")
	v.tls = true
	for range 5 {
		if got := v.ok(t, "/"); got != first {
			t.Errorf("over TLS on %s, want %s", got, first)
		}
	}
	// A cookie of TLS is not sent in plain text.
	secret := w.visitor("x.example")
	secret.tls = true
	secret.ok(t, "/")
	if secret.tls = false; secret.cookies("/") != "" {
		t.Errorf("the browser sends %q in plain text", secret.cookies("/"))
	}
}
