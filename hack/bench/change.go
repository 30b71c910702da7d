package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/controller/translate"
	"github.com/limpet-gateway/limpet/dataplane"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/templates"
)

// pipeline is everything between an object in memory and HAProxy.
type pipeline struct {
	snapshot   cluster.Snapshot
	builder    *graph.Builder
	translator *translate.Translator
	engine     *dataplane.Engine
}

// change is one kind of change; n tells one from the next.
type change struct {
	name string
	make func(s cluster.Snapshot, n int) cluster.Snapshot
}

var changes = []change{
	{"a route's path", func(s cluster.Snapshot, n int) cluster.Snapshot {
		s.HTTPRoutes = s.HTTPRoutes.With(newRoute(7, fmt.Sprintf("/changed-%d", n)))
		return s
	}},
	{"a route added", func(s cluster.Snapshot, n int) cluster.Snapshot {
		route := newRoute(7, fmt.Sprintf("/added-%d", n))
		route.Name = fmt.Sprintf("added-%d", n)
		s.HTTPRoutes = s.HTTPRoutes.With(route)
		return s
	}},
	{"an endpoint's state", func(s cluster.Snapshot, n int) cluster.Snapshot {
		s.EndpointSlices = s.EndpointSlices.With(newSlice(3, n%2 == 1))
		return s
	}},
}

// measureChange takes the time from an object's change in memory to the last run-time command that HAProxy accepted, with
// few routes and with many, in turns.
func measureChange(ctx context.Context, l *lab, o options, report *report) error {
	sizes := []int{100, o.routes}
	pipelines := map[int]*pipeline{}
	for _, size := range sizes {
		p, err := l.pipeline(ctx, size)
		if err != nil {
			return fmt.Errorf("%d routes: %w", size, err)
		}
		pipelines[size] = p
		defer func() { _ = p.engine.Shutdown(ctx) }()
	}
	fmt.Println("Milliseconds from a change in memory to the last accepted run-time command, median of", o.changes)
	for _, c := range changes {
		times := map[int][]float64{}
		for n := range o.changes + 3 {
			for _, size := range sizes {
				took, err := pipelines[size].apply(ctx, c, n)
				if err != nil {
					return fmt.Errorf("%s with %d routes: %w", c.name, size, err)
				}
				if n >= 3 { // the first ones warm up
					times[size] = append(times[size], took.Seconds()*1000)
				}
			}
		}
		small, large := median(times[sizes[0]]), median(times[sizes[1]])
		report.ratio("change: "+c.name, large/small, 3,
			fmt.Sprintf("%.2f ms with %d routes, %.2f ms with %d", small, sizes[0], large, sizes[1]))
	}
	return nil
}

func (p *pipeline) apply(ctx context.Context, c change, n int) (time.Duration, error) {
	next := c.make(p.snapshot, n)
	begin := time.Now()
	result := p.engine.Apply(ctx, p.translator.Config(p.builder.Build(next)))
	took := time.Since(begin)
	p.snapshot = next
	if result.Err != nil {
		return 0, result.Err
	}
	if result.Reloaded || result.Commands == 0 {
		return 0, fmt.Errorf("%d commands, reloaded %t %v: not what is measured here", result.Commands, result.Reloaded, result.Reasons)
	}
	return took, nil
}

// pipeline starts an engine with the given number of routes on it.
func (l *lab) pipeline(ctx context.Context, routes int) (*pipeline, error) {
	dir := filepath.Join(l.dir, fmt.Sprint(routes))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	renderer, err := templates.NewRenderer(templates.Settings{
		AdminSocket: dataplane.AdminSocket(dir), HealthSocket: filepath.Join(dir, "run", "health.sock"),
		Instance: filepath.Base(l.dir) + filepath.Base(dir), HardStopAfter: "1s",
		SignKeys: []templates.SignKey{{ID: "a", Secret: base64.StdEncoding.EncodeToString(make([]byte, 32))}},
	})
	if err != nil {
		return nil, err
	}
	render := func(config model.Config, place placement.Placement) (files.Set, []dataplane.Fault, error) {
		set, faults, err := renderer.Render(config, place)
		var told []dataplane.Fault
		for _, f := range faults {
			told = append(told, dataplane.Fault(f))
		}
		return set, told, err
	}
	engine, err := dataplane.New(dataplane.Options{Dir: dir, Binary: l.haproxy, Render: render})
	if err != nil {
		return nil, err
	}
	if err := engine.Start(ctx); err != nil {
		return nil, err
	}
	p := &pipeline{
		snapshot:   newSnapshot(routes, freePort()),
		builder:    graph.NewBuilder(graph.Options{DefaultAddress: netip.MustParseAddr("127.0.0.1")}),
		translator: translate.New(translate.Options{NamesKey: make([]byte, 32)}),
		engine:     engine,
	}
	result := engine.Apply(ctx, p.translator.Config(p.builder.Build(p.snapshot)))
	return p, result.Err
}

// newSnapshot has a Gateway, routes, and a Service with three endpoints for every ten of them.
func newSnapshot(routes, port int) cluster.Snapshot {
	var s cluster.Snapshot
	s.GatewayClasses = cluster.NewObjects(&gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: "limpet", Generation: 1},
		Spec:       gatewayv1.GatewayClassSpec{ControllerName: "limpet.dev/gateway-controller"},
	})
	s.Gateways = cluster.NewObjects(&gatewayv1.Gateway{
		ObjectMeta: meta("gw"),
		Spec: gatewayv1.GatewaySpec{
			GatewayClassName: "limpet",
			Listeners:        []gatewayv1.Listener{{Name: "http", Port: gatewayv1.PortNumber(port), Protocol: gatewayv1.HTTPProtocolType}},
		},
	})
	s.Namespaces = cluster.NewObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bench"}})
	var all []*gatewayv1.HTTPRoute
	var services []*corev1.Service
	var slices []*discoveryv1.EndpointSlice
	for i := range routes {
		all = append(all, newRoute(i, fmt.Sprintf("/path-%d", i)))
		if i%10 == 0 {
			services = append(services, &corev1.Service{
				ObjectMeta: meta(service(i)), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
			})
			slices = append(slices, newSlice(i, true))
		}
	}
	s.HTTPRoutes, s.Services, s.EndpointSlices = cluster.NewObjects(all...), cluster.NewObjects(services...), cluster.NewObjects(slices...)
	return s
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "bench", Name: name, Generation: 1, UID: types.UID(name)}
}

func service(route int) string { return fmt.Sprintf("svc-%d", route/10) }

func newRoute(i int, path string) *gatewayv1.HTTPRoute {
	prefix, port := gatewayv1.PathMatchPathPrefix, gatewayv1.PortNumber(80)
	return &gatewayv1.HTTPRoute{
		ObjectMeta: meta(fmt.Sprintf("route-%d", i)),
		Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "gw"}}},
			Hostnames:       []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("h%d.example.com", i/10))},
			Rules: []gatewayv1.HTTPRouteRule{{
				Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: &prefix, Value: &path}}},
				BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
					BackendObjectReference: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(service(i)), Port: &port},
				}}},
			}},
		},
	}
}

func newSlice(route int, ready bool) *discoveryv1.EndpointSlice {
	name, port, serving := "http", int32(9), true
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  meta(service(route)),
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
	}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: service(route)}
	for i := range 3 {
		is, pod := ready || i > 0, fmt.Sprintf("%s-%d", slice.Name, i)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{fmt.Sprintf("127.1.%d.%d", route/10%250, i+1)},
			Conditions: discoveryv1.EndpointConditions{Ready: &is, Serving: &serving},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: "bench", Name: pod, UID: types.UID(pod)},
		})
	}
	return slice
}
