package graph

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// many is an installation with n routes, each with a Service and a slice of its own.
func many(b *testing.B, n int) cluster.Snapshot {
	b.Helper()
	snapshot := read(b, gateway)
	routes, services, all := make([]*gatewayv1.HTTPRoute, n), make([]*corev1.Service, n), make([]*discoveryv1.EndpointSlice, n)
	for i := range n {
		one := read(b, fmt.Sprintf(`kind: HTTPRoute
metadata: {name: route-%[1]d, namespace: default}
spec:
  parentRefs: [{name: gw}]
  hostnames: [host-%[1]d.example.com]
  rules:
  - matches: [{path: {value: /a}}, {path: {value: /b}, headers: [{name: x, value: y}]}]
    backendRefs: [{name: service-%[1]d, port: 80}]
  - backendRefs: [{name: service-%[1]d, port: 80}]
    sessionPersistence: {cookie: {}}
---
kind: Service
metadata: {name: service-%[1]d, namespace: default}
spec: {ports: [{port: 80}]}
---
kind: EndpointSlice
metadata: {name: slice-%[1]d, namespace: default, labels: {kubernetes.io/service-name: service-%[1]d}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.0.0.1]}, {addresses: [10.0.0.2]}, {addresses: [10.0.0.3]}]`, i))
		routes[i], services[i], all[i] = one.HTTPRoutes.All()[0], one.Services.All()[0], one.EndpointSlices.All()[0]
	}
	snapshot.HTTPRoutes, snapshot.Services, snapshot.EndpointSlices =
		cluster.NewObjects(routes...), cluster.NewObjects(services...), cluster.NewObjects(all...)
	return snapshot
}

// BenchmarkBuild shows that a Build costs what changed. Making the edited Snapshot is not counted; asking for the Backend
// that an edit concerns is.
func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{100, 5000} {
		snapshot := many(b, n)
		middle := fmt.Sprint(n / 2)
		for _, edit := range []struct {
			name string
			do   func(*cluster.Snapshot)
		}{
			{"nothing", func(*cluster.Snapshot) {}},
			{"one HTTPRoute", func(s *cluster.Snapshot) {
				s.HTTPRoutes = s.HTTPRoutes.With(copyOf(s.HTTPRoutes, "default", "route-"+middle))
			}},
			{"one route comes and goes", func(s *cluster.Snapshot) {
				if _, found := s.HTTPRoutes.Get("default", "new"); found {
					s.HTTPRoutes = s.HTTPRoutes.Without("default", "new")
					return
				}
				route := copyOf(s.HTTPRoutes, "default", "route-"+middle)
				route.Name = "new"
				s.HTTPRoutes = s.HTTPRoutes.With(route)
			}},
			{"one EndpointSlice", func(s *cluster.Snapshot) {
				slice := copyOf(s.EndpointSlices, "default", "slice-"+middle)
				last := &slice.Endpoints[2].Addresses[0]
				*last = map[string]string{"10.0.0.3": "10.0.0.4", "10.0.0.4": "10.0.0.3"}[*last]
				s.EndpointSlices = s.EndpointSlices.With(slice)
			}},
			{"one Service", func(s *cluster.Snapshot) {
				s.Services = s.Services.With(copyOf(s.Services, "default", "service-"+middle))
			}},
			{"one Namespace", func(s *cluster.Snapshot) {
				s.Namespaces = s.Namespaces.With(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
			}},
			{"the Gateway", func(s *cluster.Snapshot) { s.Gateways = s.Gateways.With(copyOf(s.Gateways, "default", "gw")) }},
		} {
			b.Run(fmt.Sprintf("%d/%s", n, edit.name), func(b *testing.B) {
				builder, current := NewBuilder(Options{}), snapshot
				builder.Build(current)
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					edit.do(&current)
					b.StartTimer()
					builder.Build(current).Backend(BackendKey{"Service", "default", "service-" + middle, 80})
				}
			})
		}
		b.Run(fmt.Sprintf("%d/from nothing", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				NewBuilder(Options{}).Build(snapshot)
			}
		})
	}
}
