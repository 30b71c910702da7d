package behaviour

import (
	"fmt"
	"strings"
	"testing"
)

// selected are the pods of a Service as Pods that an XBackend selects by the Service's name.
func selected(s *service) string {
	var all strings.Builder
	for _, p := range s.pods {
		if p.gone {
			continue
		}
		deleted := ""
		if p.terminating {
			deleted = `, deletionTimestamp: "2026-01-01T00:00:00Z"`
		}
		fmt.Fprintf(&all, `---
apiVersion: v1
kind: Pod
metadata: {name: %s, uid: %s, labels: {app: %s}%s}
status: {conditions: [{type: Ready, status: "%s"}], podIPs: [{ip: %s}]}
`, p.name, p.uid, p.service, deleted, map[bool]string{true: "True", false: "False"}[p.ready || p.terminating], p.at.Addr())
	}
	return all.String()
}

// xbackend selects the pods of the Service of its name; more of its spec follows.
func xbackend(name, spec string) string {
	return fmt.Sprintf(`---
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XBackend
metadata: {name: %s}
spec: {type: EndpointSelector, port: {number: %d}, endpointSelector: {matchLabels: {app: %s}}, %s}
`, name, podPort, name, spec)
}

func toXBackend(name string) string {
	return "{group: gateway.networking.x-k8s.io, kind: XBackend, name: " + name + "}"
}

// applyPods serves manifests together with the Pods of the World's Services.
func (w *World) applyPods(t testing.TB, manifests string) {
	t.Helper()
	for _, s := range w.services {
		manifests += selected(s)
	}
	w.Apply(t, manifests)
}

func TestAnXBackendSelectsPods(t *testing.T) {
	t.Parallel()
	ca := newAuthority()
	manifests := gateway + bundle("ca", ca) + certificate("client", "client.internal") +
		xbackend("plain", "protocol: HTTP11") + xbackend("h2c", "protocol: H2C") +
		xbackend("tls", "tls: {mode: ServerOnly, validation: {hostname: s.internal, "+trustCA+"}}") +
		xbackend("mutual", "protocol: HTTP2, tls: {mode: ClientAndServer, clientCertificateRef: {name: client}, validation: {hostname: s.internal, "+trustCA+"}}") +
		xbackend("stranger", "tls: {mode: ServerOnly, validation: {hostname: other.internal, "+trustCA+"}}") +
		xbackend("empty", "protocol: HTTP")
	var rules strings.Builder
	for _, name := range []string{"plain", "h2c", "tls", "mutual", "stranger", "empty"} {
		fmt.Fprintf(&rules, "- matches: [{path: {value: /%s}}]\n  backendRefs: [%s]\n", name, toXBackend(name))
	}
	manifests += route("all", "rules:\n"+rules.String())
	w := Run(t, gateway, pods("plain", 3), speaking("h2c", "", true, nil), speaking("tls", "", false, ca.server("s.internal")),
		speaking("mutual", "", true, ca.server("s.internal")), speaking("stranger", "", false, ca.server("s.internal")))
	w.applyPods(t, manifests)
	for name, want := range map[string]string{"plain": "HTTP/1.1", "h2c": "HTTP/2.0", "tls": "HTTP/1.1", "mutual": "HTTP/2.0"} {
		if got := w.ok(t, get("a.com/"+name)).echo; got.Service != name || got.Protocol != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := w.ok(t, get("a.com/mutual")).echo; got.Client != "client.internal" || got.ServerName != "s.internal" {
		t.Errorf("%+v", got)
	}
	if got := w.ok(t, get("a.com/tls")).echo; got.Client != "" {
		t.Errorf("a client certificate was shown: %+v", got)
	}
	w.check(t, []row{
		{"a certificate for another name", get("a.com/stranger"), "503"},
		{"no Pods", get("a.com/empty"), "503"},
	})
	if counts := w.count(t, 30, get("a.com/plain"), func(a answer) string { return a.echo.Pod }); len(counts) != 3 {
		t.Errorf("%v", counts)
	}
	w.pod("plain-1").gone = true
	w.applyPods(t, manifests)
	if counts := w.count(t, 30, get("a.com/plain"), func(a answer) string { return a.echo.Pod }); len(counts) != 2 || counts["plain-1"] > 0 {
		t.Errorf("%v", counts)
	}
}

func TestASessionOfAnXBackendHoldsInEveryRuleAndRoute(t *testing.T) {
	t.Parallel()
	manifests := gateway + xbackend("shop", "sessionPersistence: {cookie: {}}") + xbackend("other", "sessionPersistence: {type: Header, header: {name: X-S}}") +
		route("one", "rules:\n- matches: [{path: {value: /one}}]\n  backendRefs: ["+toXBackend("shop")+"]\n"+
			"- matches: [{path: {value: /two}}]\n  backendRefs: ["+toXBackend("shop")+"]\n") +
		route("two", "hostnames: [b.com]\nrules:\n- backendRefs: ["+toXBackend("shop")+", "+toXBackend("other")+"]\n")
	w := Run(t, gateway, pods("shop", 4), pods("other", 4))
	w.applyPods(t, manifests)
	for range 5 {
		v := w.visitor("a.com")
		first := v.get(t, "/one").echo.Pod
		for i := range 20 {
			path := []string{"/one", "/two"}[i%2]
			if got := v.get(t, path).echo.Pod; got != first {
				t.Fatalf("%s: %s after %s", path, got, first)
			}
		}
	}
	v := w.headerVisitor("b.com", "X-S")
	seen := map[string]map[string]bool{"shop": {}, "other": {}}
	for range 60 {
		got := v.get(t, "/").echo
		seen[got.Service][got.Pod] = true
	}
	if len(seen["shop"]) != 1 || len(seen["other"]) != 1 {
		t.Errorf("in a split each keeps its own: %v", seen)
	}
	w.Apply(t, strings.Replace(w.manifests, "- matches: [{path: {value: /two}}]\n  backendRefs: ["+toXBackend("shop")+"]\n", "", 1))
	again := w.visitor("a.com")
	first := again.get(t, "/one").echo.Pod
	for range 10 {
		if got := again.get(t, "/one").echo.Pod; got != first {
			t.Fatalf("without the other rule the session is lost: %s after %s", got, first)
		}
	}
}

func TestEachGatewayShowsBackendsItsOwnCertificate(t *testing.T) {
	t.Parallel()
	ca := newAuthority()
	second := func(tls string) string {
		return "---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: second}\nspec:\n  gatewayClassName: limpet\n" + tls +
			"  listeners: [{name: http, port: 81, protocol: HTTP}]\n"
	}
	shown := "  tls: {backend: {clientCertificateRef: {name: client}}}\n"
	manifests := func(tls string) string {
		return gateway + second(tls) + bundle("ca", ca) + certificate("client", "second.example") + backendTLS("one", "hostname: s.internal, "+trustCA) +
			routeOf("all", "parentRefs: [{name: gw}, {name: second}]\nrules:\n- backendRefs: [{name: one, port: 80}]")
	}
	w := Run(t, manifests(shown), speaking("one", "https", false, ca.server("s.internal")))
	at := func(port int) string {
		r := get("a.com/")
		r.port = port
		return w.ok(t, r).echo.Client
	}
	if first, second := at(80), at(81); first != "" || second != "second.example" {
		t.Errorf("gw shows %q, second %q", first, second)
	}
	w.Apply(t, manifests(""))
	if first, second := at(80), at(81); first != "" || second != "" {
		t.Errorf("without the certificate gw shows %q, second %q", first, second)
	}
}
