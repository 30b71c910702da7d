package graph

import (
	"fmt"
	"strings"
	"testing"
)

// grpcTo is routeTo for a GRPCRoute.
func grpcTo(rule string) string { return strings.Replace(routeTo(rule), "HTTPRoute", "GRPCRoute", 1) }

func TestGRPCMatches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, match, want string }{
		{"nothing matches everything", "{}", "PathPrefix  []"},
		{"service and method", "{method: {service: foo.Bar, method: Get}}", "Exact /foo.Bar/Get []"},
		{"a service with a leading dot", "{method: {type: Exact, service: .foo.Bar, method: Get}}", "Exact /.foo.Bar/Get []"},
		{"a service alone", "{method: {service: foo.Bar}}", "PathPrefix /foo.Bar []"},
		{"a service and an empty method", "{method: {service: foo.Bar, method: ''}}", "PathPrefix /foo.Bar []"},
		{"a method alone", "{method: {method: Get}}", "RegularExpression /[^/]+/Get []"},
		{"expressions", `{method: {type: RegularExpression, service: "foo\\..*", method: Get|Put}}`, `RegularExpression /(?:foo\..*)/(?:Get|Put) []`},
		{"an expression for the service alone", "{method: {type: RegularExpression, service: foo}}", "RegularExpression /(?:foo)/[^/]+ []"},
		{"an expression for the method alone", "{method: {type: RegularExpression, method: G.t}}", "RegularExpression /[^/]+/(?:G.t) []"},
		{"headers", "{headers: [{name: Version, value: '2'}, {type: RegularExpression, name: x, value: 'a+'}, {name: version, value: '3'}]}",
			"PathPrefix  [{version 2 false} {x a+ true}]"},
		{"neither service nor method", "{method: {}}", ""},
		{"both empty", "{method: {service: '', method: ''}}", ""},
		{"an unknown type", "{method: {type: Prefix, service: a}}", ""},
		{"a service with a slash", "{method: {service: a/b}}", ""},
		{"a service that ends with a dot", "{method: {service: a.}}", ""},
		{"a method with a dot", "{method: {service: a, method: b.c}}", ""},
		{"a service with a newline", `{method: {service: "a\nb"}}`, ""},
		{"a method that is too long", "{method: {method: " + strings.Repeat("a", 1025) + "}}", ""},
		{"an expression that is none", "{method: {type: RegularExpression, service: '('}}", ""},
		{"an unknown type of header", "{headers: [{type: Prefix, name: a, value: b}]}", ""},
		{"a header without value", "{headers: [{name: a, value: ''}]}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, gateway+shop+grpcTo("{matches: ["+test.match+"], backendRefs: [{name: shop, port: 80}]}"))
			if test.want == "" {
				expect(t, g.Routes[0].Parents[0].Conditions, unsupported, "spec.rules[0].matches[0].")
				return
			}
			expect(t, g.Routes[0].Parents[0].Conditions, routeOK)
			match := g.rule(t).Matches[0]
			if got := fmt.Sprint(match.PathType, " ", match.Path, " ", match.Headers); got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestGRPCRoutes(t *testing.T) {
	t.Parallel()
	protocols := strings.ReplaceAll(shop, "{name: web, port: 80, targetPort: 8080}", "{name: web, port: 80}, {name: h2c, port: 81, appProtocol: kubernetes.io/h2c}, "+
		"{name: grpc, port: 82, appProtocol: grpc}, {name: http, port: 83, appProtocol: http}, {name: ws, port: 84, appProtocol: kubernetes.io/ws}")
	for _, test := range []routeCase{
		{"a rule without a match takes every call", "{name: a, backendRefs: [{name: shop, port: 80}]}", routeOK, nil},
		{"all filters of the kind, on backendRefs too", "{filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: [a]}}, " +
			"{type: ResponseHeaderModifier, responseHeaderModifier: {remove: [a]}}], backendRefs: [{name: shop, port: 80, " +
			"filters: [{type: RequestMirror, requestMirror: {backendRef: {name: shop, port: 81}}}]}]}", routeOK, nil},
		{"a filter of HTTPRoutes", "{filters: [{type: CORS}]}", unsupported, []string{`spec.rules[0].filters[0].type: "CORS" is not a filter of GRPCRoutes`}},
		{"an extension", "{filters: [{type: ExtensionRef, extensionRef: {group: a.com, kind: B, name: c}}]}",
			"Accepted=False/UnsupportedValue ResolvedRefs=False/InvalidKind", nil},
		{"a filter twice", "{filters: [{type: RequestHeaderModifier, requestHeaderModifier: {}}, {type: RequestHeaderModifier, requestHeaderModifier: {}}]}",
			incompatible, nil},
		{"a session by header", "{sessionPersistence: {type: Header, header: {name: x-session}}, backendRefs: [{name: shop, port: 80}]}", routeOK, nil},
		{"a session by cookie", "{sessionPersistence: {cookie: {name: sid}}, backendRefs: [{name: shop, port: 80}]}", routeOK, nil},
		{"a Service that is not there", "{backendRefs: [{name: gone, port: 80}]}", "Accepted=True/Accepted ResolvedRefs=False/BackendNotFound", nil},
		{"appProtocol h2c", "{backendRefs: [{name: shop, port: 81}]}", routeOK, nil},
		{"appProtocol grpc", "{backendRefs: [{name: shop, port: 82}]}", routeOK, nil},
		{"appProtocol http cannot carry gRPC", "{backendRefs: [{name: shop, port: 83}]}", "Accepted=True/Accepted ResolvedRefs=False/UnsupportedProtocol",
			[]string{`appProtocol "http", which cannot carry gRPC`}},
		{"appProtocol ws neither", "{backendRefs: [{name: shop, port: 84}]}", "Accepted=True/Accepted ResolvedRefs=False/UnsupportedProtocol", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, gateway+protocols+grpcTo(test.rule))
			route := g.route(t, "default/route")
			expect(t, route.Parents[0].Conditions, test.want, test.messages...)
			if route.Kind != "GRPCRoute" || route.Rules[0].Dropped != strings.Contains(test.want, "Accepted=False") {
				t.Errorf("%s %+v", route.Kind, route.Rules[0])
			}
		})
	}
}

func TestAGRPCRouteWithoutRulesIsAcceptedAndTakesNothing(t *testing.T) {
	t.Parallel()
	for _, rules := range []string{"", "  rules: []\n"} {
		g := build(t, gateway+strings.Replace(routeOf("{name: gw}", rules), "HTTPRoute", "GRPCRoute", 1))
		expect(t, g.Routes[0].Parents[0].Conditions, routeOK)
		if len(g.Routes[0].Rules) != 0 || g.AttachedRoutes(g.Gateways[0].Listeners[0]) != 1 {
			t.Errorf("%+v", g.Routes[0])
		}
	}
}

func TestTwoKindsOfRoutesMayShareAName(t *testing.T) {
	t.Parallel()
	const hostnames = "  hostnames: [grpc.example.com]\n  rules:"
	documents := gateway + shop + routeTo("backendRefs: [{name: shop, port: 80}]") +
		strings.Replace(grpcTo("backendRefs: [{name: shop, port: 80}]"), "  rules:", hostnames, 1)
	builder := NewBuilder(Options{PortOffset: 8000})
	g := builder.Build(read(t, documents))
	if len(g.Routes) != 2 || g.Routes[0].Kind != "GRPCRoute" || g.Routes[1].Kind != "HTTPRoute" || g.AttachedRoutes(g.Gateways[0].Listeners[0]) != 2 {
		t.Fatalf("%+v", g.Routes)
	}
	gone := builder.Build(read(t, gateway+shop+routeTo("backendRefs: [{name: shop, port: 80}]")))
	if len(gone.Routes) != 1 || gone.Routes[0].Kind != "HTTPRoute" {
		t.Errorf("%+v", gone.Routes)
	}
}

func TestAListenerTakesTheKindsThatItAllows(t *testing.T) {
	t.Parallel()
	only := func(kind string) string {
		return strings.Replace(gateway, "protocol: HTTP}", "protocol: HTTP, allowedRoutes: {kinds: [{kind: "+kind+"}]}}", 1)
	}
	g := build(t, only("HTTPRoute")+shop+grpcTo("backendRefs: [{name: shop, port: 80}]"))
	expect(t, g.Routes[0].Parents[0].Conditions, "Accepted=False/NotAllowedByListeners ResolvedRefs=True/ResolvedRefs", "allows GRPCRoutes of namespace")
	g = build(t, only("GRPCRoute")+shop+grpcTo("backendRefs: [{name: shop, port: 80}]"))
	expect(t, g.Routes[0].Parents[0].Conditions, routeOK)
}

// GRPCRouteRule.backendRefs: what cannot be spoken to is not valid, and the reference says so.
func TestAGRPCRouteRefusesXBackendsOfHTTP1(t *testing.T) {
	t.Parallel()
	tls := ", tls: {mode: ServerOnly, validation: {hostname: b.internal, wellKnownCACertificates: System}}"
	for protocol, want := range map[string]string{
		"HTTP11": "ResolvedRefs=False/UnsupportedProtocol", "WSS" + tls: "ResolvedRefs=False/UnsupportedProtocol",
		"HTTP": "ResolvedRefs=True/ResolvedRefs", "GRPC": "ResolvedRefs=True/ResolvedRefs", "H2C": "ResolvedRefs=True/ResolvedRefs",
		"HTTP2" + tls: "ResolvedRefs=True/ResolvedRefs",
	} {
		spec := "{" + selectX + ", protocol: " + protocol + "}"
		g := build(t, xbackendWorld(xbackendYAML("b", old, spec)+grpcTo(toXBackends("b"))))
		expect(t, g.Routes[0].Parents[0].Conditions, "Accepted=True/Accepted "+want)
		if refused := strings.Contains(want, "False"); g.Routes[0].Rules[0].Backends[0].Invalid != refused {
			t.Errorf("%s: invalid %t", protocol, !refused)
		}
	}
}
