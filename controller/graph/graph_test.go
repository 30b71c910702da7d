package graph

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
	gatewayxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"
	"sigs.k8s.io/yaml"

	limpetv1alpha1 "github.com/limpet-gateway/limpet/api/v1alpha1"
	"github.com/limpet-gateway/limpet/controller/cluster"
)

// class, gateway and shop are what most cases need besides what they are about.
const class = `
kind: GatewayClass
metadata: {name: limpet, generation: 1}
spec: {controllerName: limpet.dev/gateway-controller}
`

const gateway = class + `---
kind: Gateway
metadata: {name: gw, namespace: default, generation: 2}
spec:
  gatewayClassName: limpet
  listeners:
  - {name: http, port: 80, protocol: HTTP}
`

const shop = `---
kind: Service
metadata: {name: shop, namespace: default}
spec: {ports: [{name: web, port: 80, targetPort: 8080}]}
---
kind: EndpointSlice
metadata: {name: shop-1, namespace: default, labels: {kubernetes.io/service-name: shop}}
addressType: IPv4
ports: [{name: web, port: 8080}]
endpoints:
- {addresses: [10.0.0.1], targetRef: {kind: Pod, name: shop-a, uid: a}}
- {addresses: [10.0.0.2], targetRef: {kind: Pod, name: shop-b, uid: b}}
`

// routeTo is an HTTPRoute with one rule, whose fields come indented by four.
func routeTo(rule string) string {
	return `---
kind: HTTPRoute
metadata: {name: route, namespace: default, generation: 3}
spec:
  parentRefs: [{name: gw}]
  rules:
  - ` + strings.TrimLeft(rule, "\n ") + "\n"
}

// objects collects typed objects by kind.
type objects struct {
	classes    []*gatewayv1.GatewayClass
	gateways   []*gatewayv1.Gateway
	sets       []*gatewayv1.ListenerSet
	routes     []*gatewayv1.HTTPRoute
	grpc       []*gatewayv1.GRPCRoute
	tls        []*gatewayv1.TLSRoute
	tcp        []*gatewayv1.TCPRoute
	grants     []*gatewayv1beta1.ReferenceGrant
	namespaces []*corev1.Namespace
	services   []*corev1.Service
	slices     []*discoveryv1.EndpointSlice
	secrets    []*corev1.Secret
	configMaps []*corev1.ConfigMap
	policies   []*gatewayv1.BackendTLSPolicy
	xbackends  []*gatewayxv1alpha1.XBackend
	pods       []*corev1.Pod
	parameters []*limpetv1alpha1.LimpetParameters
	others     []*unstructured.Unstructured
}

func (o *objects) snapshot() cluster.Snapshot {
	return cluster.Snapshot{
		GatewayClasses: cluster.NewObjects(o.classes...), Gateways: cluster.NewObjects(o.gateways...),
		ListenerSets: cluster.NewObjects(o.sets...), HTTPRoutes: cluster.NewObjects(o.routes...), GRPCRoutes: cluster.NewObjects(o.grpc...),
		TLSRoutes: cluster.NewObjects(o.tls...), TCPRoutes: cluster.NewObjects(o.tcp...), ReferenceGrants: cluster.NewObjects(o.grants...),
		Namespaces: cluster.NewObjects(o.namespaces...), Services: cluster.NewObjects(o.services...),
		EndpointSlices: cluster.NewObjects(o.slices...), Secrets: cluster.NewObjects(o.secrets...),
		ConfigMaps: cluster.NewObjects(o.configMaps...), Policies: cluster.NewObjects(o.policies...),
		XBackends: cluster.NewObjects(o.xbackends...), Pods: cluster.NewObjects(o.pods...), Parameters: cluster.NewObjects(o.parameters...), Others: o.others,
	}
}

// add decodes one document; what it cannot be decoded into is an error.
func (o *objects) add(document string) error {
	var head metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(document), &head); err != nil {
		return err
	}
	switch head.Kind {
	case "GatewayClass":
		return decode(document, &o.classes)
	case "Gateway":
		return decode(document, &o.gateways)
	case "ListenerSet":
		return decode(document, &o.sets)
	case "HTTPRoute":
		return decode(document, &o.routes)
	case "GRPCRoute":
		return decode(document, &o.grpc)
	case "TLSRoute":
		return decode(document, &o.tls)
	case "TCPRoute":
		return decode(document, &o.tcp)
	case "ReferenceGrant":
		return decode(document, &o.grants)
	case "Namespace":
		return decode(document, &o.namespaces)
	case "Service":
		return decode(document, &o.services)
	case "EndpointSlice":
		return decode(document, &o.slices)
	case "Secret":
		return decode(document, &o.secrets)
	case "BackendTLSPolicy":
		return decode(document, &o.policies)
	case "XBackend":
		return decode(document, &o.xbackends)
	case "Pod":
		return decode(document, &o.pods)
	case "ConfigMap":
		return decode(document, &o.configMaps)
	case kindParameters:
		return decode(document, &o.parameters)
	}
	other := &unstructured.Unstructured{}
	err := yaml.Unmarshal([]byte(document), &other.Object)
	o.others = append(o.others, other)
	return err
}

func decode[T any](document string, list *[]*T) error {
	object := new(T)
	err := yaml.UnmarshalStrict([]byte(document), object)
	*list = append(*list, object)
	return err
}

// read decodes documents that are separated by "---".
func read(t testing.TB, documents string) cluster.Snapshot {
	t.Helper()
	var all objects
	for _, document := range strings.Split(documents, "\n---\n") {
		if err := all.add(document); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
	}
	return all.snapshot()
}

func build(t testing.TB, documents string) *Graph {
	t.Helper()
	return NewBuilder(Options{PortOffset: 8000}).Build(read(t, documents))
}

func key(text string) types.NamespacedName {
	namespace, name, _ := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func (g *Graph) gateway(t testing.TB, name string) *Gateway {
	t.Helper()
	for _, node := range g.Gateways {
		if node.Key() == key(name) {
			return node
		}
	}
	t.Fatalf("no Gateway %s", name)
	return nil
}

func (g *Graph) listener(t testing.TB, gateway, name string) *Listener {
	t.Helper()
	for _, node := range g.gateway(t, gateway).Listeners {
		if node.Name == name {
			return node
		}
	}
	t.Fatalf("no listener %s", name)
	return nil
}

func (g *Graph) route(t testing.TB, name string) *Route {
	t.Helper()
	for _, node := range g.Routes {
		if node.Key() == key(name) {
			return node
		}
	}
	t.Fatalf("no HTTPRoute %s", name)
	return nil
}

// rule is the only rule of the only route.
func (g *Graph) rule(t testing.TB) *Rule {
	t.Helper()
	return g.route(t, "default/route").Rules[0]
}

// show writes conditions as "Type=Status/Reason".
func show(all []metav1.Condition) string {
	texts := make([]string, len(all))
	for i, c := range all {
		texts[i] = fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason)
	}
	return strings.Join(texts, " ")
}

// expect compares all conditions; wanted texts are also sought in the messages.
func expect(t testing.TB, got []metav1.Condition, want string, messages ...string) {
	t.Helper()
	if show(got) != want {
		t.Errorf("got  %s\nwant %s\n%s", show(got), want, allMessages(got))
	}
	for _, message := range messages {
		if !strings.Contains(allMessages(got), message) {
			t.Errorf("no message holds %q:\n%s", message, allMessages(got))
		}
	}
}

func allMessages(all []metav1.Condition) string {
	var text strings.Builder
	for _, c := range all {
		text.WriteString(c.Type + ": " + c.Message + "\n")
	}
	return text.String()
}

const (
	routeOK    = "Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs"
	listenerOK = "Accepted=True/Accepted Conflicted=False/NoConflicts ResolvedRefs=True/ResolvedRefs"
	gatewayOK  = "Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs"
)

// routeCase is one rule of an HTTPRoute, and what its only parent says about it.
type routeCase struct {
	name, rule, want string
	messages         []string
}

const unsupported = "Accepted=False/UnsupportedValue ResolvedRefs=True/ResolvedRefs"

func runRouteCases(t *testing.T, cases []routeCase) {
	t.Helper()
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			route := build(t, gateway+shop+routeTo(test.rule)).route(t, "default/route")
			expect(t, route.Parents[0].Conditions, test.want, test.messages...)
			dropped := strings.Contains(test.want, "Accepted=False")
			if route.Rules[0].Dropped != dropped {
				t.Errorf("dropped: %v", route.Rules[0].Dropped)
			}
			attached, blocked := len(route.Parents[0].Listeners), len(route.Parents[0].Blocked)
			if want := 1; dropped && (attached != 0 || blocked != want) || !dropped && (attached != want || blocked != 0) {
				t.Errorf("%d listeners, %d blocked", attached, blocked)
			}
		})
	}
}

func names[T any](list []T, name func(T) string) string {
	var all []string
	for _, item := range list {
		all = append(all, name(item))
	}
	return strings.Join(all, " ")
}

func listenerNames(list []*Listener) string {
	return names(list, func(l *Listener) string { return l.Name })
}

func TestEveryConditionCarriesTheGenerationOfItsObject(t *testing.T) {
	g := build(t, gateway+shop+routeTo("backendRefs: [{name: shop, port: 80}]"))
	for generation, all := range map[int64][]metav1.Condition{
		1: g.Classes[0].Conditions,
		2: slices.Concat(g.Gateways[0].Conditions, g.Gateways[0].Listeners[0].Conditions),
		3: g.Routes[0].Parents[0].Conditions,
	} {
		for _, c := range all {
			if c.ObservedGeneration != generation {
				t.Errorf("%s: generation %d, want %d", c.Type, c.ObservedGeneration, generation)
			}
		}
	}
}

func TestAnEmptySnapshotGivesAnEmptyGraph(t *testing.T) {
	g := NewBuilder(Options{}).Build(cluster.Snapshot{})
	if len(g.Classes)+len(g.Gateways)+len(g.Routes)+len(g.Others)+len(g.Unclaimed) > 0 || g.Backend(BackendKey{}) != nil {
		t.Errorf("%+v", g)
	}
}
