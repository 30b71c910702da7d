package graph

import (
	"strings"
	"testing"
)

const twoListeners = class + `---
kind: Gateway
metadata: {name: gw, namespace: default}
spec:
  gatewayClassName: limpet
  listeners:
  - {name: a, port: 80, protocol: HTTP, hostname: '*.a.com'}
  - {name: b, port: 81, protocol: HTTP, hostname: b.com}
  - {name: selected, port: 82, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {team: red}}}}}
  - {name: named, port: 83, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {kubernetes.io/metadata.name: blue}}}}}
  - {name: all, port: 84, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - {name: grpc, port: 85, protocol: HTTP, allowedRoutes: {namespaces: {from: All}, kinds: [{kind: GRPCRoute}]}}
  - {name: tcp, port: 86, protocol: TCP, allowedRoutes: {namespaces: {from: All}}}
---
kind: Namespace
metadata: {name: green, labels: {team: red}}
`

func TestAttachment(t *testing.T) {
	t.Parallel()
	const (
		noParent   = "Accepted=False/NoMatchingParent ResolvedRefs=True/ResolvedRefs"
		notAllowed = "Accepted=False/NotAllowedByListeners ResolvedRefs=True/ResolvedRefs"
		noHostname = "Accepted=False/NoMatchingListenerHostname ResolvedRefs=True/ResolvedRefs"
	)
	for _, test := range []struct {
		name, namespace, ref, hostnames, want, listeners string
		messages                                         []string
	}{
		{"a route without hostnames attaches to all that allow it", "default", "{name: gw}", "[]", routeOK, "a b all", nil},
		{"a hostname attaches where it matches", "default", "{name: gw}", "[x.a.com]", routeOK, "a all", nil},
		{"a wildcard attaches where it matches", "default", "{name: gw}", "['*.com']", routeOK, "a b all", nil},
		{"one of several hostnames suffices", "default", "{name: gw, sectionName: b}", "[x.a.com, b.com]", routeOK, "b", nil},
		{"sectionName chooses a listener", "default", "{name: gw, sectionName: b}", "[]", routeOK, "b", nil},
		{"port chooses listeners", "default", "{name: gw, port: 80}", "[]", routeOK, "a", nil},
		{"an unknown sectionName matches no parent", "default", "{name: gw, sectionName: x}", "[]", noParent, "", []string{`named "x"`, `"a" (port 80`}},
		{"an unknown port matches no parent", "default", "{name: gw, port: 99}", "[]", noParent, "", []string{"on port 99"}},
		{"sectionName and port must match one listener", "default", "{name: gw, sectionName: a, port: 81}", "[]", noParent, "", nil},
		{"no matching hostname", "default", "{name: gw, sectionName: b}", "[c.com]", noHostname, "", []string{"c.com", `hostname "b.com"`}},
		{"the domain itself is not covered by its wildcard", "default", "{name: gw, sectionName: a}", "[a.com]", noHostname, "", nil},
		{"another namespace is not allowed by default", "blue", "{name: gw, namespace: default, sectionName: a}", "[]", notAllowed, "",
			[]string{`namespace "blue"`}},
		{"All allows every namespace", "blue", "{name: gw, namespace: default, sectionName: all}", "[]", routeOK, "all", nil},
		{"a label selects a namespace", "green", "{name: gw, namespace: default}", "[]", routeOK, "selected all", nil},
		{"without the label it is not allowed", "default", "{name: gw, sectionName: selected}", "[]", notAllowed, "", nil},
		{"a namespace's name is a label, even without a Namespace object", "blue", "{name: gw, namespace: default, sectionName: named}", "[]",
			routeOK, "named", nil},
		{"a kind that the listener does not take is not allowed", "default", "{name: gw, sectionName: grpc}", "[]", notAllowed, "", nil},
		{"a protocol that is not HTTP is not allowed", "default", "{name: gw, sectionName: tcp}", "[]", notAllowed, "", nil},
		{"a wrong section comes before a wrong namespace", "blue", "{name: gw, namespace: default, sectionName: x}", "[]", noParent, "", nil},
		{"a wrong namespace comes before a wrong hostname", "blue", "{name: gw, namespace: default, sectionName: b}", "[c.com]", notAllowed, "", nil},
		{"group and kind may be spelled out", "default", "{group: gateway.networking.k8s.io, kind: Gateway, name: gw, port: 80}", "[]", routeOK, "a", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, twoListeners+"---\nkind: HTTPRoute\nmetadata: {name: route, namespace: "+test.namespace+"}\nspec:\n"+
				"  parentRefs: ["+test.ref+"]\n  hostnames: "+test.hostnames)
			parent := g.route(t, test.namespace+"/route").Parents[0]
			expect(t, parent.Conditions, test.want, test.messages...)
			if got := listenerNames(parent.Listeners); got != test.listeners {
				t.Errorf("attaches to %q, want %q", got, test.listeners)
			}
			for _, node := range g.Gateways[0].Listeners {
				if want := strings.Contains(" "+test.listeners+" ", " "+node.Name+" "); (g.AttachedRoutes(node) == 1) != want {
					t.Errorf("%s has %d attached routes", node.Name, g.AttachedRoutes(node))
				}
			}
		})
	}
}

func TestAGatewayIsNotShownToThoseWhomItDoesNotLetAttach(t *testing.T) {
	for _, section := range []string{"a", "x"} {
		g := build(t, class+gatewayWith("gw", "listeners: [{name: a, port: 80, protocol: HTTP, hostname: secret.com}]")+
			"---\nkind: HTTPRoute\nmetadata: {name: r, namespace: blue}\nspec: {parentRefs: [{name: gw, namespace: default, sectionName: "+section+"}]}")
		if text := allMessages(g.Routes[0].Parents[0].Conditions); strings.Contains(text, "secret.com") {
			t.Error(text)
		}
	}
}

func routeOf(parents, rest string) string {
	return "---\nkind: HTTPRoute\nmetadata: {name: route, namespace: default}\nspec:\n  parentRefs: [" + parents + "]\n" + rest
}

func TestParentRefs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, refs, want string }{
		{"one to something else is not ours", "{name: gw, port: 80}, {name: shop, kind: Service, group: ''}, {name: gw, group: example.com}, {name: x}",
			"gw:" + routeOK},
		{"two Gateways have an entry each", "{name: gw, port: 80}, {name: two}", "gw:" + routeOK + " two:" + routeOK},
		{"two sections have an entry each", "{name: gw, sectionName: a}, {name: gw, sectionName: b}", "gw:" + routeOK + " gw:" + routeOK},
		{"the same twice is refused as an API server would", "{name: gw}, {name: gw}", "gw:" + unsupported + " gw:" + unsupported},
		{"with and without section is refused", "{name: gw}, {name: gw, sectionName: a}", "gw:" + unsupported + " gw:" + unsupported},
		{"section and port must not be mixed", "{name: gw, port: 80}, {name: gw, sectionName: b}", "gw:" + unsupported + " gw:" + unsupported},
		{"an explicit namespace makes another reference", "{name: gw, port: 80}, {name: gw, namespace: default}", "gw:" + routeOK + " gw:" + routeOK},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, twoListeners+gatewayWith("two", "listeners: [{name: http, port: 90, protocol: HTTP}]")+routeOf(test.refs, ""))
			got := names(g.Routes[0].Parents, func(p *RouteParent) string { return p.Gateway.Source.Name + ":" + show(p.Conditions) })
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestAListenerCountsARouteOnceHoweverOftenItIsReferredTo(t *testing.T) {
	g := build(t, gateway+routeOf("{name: gw}, {name: gw, namespace: default}", ""))
	if n := g.AttachedRoutes(g.Gateways[0].Listeners[0]); n != 1 {
		t.Errorf("%d", n)
	}
}

func TestRoutesAttachToListenersThatAreNotValid(t *testing.T) {
	g := build(t, withListeners("{name: s, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: gone}]}}")+routeOf("{name: gw}", ""))
	expect(t, g.Routes[0].Parents[0].Conditions, routeOK)
	if listener := g.Gateways[0].Listeners[0]; listener.Valid || g.AttachedRoutes(listener) != 1 {
		t.Errorf("valid %v, %d routes", listener.Valid, g.AttachedRoutes(listener))
	}
}

func TestTheParentRefIsKeptVerbatim(t *testing.T) {
	g := build(t, gateway+routeOf("{name: gw, namespace: default, sectionName: http, port: 80}", ""))
	ref := g.Routes[0].Parents[0].Ref
	if ref.Group != nil || ref.Kind != nil || *ref.Namespace != "default" || *ref.SectionName != "http" || *ref.Port != 80 {
		t.Errorf("%+v", ref)
	}
}

func TestRoutesAreListedOldestFirst(t *testing.T) {
	documents := gateway
	for _, route := range []string{"name: c, creationTimestamp: '2026-01-02T00:00:00Z'", "name: b, creationTimestamp: '2026-01-03T00:00:00Z'",
		"name: a, creationTimestamp: '2026-01-03T00:00:00Z'", "name: z"} {
		documents += "---\nkind: HTTPRoute\nmetadata: {namespace: default, " + route + "}\nspec: {parentRefs: [{name: gw}]}\n"
	}
	if got := names(build(t, documents).Routes, func(r *Route) string { return r.Source.GetName() }); got != "z c a b" {
		t.Error(got)
	}
}

func TestAskingForADefaultGatewayIsReportedAsIgnored(t *testing.T) {
	g := build(t, gateway+routeOf("{name: gw}", "  useDefaultGateways: All"))
	expect(t, g.Routes[0].Parents[0].Conditions, routeOK+" limpet.dev/Ignored=True/NotBuilt", "spec.useDefaultGateways")
}
