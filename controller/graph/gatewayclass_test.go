package graph

import "testing"

func TestGatewayClasses(t *testing.T) {
	t.Parallel()
	const both = "Accepted=True/Accepted SupportedVersion=True/SupportedVersion"
	for _, test := range []struct{ name, spec, want, message string }{
		{"a class that names our controller is accepted", "controllerName: limpet.dev/gateway-controller", both, ""},
		{"parameters without a namespace are refused", `
  controllerName: limpet.dev/gateway-controller
  parametersRef: {group: limpet.dev, kind: LimpetParameters, name: p}`,
			"Accepted=False/InvalidParameters SupportedVersion=True/SupportedVersion", "has no namespace"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := build(t, "kind: GatewayClass\nmetadata: {name: c}\nspec:\n  "+test.spec)
			expect(t, g.Classes[0].Conditions, test.want, test.message)
		})
	}
}

func TestAGatewayOfARefusedClassIsRefused(t *testing.T) {
	g := build(t, `kind: GatewayClass
metadata: {name: limpet}
spec:
  controllerName: limpet.dev/gateway-controller
  parametersRef: {group: limpet.dev, kind: LimpetParameters, name: p}
---
kind: Gateway
metadata: {name: gw, namespace: default}
spec: {gatewayClassName: limpet, listeners: [{name: http, port: 80, protocol: HTTP}]}`)
	expect(t, g.Gateways[0].Conditions,
		"Accepted=False/InvalidParameters ResolvedRefs=True/ResolvedRefs Programmed=False/Invalid", `GatewayClass "limpet"`)
	expect(t, g.Gateways[0].Listeners[0].Conditions, listenerOK+" Programmed=False/Invalid", "the Gateway is not accepted")
}

func TestWhatIsNotOursIsNamedWithTheReason(t *testing.T) {
	g := build(t, `kind: GatewayClass
metadata: {name: other}
spec: {controllerName: example.com/other}
---
kind: Gateway
metadata: {name: a, namespace: default}
spec: {gatewayClassName: other, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
kind: Gateway
metadata: {name: b, namespace: default}
spec: {gatewayClassName: missing, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
kind: HTTPRoute
metadata: {name: r, namespace: default}
spec: {parentRefs: [{name: a}, {name: s, kind: Service, group: ""}]}
---
kind: HTTPRoute
metadata: {name: s, namespace: default}
spec: {}
---
kind: UDPRoute
apiVersion: gateway.networking.k8s.io/v1
metadata: {name: t, namespace: default}
spec: {parentRefs: [{name: a}]}
---
kind: Deployment
apiVersion: apps/v1
metadata: {name: t, namespace: default}`)
	if len(g.Classes)+len(g.Gateways)+len(g.Routes) != 0 {
		t.Error("something is taken for ours")
	}
	want := []Unclaimed{
		{"GatewayClass", "", "other", `its controllerName is "example.com/other", not limpet.dev/gateway-controller.`},
		{"Gateway", "default", "a", `its GatewayClass "other" has controllerName "example.com/other", not limpet.dev/gateway-controller.`},
		{"Gateway", "default", "b", `no GatewayClass named "missing" exists: add one with controllerName limpet.dev/gateway-controller.`},
		{"HTTPRoute", "default", "r", "none of its parentRefs leads to a Gateway of ours: Gateway default/a, Service. default/s."},
		{"HTTPRoute", "default", "s", "it has no parentRefs."},
		{"UDPRoute", "default", "t", "it has nothing to do with a Gateway of ours; its kind is not served yet."},
	}
	for i, unclaimed := range g.Unclaimed {
		if *unclaimed != want[i] {
			t.Errorf("got  %+v\nwant %+v", *unclaimed, want[i])
		}
	}
	if len(g.Unclaimed) != len(want) {
		t.Errorf("%d unclaimed, want %d", len(g.Unclaimed), len(want))
	}
}

func TestTheControllerNameIsAnOption(t *testing.T) {
	snapshot := read(t, "kind: GatewayClass\nmetadata: {name: c}\nspec: {controllerName: example.com/mine}")
	if g := NewBuilder(Options{ControllerName: "example.com/mine"}).Build(snapshot); len(g.Classes) != 1 {
		t.Error("the class is not ours")
	}
}
