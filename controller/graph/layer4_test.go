package graph

import (
	"fmt"
	"strings"
	"testing"
)

const layer4Listeners = class + `---
kind: Gateway
metadata: {name: gw, namespace: default}
spec:
  gatewayClassName: limpet
  listeners:
  - {name: http, port: 80, protocol: HTTP}
  - {name: every, port: 443, protocol: TLS, tls: {mode: Passthrough}}
  - {name: wild, port: 443, protocol: TLS, hostname: '*.a.com', tls: {mode: Passthrough}}
  - {name: tcp, port: 9000, protocol: TCP}
  - {name: more, port: 9001, protocol: TCP}
  - {name: all, port: 9002, protocol: TCP, allowedRoutes: {namespaces: {from: All}}}
`

// layer4Route is a TLSRoute or TCPRoute with its whole spec.
func layer4Route(kind, name, spec string) string {
	return fmt.Sprintf("---\nkind: %s\nmetadata: {name: %s, namespace: default}\nspec: %s\n", kind, name, spec)
}

func TestRoutesAtLayer4(t *testing.T) {
	t.Parallel()
	const (
		toShop     = "rules: [{backendRefs: [{name: shop, port: 80}]}]"
		noParent   = "Accepted=False/NoMatchingParent ResolvedRefs=True/ResolvedRefs"
		notAllowed = "Accepted=False/NotAllowedByListeners ResolvedRefs=True/ResolvedRefs"
		noHostname = "Accepted=False/NoMatchingListenerHostname ResolvedRefs=True/ResolvedRefs"
		unusable   = "Accepted=False/UnsupportedValue ResolvedRefs=True/ResolvedRefs"
	)
	refs := func(reason string) string { return "Accepted=True/Accepted ResolvedRefs=False/" + reason }
	for _, test := range []struct{ name, kind, spec, want, listeners, backends, message string }{
		{"a hostname attaches where it matches", "TLSRoute", "{parentRefs: [{name: gw}], hostnames: [x.a.com], " + toShop + "}", routeOK, "every wild", "shop", ""},
		{"a broader hostname too", "TLSRoute", "{parentRefs: [{name: gw, sectionName: wild}], hostnames: ['*.com'], " + toShop + "}", routeOK, "wild", "shop", ""},
		{"no hostname in common", "TLSRoute", "{parentRefs: [{name: gw, sectionName: wild}], hostnames: [a.com], " + toShop + "}", noHostname, "", "shop", ""},
		{"one hostname of two in common", "TLSRoute", "{parentRefs: [{name: gw, sectionName: wild}], hostnames: [x.a.com, b.com], " + toShop + "}", routeOK, "wild", "shop", ""},
		{"a wildcard is a whole label", "TLSRoute", "{parentRefs: [{name: gw, sectionName: wild}], hostnames: ['x*.a.com'], " + toShop + "}",
			"Accepted=False/NoMatchingListenerHostname ResolvedRefs=True/ResolvedRefs", "", "", "only its first label may be a wildcard"},
		{"a TLSRoute has hostnames", "TLSRoute", "{parentRefs: [{name: gw}], " + toShop + "}", unusable, "", "", "spec.hostnames must have"},
		{"a TLSRoute is for TLS", "TLSRoute", "{parentRefs: [{name: gw, sectionName: tcp}], hostnames: [x.a.com], " + toShop + "}", notAllowed, "", "shop", ""},
		{"and not for HTTP", "TLSRoute", "{parentRefs: [{name: gw, port: 80}], hostnames: [x.a.com], " + toShop + "}", notAllowed, "", "shop", ""},
		{"no such section", "TLSRoute", "{parentRefs: [{name: gw, sectionName: x}], hostnames: [x.a.com], " + toShop + "}", noParent, "", "shop", ""},
		{"many hostnames", "TLSRoute", "{parentRefs: [{name: gw}], hostnames: [" + strings.Repeat("x.a.com, ", 1024) + "], " + toShop + "}", routeOK, "every wild", "shop", ""},
		{"too many hostnames", "TLSRoute", "{parentRefs: [{name: gw}], hostnames: [" + strings.Repeat("x.a.com, ", 1025) + "], " + toShop + "}", unusable, "", "", "1024"},
		{"a TCPRoute attaches to all TCP listeners", "TCPRoute", "{parentRefs: [{name: gw}], " + toShop + "}", routeOK, "tcp more all", "shop", ""},
		{"or to one by name and port", "TCPRoute", "{parentRefs: [{name: gw, sectionName: tcp, port: 9000}], " + toShop + "}", routeOK, "tcp", "shop", ""},
		{"a TCPRoute is not for TLS", "TCPRoute", "{parentRefs: [{name: gw, sectionName: every}], " + toShop + "}", notAllowed, "", "shop", ""},
		{"one rule is all it can have", "TCPRoute", "{parentRefs: [{name: gw}], rules: [{backendRefs: [{name: shop, port: 80}]}, {backendRefs: [{name: shop, port: 80}]}]}",
			unusable, "", "", "from 1 to 1 entries, not 2"},
		{"and must have", "TCPRoute", "{parentRefs: [{name: gw}]}", unusable, "", "", "from 1 to 1 entries, not 0"},
		{"a rule without backends", "TCPRoute", "{parentRefs: [{name: gw}], rules: [{}]}", unusable, "", "", "backendRefs: must have at least one entry"},
		{"a Service that does not exist", "TCPRoute", "{parentRefs: [{name: gw, sectionName: tcp}], rules: [{backendRefs: [{name: gone, port: 80}]}]}", refs("BackendNotFound"), "tcp", "invalid", ""},
		{"a Service of another namespace", "TLSRoute", "{parentRefs: [{name: gw, sectionName: wild}], hostnames: [x.a.com], rules: [{backendRefs: [{name: far, namespace: red, port: 80}]}]}",
			refs("RefNotPermitted"), "wild", "invalid", ""},
		{"another kind", "TLSRoute", "{parentRefs: [{name: gw, sectionName: wild}], hostnames: [x.a.com], rules: [{backendRefs: [{kind: Other, name: x, port: 80}]}]}", refs("InvalidKind"), "wild", "invalid", ""},
		{"what is spoken does not matter", "TCPRoute", "{parentRefs: [{name: gw, sectionName: tcp}], rules: [{backendRefs: [{name: postgres, port: 5432}]}]}", routeOK, "tcp", "postgres", ""},
		{"weights and an invalid one", "TCPRoute", "{parentRefs: [{name: gw, sectionName: tcp}], rules: [{backendRefs: [{name: shop, port: 80, weight: 2}, {name: gone, port: 80}]}]}",
			refs("BackendNotFound"), "tcp", "shop*2 invalid", ""},
		{"an XBackend for TCP", "TCPRoute", "{parentRefs: [{name: gw, sectionName: tcp}], rules: [{backendRefs: [{group: gateway.networking.x-k8s.io, kind: XBackend, name: x}]}]}", routeOK, "tcp", "x", ""},
		{"an XBackend with sessions", "TCPRoute", "{parentRefs: [{name: gw, sectionName: tcp}], rules: [{backendRefs: [{group: gateway.networking.x-k8s.io, kind: XBackend, name: kept}]}]}",
			routeOK + " limpet.dev/Ignored=True/NotBuilt", "tcp", "kept", "connections are balanced without"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, layer4Listeners+services+`---
kind: Service
metadata: {name: postgres, namespace: default}
spec: {ports: [{port: 5432, appProtocol: postgresql}]}
`+xbackendYAML("x", old, "{type: EndpointSelector, port: {number: 80}, protocol: TCP, endpointSelector: {matchLabels: {app: x}}}")+
				xbackendYAML("kept", old, "{type: EndpointSelector, port: {number: 80}, endpointSelector: {matchLabels: {app: x}}, sessionPersistence: {cookie: {}}}")+
				layer4Route(test.kind, "r", test.spec))
			parent := g.Routes[0].Parents[0]
			expect(t, parent.Conditions, test.want, test.message)
			if got := names(parent.Listeners, func(l *Listener) string { return l.Name }); got != test.listeners {
				t.Errorf("attaches to %q, want %q", got, test.listeners)
			}
			if got := showRefs(g.Routes[0]); got != test.backends {
				t.Errorf("leads to %q, want %q", got, test.backends)
			}
		})
	}
}

// showRefs are the backends of a route's rules, with their weights.
func showRefs(route *Route) string {
	var all []string
	for _, rule := range route.Rules {
		for _, ref := range rule.Backends {
			text := ref.Backend.Name
			if ref.Invalid {
				text = "invalid"
			}
			if ref.Weight != 1 {
				text += fmt.Sprintf("*%d", ref.Weight)
			}
			all = append(all, text)
		}
		if ref := rule.Backends; rule.Dropped && len(ref) > 0 {
			all = append(all, "dropped")
		}
	}
	return strings.Join(all, " ")
}

func TestTwoTCPRoutesOfAListenerAreBothAccepted(t *testing.T) {
	t.Parallel()
	spec := "{parentRefs: [{name: gw, sectionName: tcp}], rules: [{backendRefs: [{name: shop, port: 80}]}]}"
	g := build(t, layer4Listeners+services+layer4Route("TCPRoute", "b", spec)+layer4Route("TCPRoute", "a", spec))
	for _, route := range g.Routes {
		expect(t, route.Parents[0].Conditions, routeOK)
	}
	if got := names(g.Routes, func(r *Route) string { return r.Source.GetName() }); got != "a b" {
		t.Errorf("in the order %q", got)
	}
	for _, listener := range g.Gateways[0].Listeners {
		want := 0
		if listener.Name == "tcp" {
			want = 2
		}
		if got := g.AttachedRoutes(listener); got != want {
			t.Errorf("%s: %d attached", listener.Name, got)
		}
	}
}
