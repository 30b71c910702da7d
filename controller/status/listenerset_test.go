package status

import (
	"testing"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

const withSet = class + `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: default}
spec:
  gatewayClassName: limpet
  allowedListeners: {namespaces: {from: Same}}
  listeners: [{name: http, port: 80, protocol: HTTP, hostname: gw.com}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: set, namespace: default}
spec:
  parentRef: {name: gw}
  listeners:
  - {name: http, port: 80, protocol: HTTP, hostname: set.com}
  - {name: more, port: 81, protocol: HTTP}
  - {name: lost, port: 80, protocol: HTTP, hostname: gw.com}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: elsewhere, namespace: other}
spec:
  parentRef: {name: gw, namespace: default}
  listeners: [{name: http, port: 80, protocol: HTTP, hostname: other.com}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r}
spec: {parentRefs: [{name: set, kind: ListenerSet}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: refused}
spec: {parentRefs: [{name: set, kind: ListenerSet}], hostnames: [BAD]}
`

func TestAListenerSetIsProgrammedWithItsGateway(t *testing.T) {
	t.Parallel()

	g := newStage(t).build(withSet)
	wantLines(t, Compute(graph.DefaultControllerName, g, Result{}),
		"ListenerSet default/set||Accepted=True ListenersNotValid",
		"ListenerSet default/set||Programmed=False ParentNotProgrammed|The Gateway is not programmed: HAProxy does not serve this generation yet.",
		"ListenerSet default/set|listener http|Programmed=False Pending",
		"ListenerSet other/elsewhere||Programmed=False NotAllowed",
	)
	updates := Compute(graph.DefaultControllerName, g, Result{Running: g})
	wantLines(t, updates,
		"Gateway default/gw||Programmed=True Programmed",
		"ListenerSet default/set||Programmed=True Programmed",
		"ListenerSet default/set|listener http|Programmed=True Programmed",
		"ListenerSet default/set|listener more|Programmed=True Programmed",
		"ListenerSet default/set|listener lost|Programmed=False HostnameConflict",
		"ListenerSet other/elsewhere||Accepted=False NotAllowed",
	)
	for _, update := range updates {
		switch update.Object.String() {
		case "Gateway default/gw":
			if n := update.Status.Gateway.AttachedListenerSets; n == nil || *n != 1 || len(update.Status.Gateway.Listeners) != 1 {
				t.Errorf("%v sets are attached to %d listeners, want 1 and 1", n, len(update.Status.Gateway.Listeners))
			}
		case "ListenerSet default/set":
			for _, listener := range update.Status.Set.Listeners {
				if listener.AttachedRoutes != 1 || len(listener.SupportedKinds) == 0 {
					t.Errorf("%s: %d routes, kinds %v", listener.Name, listener.AttachedRoutes, listener.SupportedKinds)
				}
			}
		}
	}
}

func TestWhatHAProxyRefusesOfAListenerSetStaysThere(t *testing.T) {
	t.Parallel()

	g := newStage(t).build(withSet)
	leftOut := func(all map[model.Owner]string) []*Update {
		return Compute(graph.DefaultControllerName, g, Result{Running: g, LeftOut: all})
	}
	wantLines(t, leftOut(map[model.Owner]string{"ListenerEntry default/set/http": "no"}),
		"Gateway default/gw||Programmed=True Programmed|HAProxy serves the Gateway.",
		"Gateway default/gw|listener http|Programmed=True Programmed",
		"ListenerSet default/set||Programmed=True Programmed|HAProxy serves the ListenerSet in part. Listener http: HAProxy refuses it: no.",
		"ListenerSet default/set|listener http|Programmed=False Invalid|HAProxy refuses it: no",
		"ListenerSet default/set|listener more|Programmed=True Programmed",
	)
	wantLines(t, leftOut(map[model.Owner]string{"Listener default/gw/http": "no", "Port default/gw 127.0.0.1:81": "taken"}),
		"Gateway default/gw||Programmed=False Invalid",
		"ListenerSet default/set||Programmed=False ParentNotProgrammed",
		"ListenerSet default/set|listener http|Programmed=True Programmed",
		"ListenerSet default/set|listener more|Programmed=False Invalid|taken",
	)
	wantLines(t, leftOut(map[model.Owner]string{"ListenerEntry default/set/http": "no", "Port default/gw 127.0.0.1:81": "taken"}),
		"Gateway default/gw||Programmed=True Programmed",
		"ListenerSet default/set||Programmed=False Invalid|None of its listeners is served.",
	)
}
