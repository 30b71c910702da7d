package graph

import (
	"fmt"
	"strings"
	"testing"
)

func otherObject(apiVersion, kind, spec string) string {
	return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: x, namespace: default, generation: 4}\nspec: %s\n", apiVersion, kind, spec)
}

func showOthers(g *Graph) string {
	return names(g.Others, func(o *Other) string {
		texts := []string{o.Kind + "/" + o.Name}
		for _, parent := range o.Parents {
			texts = append(texts, string(parent.Ref.Name)+":"+show(parent.Conditions))
		}
		return strings.Join(texts, " ")
	})
}

func TestOtherKindsHearThatTheyAreNotServed(t *testing.T) {
	t.Parallel()
	const (
		v1         = "gateway.networking.k8s.io/v1"
		x          = "gateway.networking.x-k8s.io/v1alpha1"
		notAllowed = "gw:Accepted=False/NotAllowedByListeners"
		invalid    = "gw:Accepted=False/Invalid"
		toShop     = "{targetRefs: [{group: '', kind: Service, name: shop}]}"
	)
	for _, test := range []struct{ name, document, want string }{
		{"a UDPRoute of our Gateway and of another", otherObject(v1, "UDPRoute", "{parentRefs: [{name: gw}, {name: other}]}"), "UDPRoute/x " + notAllowed},
		{"a UDPRoute of our Gateway", otherObject(v1, "UDPRoute", "{parentRefs: [{name: gw}]}"), "UDPRoute/x " + notAllowed},
		{"a route to a listener that does not exist", otherObject(v1, "UDPRoute", "{parentRefs: [{name: gw, port: 81}]}"),
			"UDPRoute/x gw:Accepted=False/NoMatchingParent"},
		{"a route of another Gateway is not ours", otherObject(v1, "UDPRoute", "{parentRefs: [{name: other}]}"), ""},
		{"a route of a Service is not ours", otherObject(v1, "UDPRoute", "{parentRefs: [{group: '', kind: Service, name: gw}]}"), ""},
		{"a kind of route that is not known yet", otherObject(v1, "QUICRoute", "{parentRefs: [{name: gw}]}"), "QUICRoute/x " + notAllowed},
		{"a policy of a Service that no route uses has no ancestor",
			otherObject(x, "XBackendTrafficPolicy", "{targetRefs: [{group: '', kind: Service, name: bare}]}"), ""},
		{"an XBackendTrafficPolicy", otherObject(x, "XBackendTrafficPolicy", toShop), "XBackendTrafficPolicy/x " + invalid},
		{"a policy of our Gateway", otherObject(x, "XTelemetryPolicy", "{targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]}"),
			"XTelemetryPolicy/x " + invalid},
		{"a policy of our route", otherObject("limpet.dev/v1alpha1", "SessionPersistencePolicy",
			"{targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: route}}"), "SessionPersistencePolicy/x " + invalid},
		{"a Deployment is not our business", otherObject("apps/v1", "Deployment", "{parentRefs: [{name: gw}]}"), ""},
		{"an object without a spec", "---\napiVersion: " + v1 + "\nkind: UDPRoute\nmetadata: {name: x}\n", ""},
		{"an object whose fields have the wrong types", otherObject(v1, "UDPRoute", "{parentRefs: {name: gw}, targetRefs: 7, parentRef: [1]}"), ""},
		{"a parentRef whose fields have the wrong types", otherObject(v1, "UDPRoute", "{parentRefs: [7, {name: [gw]}, {name: gw, port: http}]}"),
			"UDPRoute/x " + notAllowed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, gateway+services+routeTo("backendRefs: [{name: shop, port: 80}, {group: gateway.networking.x-k8s.io, kind: XBackend, name: x}]")+
				test.document)
			if got := showOthers(g); got != test.want {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
			for _, other := range g.Others {
				for _, parent := range other.Parents {
					if c := parent.Conditions[0]; c.ObservedGeneration != 4 || !strings.Contains(c.Message, "not") {
						t.Errorf("%+v", c)
					}
				}
			}
		})
	}
}

func TestAPolicyHasOneAncestorForEachGatewayAndAtMost16(t *testing.T) {
	documents, refs := class+services, ""
	for i := range 20 {
		documents += gatewayWith(fmt.Sprintf("gw%02d", i), fmt.Sprintf("listeners: [{name: http, port: %d, protocol: HTTP}]", 100+i))
		refs += fmt.Sprintf("{name: gw%02d}, ", i)
	}
	g := build(t, documents+routeOf(refs, "  rules: [{backendRefs: [{name: shop, port: 80}]}, {backendRefs: [{name: shop, port: 81}]}]")+
		"\n"+otherObject("gateway.networking.x-k8s.io/v1alpha1", "XBackendTrafficPolicy", "{targetRefs: [{group: '', kind: Service, name: shop}]}"))
	parents := g.Others[0].Parents
	if len(parents) != 16 || parents[0].Ref.Name != "gw00" || parents[15].Ref.Name != "gw15" {
		t.Errorf("%d parents", len(parents))
	}
}
