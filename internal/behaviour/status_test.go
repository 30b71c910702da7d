package behaviour

import (
	"strings"
	"testing"
)

func TestStatusCodesOfTheGatewayItself(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+
		route("all", `
hostnames: [x.example]
rules:
- matches: [{path: {value: /fine}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {value: /no-backend}}]
- matches: [{path: {value: /no-service}}]
  backendRefs: [{name: missing, port: 80}]
- matches: [{path: {value: /no-port}}]
  backendRefs: [{name: one, port: 81}]
- matches: [{path: {value: /port-missing}}]
  backendRefs: [{name: one}]
- matches: [{path: {value: /kind}}]
  backendRefs: [{kind: ConfigMap, name: one, port: 80}]
- matches: [{path: {value: /elsewhere}}]
  backendRefs: [{name: one, namespace: elsewhere, port: 80}]
- matches: [{path: {value: /weightless}}]
  backendRefs: [{name: one, port: 80, weight: 0}]
- matches: [{path: {value: /empty}}]
  backendRefs: [{name: none, port: 80}]
- matches: [{path: {value: /empty-too}}]
  backendRefs: [{name: none, port: 80}]
  sessionPersistence: {type: Cookie, cookie: {}}
- matches: [{path: {value: /unbuilt}}]
  filters: [{type: ExtensionRef, extensionRef: {group: example.com, kind: Filter, name: a}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {value: /all-refused}}]
  backendRefs: [{name: refuses, port: 80}]`)+
		route("bare", "hostnames: [bare.example]")+
		route("grpc", "hostnames: [dropped.example]\nrules:\n- backendRefs: [{name: one, port: 80}]\n  retry: {backoff: 3s}"),
		pods("one", 1), pods("none", 0), pods("refuses", 2))
	w.pod("refuses-1").stop()
	w.pod("refuses-2").stop()
	w.check(t, []row{
		{"no such path", get("x.example/"), "404"},
		{"no such host", get("y.example/fine"), "404"},
		{"all is well", get("x.example/fine"), "one"},
		{"a rule without backendRefs", get("x.example/no-backend"), "500"},
		{"a route without rules", get("bare.example/x"), "500"},
		{"a Service that does not exist", get("x.example/no-service"), "500"},
		{"a port that the Service does not have", get("x.example/no-port"), "500"},
		{"a Service without a port", get("x.example/port-missing"), "500"},
		{"a kind that is none of ours", get("x.example/kind"), "500"},
		{"another namespace without a grant", get("x.example/elsewhere"), "500"},
		{"no weight at all", get("x.example/weightless"), "500"},
		{"no endpoint", get("x.example/empty"), "503"},
		{"no endpoint, with a session", get("x.example/empty-too"), "503"},
		{"a filter that is not built", get("x.example/unbuilt"), "500"},
		{"a route of which nothing can be honoured", get("dropped.example/x"), "500"},
		{"endpoints that all refuse", get("x.example/all-refused"), "503"},
	})
}

func TestAReferenceToAnotherNamespaceNeedsAGrant(t *testing.T) {
	t.Parallel()
	const elsewhere = `---
apiVersion: v1
kind: Service
metadata: {name: far, namespace: elsewhere}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: far, namespace: elsewhere, labels: {kubernetes.io/service-name: far}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [ADDRESS]}]
`
	const grant = `---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: all, namespace: elsewhere}
spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: default}], to: [{group: "", kind: Service, name: far}]}
`
	w := Run(t, gateway, pods("near", 1))
	far := strings.ReplaceAll(elsewhere, "ADDRESS", w.pod("near-1").at.Addr().String())
	manifests := gateway + route("all", "rules:\n- backendRefs: [{name: far, namespace: elsewhere, port: 80}]")
	for _, c := range []struct{ name, manifests, want string }{
		{"nothing there", manifests, "500"},
		{"without a grant", manifests + far, "500"},
		{"with a grant", manifests + far + grant, "near"},
		{"the grant gone again", manifests + far, "500"},
		{"a grant for another Service", manifests + far + strings.ReplaceAll(grant, "name: far", "name: near"), "500"},
		{"a grant for another namespace", manifests + far + strings.ReplaceAll(grant, "namespace: default", "namespace: other"), "500"},
		{"a grant for the kind", manifests + far + strings.ReplaceAll(grant, ", name: far", ""), "near"},
	} {
		w.Apply(t, c.manifests)
		if got := w.ask(t, get("x.example/")).outcome(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestAnEndpointThatHangsUp is asked once for what may have had an effect; what only asks is answered by another.
func TestAnEndpointThatHangsUp(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", "rules:\n- backendRefs: [{name: one, port: 80}]"), pods("one", 2))
	w.pod("one-1").hangUp(t)
	post := get("x.example/")
	post.method = "POST"
	if counts := w.count(t, 20, post, answer.outcome); counts["one"] != 10 || counts["502"] != 10 {
		t.Errorf("POST: %v, want the half answered and the half 502", counts)
	}
	if counts := w.count(t, 20, get("x.example/"), answer.outcome); counts["one"] != 20 {
		t.Errorf("GET: %v, want all answered", counts)
	}
}
