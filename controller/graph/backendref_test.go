package graph

import (
	"fmt"
	"strings"
	"testing"
)

const services = `---
kind: Service
metadata: {name: shop, namespace: default}
spec:
  ports:
  - {name: web, port: 80}
  - {name: http, port: 81, appProtocol: http}
  - {name: upper, port: 82, appProtocol: HTTP}
  - {name: h2c, port: 83, appProtocol: kubernetes.io/h2c}
  - {name: ws, port: 84, appProtocol: kubernetes.io/ws}
  - {name: https, port: 85, appProtocol: https}
  - {name: own, port: 86, appProtocol: example.com/x}
  - {name: wss, port: 88, appProtocol: kubernetes.io/wss}
  - {name: grpc, port: 89, appProtocol: grpc}
  - {name: dns, port: 53, protocol: UDP}
  - {name: both-udp, port: 87, protocol: UDP}
  - {name: both, port: 87, protocol: TCP}
---
kind: Service
metadata: {name: far, namespace: other}
spec: {ports: [{port: 80}]}
---
kind: Service
metadata: {name: out, namespace: default}
spec: {type: ExternalName, externalName: example.com, ports: [{port: 80}]}
---
kind: Service
metadata: {name: affine, namespace: default}
spec: {sessionAffinity: ClientIP, ports: [{port: 80}]}
---
kind: Service
metadata: {name: bare, namespace: default}
spec: {}
---
kind: Service
metadata: {name: named, namespace: default}
spec: {ports: [{port: 80}]}
---
kind: EndpointSlice
metadata: {name: named-x, namespace: default, labels: {kubernetes.io/service-name: named}}
addressType: FQDN
ports: [{port: 80}]
endpoints: [{addresses: [metadata.google.internal]}]
`

func serviceGrant(from, to string) string {
	return "---\nkind: ReferenceGrant\nmetadata: {name: g, namespace: other}\nspec:\n  from: [" + from + "]\n  to: [" + to + "]\n"
}

const (
	fromDefault = "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: default}"
	toServices  = "{group: '', kind: Service}"
)

func TestBackendRefs(t *testing.T) {
	t.Parallel()
	refs := func(reason string) string { return "Accepted=True/Accepted ResolvedRefs=False/" + reason }
	for _, test := range []struct {
		name, ref, documents, want string
		messages                   []string
	}{
		{"a Service's port", "{name: shop, port: 80}", "", routeOK, nil},
		{"group and kind may be spelled out", "{group: '', kind: Service, name: shop, port: 80, namespace: default}", "", routeOK, nil},
		{"appProtocol http", "{name: shop, port: 81}", "", routeOK, nil},
		{"appProtocol in capitals", "{name: shop, port: 82}", "", routeOK, nil},
		{"a port number that is TCP and UDP", "{name: shop, port: 87}", "", routeOK, nil},
		{"appProtocol h2c", "{name: shop, port: 83}", "", routeOK, nil},
		{"appProtocol ws", "{name: shop, port: 84}", "", routeOK, nil},
		{"appProtocol grpc", "{name: shop, port: 89}", "", routeOK, nil},
		{"https needs a BackendTLSPolicy", "{name: shop, port: 85}", "", refs("UnsupportedProtocol"),
			[]string{"port 85 of Service default/shop", `"https"`, "BackendTLSPolicy"}},
		{"wss needs a BackendTLSPolicy", "{name: shop, port: 88}", "", refs("UnsupportedProtocol"), nil},
		{"an unknown appProtocol is unsupported", "{name: shop, port: 86}", "", refs("UnsupportedProtocol"),
			[]string{`"example.com/x"`, "kubernetes.io/h2c"}},
		{"a UDP port is unsupported", "{name: shop, port: 53}", "", refs("UnsupportedProtocol"), []string{"not TCP"}},
		{"a port that the Service lacks is not found", "{name: shop, port: 99}", "", refs("BackendNotFound"),
			[]string{"Service default/shop has no port 99, it has 80, 81"}},
		{"a Service without ports has none", "{name: bare, port: 80}", "", refs("BackendNotFound"), []string{"it has none"}},
		{"a Service needs a port", "{name: shop}", "", refs("BackendNotFound"), []string{"spec.rules[0].backendRefs[0].port must be given"}},
		{"a Service that does not exist is not found", "{name: gone, port: 80}", "", refs("BackendNotFound"),
			[]string{"spec.rules[0].backendRefs[0]: Service default/gone does not exist"}},
		{"another kind is invalid", "{group: example.com, kind: Bucket, name: x}", "", refs("InvalidKind"), []string{`"Bucket"`}},
		{"another group is invalid", "{group: example.com, name: shop, port: 80}", "", refs("InvalidKind"), nil},
		{"an XBackend that does not exist is not found", "{group: gateway.networking.x-k8s.io, kind: XBackend, name: x}", "", refs("BackendNotFound"),
			[]string{"XBackend default/x does not exist"}},
		{"an XBackend with a port", "{group: gateway.networking.x-k8s.io, kind: XBackend, name: x, port: 80}", "", refs("UnsupportedValue"),
			[]string{"port must not be set for an XBackend"}},
		{"an XBackend of another namespace", "{group: gateway.networking.x-k8s.io, kind: XBackend, name: x, namespace: other}",
			serviceGrant(fromDefault, "{group: gateway.networking.x-k8s.io, kind: XBackend}"), refs("RefNotPermitted"), nil},
		{"ExternalName is refused", "{name: out, port: 80}", "", refs("InvalidKind"), []string{"CVE-2021-25740"}},
		{"another namespace needs a grant", "{name: far, namespace: other, port: 80}", "", refs("RefNotPermitted"),
			[]string{`no ReferenceGrant in namespace "other" lets HTTPRoutes of namespace "default"`}},
		{"the grant is asked for before existence is told", "{name: gone, namespace: other, port: 80}", "", refs("RefNotPermitted"), nil},
		{"with a grant it is served", "{name: far, namespace: other, port: 80}", serviceGrant(fromDefault, toServices), routeOK, nil},
		{"with a grant existence is told", "{name: gone, namespace: other, port: 80}", serviceGrant(fromDefault, toServices), refs("BackendNotFound"), nil},
		{"a grant for that Service alone", "{name: far, namespace: other, port: 80}", serviceGrant(fromDefault, "{group: '', kind: Service, name: far}"),
			routeOK, nil},
		{"a grant for another Service alone", "{name: far, namespace: other, port: 80}",
			serviceGrant(fromDefault, "{group: '', kind: Service, name: near}"), refs("RefNotPermitted"), nil},
		{"a grant for the empty name opens nothing", "{name: far, namespace: other, port: 80}",
			serviceGrant(fromDefault, "{group: '', kind: Service, name: ''}"), refs("RefNotPermitted"), nil},
		{"a grant for Secrets", "{name: far, namespace: other, port: 80}", serviceGrant(fromDefault, "{group: '', kind: Secret}"),
			refs("RefNotPermitted"), nil},
		{"a grant for another namespace", "{name: far, namespace: other, port: 80}",
			serviceGrant(strings.Replace(fromDefault, "default", "blue", 1), toServices), refs("RefNotPermitted"), nil},
		{"a grant for another kind of route", "{name: far, namespace: other, port: 80}",
			serviceGrant(strings.Replace(fromDefault, "HTTPRoute", "GRPCRoute", 1), toServices), refs("RefNotPermitted"), nil},
		{"a grant for another group", "{name: far, namespace: other, port: 80}",
			serviceGrant(strings.Replace(fromDefault, "gateway.networking.k8s.io", "example.com", 1), toServices), refs("RefNotPermitted"), nil},
		{"entries of a grant are combined by or", "{name: far, namespace: other, port: 80}",
			serviceGrant("{group: a, kind: B, namespace: c}, "+fromDefault, "{group: '', kind: Secret}, "+toServices), routeOK, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, gateway+services+test.documents+routeTo("backendRefs: ["+test.ref+"]"))
			expect(t, g.Routes[0].Parents[0].Conditions, test.want, test.messages...)
			rule := g.rule(t)
			invalid := strings.Contains(test.want, "ResolvedRefs=False")
			if rule.Dropped || rule.Backends[0].Invalid != invalid || invalid != (rule.Backends[0].Backend == BackendKey{}) {
				t.Errorf("%+v", rule)
			}
			if !invalid && g.Backend(rule.Backends[0].Backend) == nil {
				t.Error("the reference leads to no backend")
			}
		})
	}
}

func TestTheAppProtocolSaysHowABackendIsSpokenTo(t *testing.T) {
	t.Parallel()
	g := build(t, gateway+services+routeTo("backendRefs: [{name: shop, port: 80}]"))
	for port, http2 := range map[int32]bool{80: false, 81: false, 83: true, 84: false, 89: true} {
		backend := g.Backend(BackendKey{Kind: "Service", Namespace: "default", Name: "shop", Port: port})
		if backend.HTTP2 != http2 || backend.TLS != nil {
			t.Errorf("port %d: %+v", port, backend)
		}
	}
}

func TestWhatAServiceDoesNotGetIsReported(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, message string }{
		{"affine", "spec.sessionAffinity ClientIP is not honoured yet"},
		{"named", "EndpointSlice named-x: addressType FQDN is not used"},
	} {
		g := build(t, gateway+services+routeTo("backendRefs: [{name: "+test.name+", port: 80}]"))
		expect(t, g.Routes[0].Parents[0].Conditions, routeOK+" limpet.dev/Ignored=True/NotBuilt", test.message)
	}
}

func TestWeights(t *testing.T) {
	t.Parallel()
	g := build(t, gateway+services+routeTo("backendRefs: [{name: shop, port: 80}, {name: shop, port: 81, weight: 0}, "+
		"{name: gone, port: 80, weight: 70}, {name: shop, port: 80, weight: 1000000}]"))
	got := names(g.rule(t).Backends, func(b BackendRef) string { return fmt.Sprint(b.Weight, b.Invalid, b.Backend.Port) })
	if got != "1 false 80 0 false 81 70 true 0 1000000 false 80" {
		t.Error(got)
	}
	for _, weight := range []string{"-1", "1000001"} {
		g := build(t, gateway+services+routeTo("backendRefs: [{name: shop, port: 80, weight: "+weight+"}]"))
		expect(t, g.Routes[0].Parents[0].Conditions, unsupported, "spec.rules[0].backendRefs[0].weight")
	}
	g = build(t, gateway+services+routeTo("backendRefs: ["+strings.Repeat("{name: shop, port: 80}, ", 17)+"]"))
	expect(t, g.Routes[0].Parents[0].Conditions, unsupported, "more than 16")
}

func TestTheFirstBadReferenceGivesTheReasonAndAllAreNamed(t *testing.T) {
	g := build(t, gateway+services+routeTo("backendRefs: [{name: shop, port: 80}, {name: far, namespace: other, port: 80}, {name: gone, port: 80}]"))
	expect(t, g.Routes[0].Parents[0].Conditions, "Accepted=True/Accepted ResolvedRefs=False/RefNotPermitted",
		"spec.rules[0].backendRefs[1]", "spec.rules[0].backendRefs[2]: Service default/gone does not exist")
}

func TestReferencesAreReportedOnRoutesThatAreNotAccepted(t *testing.T) {
	g := build(t, gateway+routeOf("{name: gw, sectionName: x}", "  rules: [{backendRefs: [{name: gone, port: 80}]}]"))
	expect(t, g.Routes[0].Parents[0].Conditions, "Accepted=False/NoMatchingParent ResolvedRefs=False/BackendNotFound")
}
