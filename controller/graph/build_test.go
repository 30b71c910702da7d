package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		all[node.Source.GetName()] = node
	}
	all["s1"], all["s2"] = g.Backend(BackendKey{"Service", "default", "s1", 80}), g.Backend(BackendKey{"Service", "other", "s2", 80})
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
	if got := showEndpoints(old.Backend(BackendKey{"Service", "default", "s1", 80})); got != "10.0.0.1:8080" {
		t.Error(got)
	}
}

func TestAGraphNamesTheServicesThatChanged(t *testing.T) {
	snapshot := read(t, pairOfAll)
	builder := NewBuilder(Options{})
	before := builder.Build(snapshot)
	changed := func(g *Graph) string {
		var names []string
		for key := range g.ChangedBackends(before) {
			names = append(names, key.Kind+" "+key.Namespace+"/"+key.Name)
		}
		slices.Sort(names)
		return fmt.Sprint(names)
	}
	snapshot.HTTPRoutes = snapshot.HTTPRoutes.Without("default", "r1")
	if got := changed(builder.Build(snapshot)); got != "[]" {
		t.Error(got)
	}
	snapshot.EndpointSlices = snapshot.EndpointSlices.Without("default", "e1")
	snapshot.Services = snapshot.Services.Without("other", "s2")
	if got := changed(builder.Build(snapshot)); got != "[Service default/s1 Service other/s2]" {
		t.Error(got)
	}
	for range builder.Build(snapshot).ChangedBackends(before) {
		break // A caller may stop.
	}
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
