package graph

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// Two routes, on two Gateways, in front of two Services.
const pairOfAll = class + `---
kind: Gateway
metadata: {name: gw1, namespace: default}
spec: {gatewayClassName: limpet, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
kind: Gateway
metadata: {name: gw2, namespace: default}
spec:
  gatewayClassName: limpet
  listeners: [{name: http, port: 81, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {team: red}}}}}]
---
kind: Namespace
metadata: {name: default, labels: {team: red}}
---
kind: HTTPRoute
metadata: {name: r1, namespace: default}
spec: {parentRefs: [{name: gw1}], rules: [{name: a, backendRefs: [{name: s1, port: 80}]}, {name: b, matches: [{path: {value: /b}}]}]}
---
kind: HTTPRoute
metadata: {name: r2, namespace: default}
spec: {parentRefs: [{name: gw2}], rules: [{backendRefs: [{name: s2, namespace: other, port: 80}]}]}
---
kind: Service
metadata: {name: s1, namespace: default}
spec: {ports: [{port: 80}]}
---
kind: Service
metadata: {name: s2, namespace: other}
spec: {ports: [{port: 80}]}
---
kind: EndpointSlice
metadata: {name: e1, namespace: default, labels: {kubernetes.io/service-name: s1}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.0.0.1]}]
---
kind: ReferenceGrant
metadata: {name: g, namespace: other}
spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: default}], to: [{group: '', kind: Service}]}
`

func TestWhatDoesNotChangeKeepsItsPointer(t *testing.T) {
	t.Parallel()
	without := func(all cluster.Objects[*gatewayv1beta1.ReferenceGrant]) cluster.Objects[*gatewayv1beta1.ReferenceGrant] {
		return all.Without("other", "g")
	}
	for _, test := range []struct {
		name string
		edit func(*cluster.Snapshot)
		// Which of two Gateways, two routes and two backends are new ones.
		changed string
	}{
		{"nothing", func(*cluster.Snapshot) {}, ""},
		{"equal lists that are not the same", func(s *cluster.Snapshot) {
			s.HTTPRoutes, s.Gateways = cluster.NewObjects(s.HTTPRoutes.All()...), cluster.NewObjects(s.Gateways.All()...)
			s.Services, s.Others = cluster.NewObjects(s.Services.All()...), []*unstructured.Unstructured{}
		}, ""},
		{"a route", func(s *cluster.Snapshot) { s.HTTPRoutes = s.HTTPRoutes.With(copyOf(s.HTTPRoutes, "default", "r1")) }, "r1"},
		{"a Gateway", func(s *cluster.Snapshot) { s.Gateways = s.Gateways.With(copyOf(s.Gateways, "default", "gw1")) }, "gw1 r1"},
		{"a Gateway gone", func(s *cluster.Snapshot) { s.Gateways = s.Gateways.Without("default", "gw2") }, "gw2 r2"},
		{"a Service that looks the same", func(s *cluster.Snapshot) { s.Services = s.Services.With(copyOf(s.Services, "default", "s1")) }, ""},
		{"a Service with another port", func(s *cluster.Snapshot) {
			service := copyOf(s.Services, "default", "s1")
			service.Spec.Ports[0].Port = 81
			s.Services = s.Services.With(service)
		}, "r1 s1"},
		{"a Service gone", func(s *cluster.Snapshot) { s.Services = s.Services.Without("other", "s2") }, "r2 s2"},
		{"a slice that says the same", func(s *cluster.Snapshot) {
			s.EndpointSlices = s.EndpointSlices.With(copyOf(s.EndpointSlices, "default", "e1"))
		}, ""},
		{"a slice with another address", func(s *cluster.Snapshot) {
			slice := copyOf(s.EndpointSlices, "default", "e1")
			slice.Endpoints[0].Addresses[0] = "10.0.0.2"
			s.EndpointSlices = s.EndpointSlices.With(slice)
		}, "s1"},
		{"a slice that moves to another Service", func(s *cluster.Snapshot) {
			slice := copyOf(s.EndpointSlices, "default", "e1")
			slice.Labels[discoveryv1.LabelServiceName] = "s3"
			s.EndpointSlices = s.EndpointSlices.With(slice)
		}, "s1"},
		{"a grant gone", func(s *cluster.Snapshot) { s.ReferenceGrants = without(s.ReferenceGrants) }, "r2"},
		{"a label that is selected by", func(s *cluster.Snapshot) {
			s.Namespaces = s.Namespaces.With(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
		}, "r2"},
		{"a label that nothing selects by", func(s *cluster.Snapshot) {
			s.Namespaces = s.Namespaces.With(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: "default", Labels: map[string]string{"team": "red", "age": "5"}}})
		}, ""},
		{"a Secret that nothing refers to", func(s *cluster.Snapshot) {
			s.Secrets = s.Secrets.With(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}})
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			snapshot := read(t, pairOfAll)
			builder := NewBuilder(Options{})
			before := pointers(builder.Build(snapshot))
			test.edit(&snapshot)
			after := pointers(builder.Build(snapshot))
			var changed []string
			for _, name := range []string{"gw1", "gw2", "r1", "r2", "s1", "s2"} {
				if before[name] != after[name] {
					changed = append(changed, name)
				}
			}
			if got := names(changed, func(s string) string { return s }); got != test.changed {
				t.Errorf("changed %q, want %q", got, test.changed)
			}
		})
	}
}

// copyOf is a deep copy of an object that can be edited.
func copyOf[T interface {
	object
	DeepCopy() T
}](all cluster.Objects[T], namespace, name string) T {
	found, _ := all.Get(namespace, name)
	return found.DeepCopy()
}

// pointers are those of a Graph's nodes by the objects' names.
func pointers(g *Graph) map[string]any {
	all := make(map[string]any)
	for _, node := range g.Gateways {
		all[node.Source.Name] = node
	}
	for _, node := range g.Routes {
		all[node.Source.Name] = node
	}
	all["s1"], all["s2"] = g.Backend(BackendKey{"default", "s1", 80}), g.Backend(BackendKey{"other", "s2", 80})
	return all
}

func TestARuleThatDoesNotChangeKeepsItsPointer(t *testing.T) {
	snapshot := read(t, pairOfAll)
	builder := NewBuilder(Options{})
	before := builder.Build(snapshot).route(t, "default/r1")
	route := copyOf(snapshot.HTTPRoutes, "default", "r1")
	route.Spec.Rules[1].Name = nil
	snapshot.HTTPRoutes = snapshot.HTTPRoutes.With(route)
	after := builder.Build(snapshot).route(t, "default/r1")
	if before == after || before.Rules[0] != after.Rules[0] || before.Rules[1] == after.Rules[1] || before.Parents[0] != after.Parents[0] {
		t.Error("not what changed is new")
	}
}

func TestAnOlderGraphKeepsItsBackends(t *testing.T) {
	snapshot := read(t, pairOfAll)
	builder := NewBuilder(Options{})
	old := builder.Build(snapshot)
	snapshot.EndpointSlices = cluster.NewObjects[*discoveryv1.EndpointSlice]()
	builder.Build(snapshot)
	if got := showEndpoints(old.Backend(BackendKey{"default", "s1", 80})); got != "10.0.0.1:8080" {
		t.Error(got)
	}
}

// equal compares Graphs deeply, with all that they say when asked.
func equal(t *testing.T, got, want *Graph) {
	t.Helper()
	options := cmp.Options{
		cmpopts.IgnoreUnexported(Graph{}, Listener{}), cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}), cmpopts.EquateEmpty(),
	}
	// The fast way first: only cmp knows that nil and empty are equal here.
	same := reflect.DeepEqual(got.Gateways, want.Gateways) && reflect.DeepEqual(got.Routes, want.Routes) &&
		reflect.DeepEqual(got.Others, want.Others) && reflect.DeepEqual(got.Unclaimed, want.Unclaimed)
	if !same || !reflect.DeepEqual(got.Classes, want.Classes) {
		if difference := cmp.Diff(want, got, options); difference != "" {
			t.Fatalf("want -, got +:\n%s", difference)
		}
	}
	for i := range want.Gateways {
		for j, listener := range want.Gateways[i].Listeners {
			if a, b := got.AttachedRoutes(got.Gateways[i].Listeners[j]), want.AttachedRoutes(listener); a != b {
				t.Fatalf("%s/%s has %d attached routes, want %d", want.Gateways[i].Key(), listener.Name, a, b)
			}
		}
	}
	if len(got.attached) != len(want.attached) {
		t.Fatalf("counts for %d listeners, want %d", len(got.attached), len(want.attached))
	}
	for _, namespace := range []string{"a", "b"} {
		for i := range 5 {
			for port := range int32(3) {
				key := BackendKey{namespace, fmt.Sprintf("s%d", i), 80 + port}
				if !reflect.DeepEqual(got.Backend(key), want.Backend(key)) {
					t.Fatalf("%v\n%s", key, cmp.Diff(want.Backend(key), got.Backend(key), options))
				}
			}
		}
	}
}

func TestABuilderThatRemembersGivesWhatAFreshOneGives(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := world{rand.New(rand.NewPCG(seed, 1))}
			var snapshot cluster.Snapshot
			builder := NewBuilder(Options{})
			var snapshots []cluster.Snapshot
			var graphs []*Graph
			for step := range 120 {
				for range 1 + w.IntN(3) {
					w.edit(&snapshot)
				}
				snapshots, graphs = append(snapshots, snapshot), append(graphs, builder.Build(snapshot))
				equal(t, graphs[step], NewBuilder(Options{}).Build(snapshot))
				// And an older one is what it was.
				past := w.IntN(step + 1)
				equal(t, graphs[past], NewBuilder(Options{}).Build(snapshots[past]))
			}
		})
	}
}

// world makes objects with few names, so that they meet.
type world struct{ *rand.Rand }

func (w world) pick(of ...string) string { return of[w.IntN(len(of))] }

func (w world) chance(percent int) bool { return w.IntN(100) < percent }

func (w world) meta(kind string, count int) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: w.pick("a", "b"), Name: fmt.Sprintf("%s%d", kind, w.IntN(count)), Generation: w.Int64N(9)}
	if w.chance(50) {
		meta.CreationTimestamp = metav1.NewTime(time.Unix(w.Int64N(3), 0))
	}
	return meta
}

// put replaces or removes one object.
func put[T object](w world, all *cluster.Objects[T], object T) {
	if w.chance(25) {
		*all = all.Without(object.GetNamespace(), object.GetName())
		return
	}
	*all = all.With(object)
}

func (w world) edit(s *cluster.Snapshot) {
	switch w.IntN(12) {
	case 0:
		put(w, &s.GatewayClasses, w.class())
	case 1, 2:
		put(w, &s.Gateways, w.gateway())
	case 3, 4, 5:
		put(w, &s.HTTPRoutes, w.route())
	case 6:
		put(w, &s.ReferenceGrants, w.grant())
	case 7:
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.pick("a", "b"), Labels: map[string]string{"team": w.pick("red", "blue")}}}
		put(w, &s.Namespaces, namespace)
	case 8:
		put(w, &s.Services, w.service())
	case 9:
		put(w, &s.EndpointSlices, w.slice())
	case 10:
		put(w, &s.Secrets, w.secret())
	default:
		s.Others = w.others(s.Others)
	}
}

func (w world) class() *gatewayv1.GatewayClass {
	class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: w.pick("c0", "c1")}}
	class.Spec.ControllerName = gatewayv1.GatewayController(w.pick(DefaultControllerName, DefaultControllerName, "example.com/other"))
	if w.chance(10) {
		class.Spec.ParametersRef = &gatewayv1.ParametersReference{Name: "p"}
	}
	return class
}

func (w world) gateway() *gatewayv1.Gateway {
	gateway := &gatewayv1.Gateway{ObjectMeta: w.meta("gw", 3)}
	gateway.Spec.GatewayClassName = gatewayv1.ObjectName(w.pick("c0", "c0", "c1", "c2"))
	for i := range 1 + w.IntN(4) {
		from := gatewayv1.FromNamespaces(w.pick("All", "All", "Same", "Selector"))
		listener := gatewayv1.Listener{
			Name: gatewayv1.SectionName(fmt.Sprintf("l%d", i)), Port: int32(80 + w.IntN(3)), Protocol: gatewayv1.ProtocolType(w.pick("HTTP", "HTTP", "HTTPS", "TCP")),
			AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{
				From: &from, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}}},
		}
		if hostname := gatewayv1.Hostname(w.pick("", "a.com", "*.a.com")); hostname != "" {
			listener.Hostname = &hostname
		}
		if listener.Protocol == "HTTPS" {
			namespace := gatewayv1.Namespace(w.pick("a", "b"))
			listener.TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{
				{Name: gatewayv1.ObjectName(w.pick("x0", "x1")), Namespace: &namespace}}}
		}
		gateway.Spec.Listeners = append(gateway.Spec.Listeners, listener)
	}
	if w.chance(30) {
		gateway.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: w.pick("10.0.0.1", "0.0.0.0", "x")}}
	}
	return gateway
}

func (w world) route() *gatewayv1.HTTPRoute {
	route := &gatewayv1.HTTPRoute{ObjectMeta: w.meta("r", 6)}
	for range w.IntN(3) {
		namespace, kind := gatewayv1.Namespace(w.pick("a", "b")), gatewayv1.Kind(w.pick("Gateway", "Gateway", "Gateway", "ListenerSet", "Service"))
		ref := gatewayv1.ParentReference{Name: gatewayv1.ObjectName(fmt.Sprintf("gw%d", w.IntN(4))), Namespace: &namespace, Kind: &kind}
		if section := gatewayv1.SectionName(w.pick("l0", "l1", "l9")); w.chance(30) {
			ref.SectionName = &section
		}
		route.Spec.ParentRefs = append(route.Spec.ParentRefs, ref)
	}
	if w.chance(50) {
		route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(w.pick("a.com", "b.a.com", "*.a.com", "BAD"))}
	}
	for range 1 + w.IntN(3) {
		route.Spec.Rules = append(route.Spec.Rules, w.rule())
	}
	return route
}

func (w world) rule() gatewayv1.HTTPRouteRule {
	var rule gatewayv1.HTTPRouteRule
	path := w.pick("/", "/a", "/a/", "bad")
	rule.Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Value: &path}}}
	for range w.IntN(3) {
		namespace, port := gatewayv1.Namespace(w.pick("a", "b")), int32(80+w.IntN(3))
		ref := gatewayv1.HTTPBackendRef{}
		ref.Name, ref.Namespace, ref.Port = gatewayv1.ObjectName(fmt.Sprintf("s%d", w.IntN(5))), &namespace, &port
		if w.chance(10) {
			group, kind := gatewayv1.Group(groupExperimental), gatewayv1.Kind("XBackend")
			ref.Group, ref.Kind, ref.Port = &group, &kind, nil
		}
		rule.BackendRefs = append(rule.BackendRefs, ref)
	}
	if w.chance(10) {
		rule.Retry = &gatewayv1.HTTPRouteRetry{}
	}
	if w.chance(30) {
		rule.SessionPersistence = &gatewayv1.SessionPersistence{Cookie: &gatewayv1.CookieConfig{}}
	}
	return rule
}

func (w world) grant() *gatewayv1beta1.ReferenceGrant {
	grant := &gatewayv1beta1.ReferenceGrant{ObjectMeta: w.meta("g", 2)}
	grant.Spec.From = []gatewayv1.ReferenceGrantFrom{
		{Group: gatewayv1.GroupName, Kind: gatewayv1.Kind(w.pick("HTTPRoute", "Gateway")), Namespace: gatewayv1.Namespace(w.pick("a", "b"))}}
	grant.Spec.To = []gatewayv1.ReferenceGrantTo{{Kind: gatewayv1.Kind(w.pick("Service", "Secret"))}}
	return grant
}

func (w world) service() *corev1.Service {
	service := &corev1.Service{ObjectMeta: w.meta("s", 5)}
	for i := range 1 + w.IntN(3) {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", i), Port: int32(80 + i)})
	}
	switch {
	case w.chance(10):
		service.Spec.Type = corev1.ServiceTypeExternalName
	case w.chance(10):
		service.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	}
	return service
}

func (w world) slice() *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: w.meta("e", 8), AddressType: discoveryv1.AddressType(w.pick("IPv4", "IPv4", "IPv4", "FQDN"))}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("s%d", w.IntN(5))}
	for i := range 1 + w.IntN(3) {
		name, port := fmt.Sprint("p", i), int32(8080+w.IntN(2))
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &name, Port: &port})
	}
	for range w.IntN(4) {
		ready, serving := w.chance(50), w.chance(70)
		endpoint := discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.0.0.%d", w.IntN(6))}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving},
		}
		if w.chance(70) {
			endpoint.TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: fmt.Sprintf("p%d", w.IntN(6))}
		}
		slice.Endpoints = append(slice.Endpoints, endpoint)
	}
	return slice
}

func (w world) secret() *corev1.Secret {
	fresh := secret(goodPair().crt, w.pick(goodPair().key, goodPair().key, "x"))
	fresh.ObjectMeta = w.meta("x", 2)
	return fresh
}

// others replaces one of some objects without type.
func (w world) others(all []*unstructured.Unstructured) []*unstructured.Unstructured {
	kind := w.pick("BackendTLSPolicy", "GRPCRoute", "ListenerSet", "XBackend")
	fresh := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": kind}}
	fresh.SetNamespace(w.pick("a", "b"))
	fresh.SetName(fmt.Sprintf("gw%d", w.IntN(3)))
	parent := map[string]any{"name": fmt.Sprintf("gw%d", w.IntN(3))}
	fresh.Object["spec"] = map[string]any{"parentRef": parent, "parentRefs": []any{parent}}
	if kind == "BackendTLSPolicy" {
		target := map[string]any{"group": "", "kind": "Service", "name": fmt.Sprintf("s%d", w.IntN(5)), "sectionName": w.pick("", "p0")}
		fresh.Object["spec"] = map[string]any{"targetRefs": []any{target}}
	}
	same := func(other *unstructured.Unstructured) bool {
		return other.GetKind() == kind && nameOf(other) == nameOf(fresh)
	}
	all = slices.DeleteFunc(slices.Clone(all), same)
	if w.chance(70) {
		all = append(all, fresh)
	}
	return all
}

func TestSplice(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	compare := func(a, b int) int { return a - b }
	for range 500 {
		var list, removed, added, want []int
		for i := range random.IntN(12) {
			if list = append(list, 2*i); random.IntN(3) == 0 {
				removed = append(removed, 2*i)
			} else {
				want = append(want, 2*i)
			}
		}
		for range random.IntN(4) {
			if number := 2*random.IntN(13) + 1; !slices.Contains(added, number) {
				added = append(added, number)
			}
		}
		if len(removed) > 0 && random.IntN(2) == 0 {
			// Replaced by one that compares equal.
			added = append(added, removed[0])
		}
		want = append(want, added...)
		slices.Sort(want)
		before := slices.Clone(list)
		random.Shuffle(len(added), func(i, j int) { added[i], added[j] = added[j], added[i] })
		if got := splice(list, removed, added, compare); !slices.Equal(got, want) {
			t.Fatalf("%v without %v with %v: got %v", list, removed, added, got)
		}
		if !slices.Equal(list, before) {
			t.Fatal("the list was edited")
		}
	}
}

func TestDiffKnowsObjectsByName(t *testing.T) {
	t.Parallel()
	object := func(name string) *corev1.Service { return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	a, a2, b, c := object("a"), object("a"), object("b"), object("c")
	for _, test := range []struct {
		name     string
		was, is  []*corev1.Service
		expected []change[*corev1.Service]
	}{
		{"the same objects", []*corev1.Service{a, b}, []*corev1.Service{a, b}, nil},
		{"one added", []*corev1.Service{a, c}, []*corev1.Service{a, b, c}, []change[*corev1.Service]{{nil, b}}},
		{"one removed", []*corev1.Service{a, b, c}, []*corev1.Service{b, c}, []change[*corev1.Service]{{a, nil}}},
		{"one replaced", []*corev1.Service{a, b}, []*corev1.Service{a2, b}, []change[*corev1.Service]{{a, a2}}},
		{"of two with one name the first counts", []*corev1.Service{a, b}, []*corev1.Service{a, a2, b}, nil},
		{"the second takes over when the first goes", []*corev1.Service{a, a2}, []*corev1.Service{a2}, []change[*corev1.Service]{{a, a2}}},
		{"the second goes unseen", []*corev1.Service{a, a2, c}, []*corev1.Service{a, b, c}, []change[*corev1.Service]{{nil, b}}},
	} {
		if got := diff(cluster.NewObjects(test.was...), cluster.NewObjects(test.is...)); !slices.Equal(got, test.expected) {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
