package translate

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// The benchmarks take the whole way from objects, and count the time in Config alone: µs/config.

// installation is a Gateway with routes that have a Service and an endpoint each.
type installation struct {
	snapshot cluster.Snapshot
	hostname func(i int) gatewayv1.Hostname
}

// onManyHosts gives each route a host of its own, onOneHost lets all share one.
func onManyHosts(i int) gatewayv1.Hostname {
	return gatewayv1.Hostname(fmt.Sprintf("h%d.example.com", i))
}

func onOneHost(int) gatewayv1.Hostname { return "www.example.com" }

func newInstallation(routes int, hostname func(int) gatewayv1.Hostname) *installation {
	in := &installation{hostname: hostname}
	class := &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: "limpet"},
		Spec:       gatewayv1.GatewayClassSpec{ControllerName: graph.DefaultControllerName},
	}
	gw := &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gw"},
		Spec: gatewayv1.GatewaySpec{
			GatewayClassName: "limpet",
			Listeners:        []gatewayv1.Listener{{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
		},
	}
	in.snapshot.GatewayClasses = cluster.NewObjects(class)
	in.snapshot.Gateways = cluster.NewObjects(gw)
	in.snapshot.Namespaces = cluster.NewObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	var allRoutes []*gatewayv1.HTTPRoute
	var services []*corev1.Service
	var slices []*discoveryv1.EndpointSlice
	for i := range routes {
		allRoutes = append(allRoutes, in.route(i, 1))
		service, slice := newService(i)
		services, slices = append(services, service), append(slices, slice)
	}
	in.snapshot.HTTPRoutes = cluster.NewObjects(allRoutes...)
	in.snapshot.Services = cluster.NewObjects(services...)
	in.snapshot.EndpointSlices = cluster.NewObjects(slices...)
	return in
}

// route has one plain rule for "/p<i>" and one with a canary; version is a header's value.
func (in *installation) route(i, version int) *gatewayv1.HTTPRoute {
	weight, path, kind := int32(version), fmt.Sprintf("/p%d", i), gatewayv1.PathMatchPathPrefix
	port := gatewayv1.PortNumber(80)
	ref := func(i int) gatewayv1.HTTPBackendRef {
		return gatewayv1.HTTPBackendRef{BackendRef: gatewayv1.BackendRef{
			Weight:                 &weight,
			BackendObjectReference: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(fmt.Sprintf("s%d", i)), Port: &port},
		}}
	}
	match := gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: &kind, Value: &path}}
	conditional := match
	conditional.Headers = []gatewayv1.HTTPHeaderMatch{{Name: "version", Value: fmt.Sprint(version)}}
	return &gatewayv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("r%d", i)},
		Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "gw"}}},
			Hostnames:       []gatewayv1.Hostname{in.hostname(i)},
			Rules: []gatewayv1.HTTPRouteRule{
				{Matches: []gatewayv1.HTTPRouteMatch{match}, BackendRefs: []gatewayv1.HTTPBackendRef{ref(i)}},
				{Matches: []gatewayv1.HTTPRouteMatch{conditional}, BackendRefs: []gatewayv1.HTTPBackendRef{ref(i), ref(0)}},
			},
		},
	}
}

func newService(i int) (*corev1.Service, *discoveryv1.EndpointSlice) {
	meta := metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("s%d", i)}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	meta.Labels = map[string]string{discoveryv1.LabelServiceName: meta.Name}
	port := int32(8080)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: &port}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{fmt.Sprintf("10.%d.%d.1", i/250, i%250)}}},
	}
	return service, slice
}

// bench counts what Config takes after each edit.
func (in *installation) bench(b *testing.B, edit func(i int), check func(before, after model.Config) bool) {
	builder, translator := graph.NewBuilder(graph.Options{}), testTranslator()
	before := translator.Config(builder.Build(in.snapshot))
	var total time.Duration
	for i := 0; b.Loop(); i++ {
		edit(i)
		g := builder.Build(in.snapshot)
		start := time.Now()
		config := translator.Config(g)
		total += time.Since(start)
		if !check(before, config) {
			b.Fatal("the edit had no effect")
		}
		before = config
	}
	b.ReportMetric(float64(total.Microseconds())/float64(b.N), "µs/config")
}

func pathsChanged(before, after model.Config) bool    { return !after.Paths.Same(before.Paths) }
func backendsChanged(before, after model.Config) bool { return !after.Backends.Same(before.Backends) }

// sizes are those that the growth is judged by.
var sizes = []int{100, 5000}

func BenchmarkOneRouteChanges(b *testing.B) {
	for name, hostname := range map[string]func(int) gatewayv1.Hostname{"many hosts": onManyHosts, "one host": onOneHost} {
		for _, size := range sizes {
			b.Run(fmt.Sprintf("%s/%d routes", name, size), func(b *testing.B) {
				in := newInstallation(size, hostname)
				in.bench(b, func(i int) {
					in.snapshot.HTTPRoutes = in.snapshot.HTTPRoutes.With(in.route(size/2, 2+i))
				}, pathsChanged)
			})
		}
	}
}

func BenchmarkOneRouteComesAndGoes(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("%d routes", size), func(b *testing.B) {
			in := newInstallation(size, onManyHosts)
			in.bench(b, func(i int) {
				if i%2 == 0 {
					in.snapshot.HTTPRoutes = in.snapshot.HTTPRoutes.Without("default", fmt.Sprintf("r%d", size/2))
				} else {
					in.snapshot.HTTPRoutes = in.snapshot.HTTPRoutes.With(in.route(size/2, 1))
				}
			}, pathsChanged)
		})
	}
}

func BenchmarkOneEndpointChanges(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("%d routes", size), func(b *testing.B) {
			in := newInstallation(size, onManyHosts)
			in.bench(b, func(i int) {
				_, slice := newService(size / 2)
				slice.Endpoints[0].Addresses[0] = fmt.Sprintf("10.99.%d.%d", i/250%250, i%250)
				in.snapshot.EndpointSlices = in.snapshot.EndpointSlices.With(slice)
			}, backendsChanged)
		})
	}
}

func BenchmarkFromNothing(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("%d routes", size), func(b *testing.B) {
			g := graph.NewBuilder(graph.Options{}).Build(newInstallation(size, onManyHosts).snapshot)
			for b.Loop() {
				testTranslator().Config(g)
			}
		})
	}
}
