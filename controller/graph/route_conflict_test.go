package graph

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// sharing is a route of a kind, in the namespace, as old as it says.
func sharing(kind, namespace, name, created, hostnames string) string {
	return fmt.Sprintf(`---
kind: %s
metadata: {name: %s, namespace: %s, creationTimestamp: "%sT00:00:00Z"}
spec:
  parentRefs: [{name: gw, namespace: default}]
  hostnames: [%s]
  rules: [{backendRefs: [{name: shop, port: 80}]}]
`, kind, name, namespace, created, hostnames)
}

// accepted are the routes that are served, in order.
func accepted(g *Graph) string {
	var all []string
	for _, route := range g.Routes {
		if len(route.Parents[0].Listeners) > 0 {
			all = append(all, route.Source.GetName())
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

var openGateway = strings.Replace(gateway, "protocol: HTTP}", "protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}", 1)

func TestAHostnameBelongsToOneKindOfRoutes(t *testing.T) {
	t.Parallel()
	const http, grpc = "HTTPRoute", "GRPCRoute"
	for _, test := range []struct {
		name   string
		routes []string
		want   string
	}{
		{"the older one has it", []string{sharing(http, "default", "h", "2026-01-02", "a.com"), sharing(grpc, "default", "g", "2026-01-01", "a.com")}, "g"},
		{"of one age the first by name has it", []string{sharing(http, "default", "h", "2026-01-01", "a.com"), sharing(grpc, "default", "i", "2026-01-01", "a.com")}, "h"},
		{"every hostname is one too", []string{sharing(http, "default", "h", "2026-01-01", ""), sharing(grpc, "default", "g", "2026-01-02", "")}, "h"},
		{"a broader one is another", []string{sharing(http, "default", "h", "2026-01-01", ""), sharing(grpc, "default", "g", "2026-01-02", "a.com"),
			sharing(grpc, "default", "w", "2026-01-02", "'*.com'")}, "g h w"},
		{"one of several is enough", []string{sharing(http, "default", "h", "2026-01-01", "a.com, b.com"), sharing(grpc, "default", "g", "2026-01-02", "b.com, c.com")}, "h"},
		{"what is refused claims nothing", []string{sharing(http, "default", "h", "2026-01-01", "a.com"), sharing(grpc, "default", "g", "2026-01-02", "a.com, b.com"),
			sharing(http, "default", "i", "2026-01-03", "b.com")}, "h i"},
		{"routes of one kind share", []string{sharing(grpc, "default", "g", "2026-01-01", "a.com"), sharing(grpc, "default", "f", "2026-01-02", "a.com"),
			sharing(http, "default", "h", "2026-01-03", "a.com")}, "f g"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := accepted(build(t, openGateway+shop+strings.Join(test.routes, ""))); got != test.want {
				t.Errorf("accepted: %s, want %s", got, test.want)
			}
		})
	}
}

func TestARefusedKindHearsWhyAndNothingOfOtherNamespaces(t *testing.T) {
	t.Parallel()
	g := build(t, openGateway+shop+sharing("GRPCRoute", "default", "g", "2026-01-01", "a.com")+sharing("HTTPRoute", "default", "h", "2026-01-02", "a.com")+
		sharing("HTTPRoute", "other", "o", "2026-01-03", "a.com"))
	const want = "Accepted=False/HostnameConflict ResolvedRefs="
	mine, other := g.route(t, "default/h").Parents[0].Conditions, g.route(t, "other/o").Parents[0].Conditions
	expect(t, mine, want+"True/ResolvedRefs", "GRPCRoute default/g", `"a.com"`, `listener "http"`)
	expect(t, other, want+"False/BackendNotFound", "an older GRPCRoute")
	if strings.Contains(allMessages(other), "default/g") {
		t.Error("the name of a route in another namespace is told")
	}
	if count := g.AttachedRoutes(g.Gateways[0].Listeners[0]); count != 1 {
		t.Errorf("%d routes are attached", count)
	}
}

// A fresh Builder and one that remembers agree, whatever comes and goes, and what did not change keeps its pointer.
func TestHostnamesAreWonAndLostAsRoutesComeAndGo(t *testing.T) {
	t.Parallel()
	h, g := sharing("HTTPRoute", "default", "h", "2026-01-02", "a.com"), sharing("GRPCRoute", "default", "g", "2026-01-01", "a.com, b.com")
	i, moved := sharing("HTTPRoute", "default", "i", "2026-01-03", "b.com"), sharing("GRPCRoute", "default", "g", "2026-01-01", "c.com")
	builder := NewBuilder(Options{PortOffset: 8000})
	var last *Graph
	for _, step := range []struct{ routes, want string }{
		{h, "h"}, {h + g, "g"}, {h + g + i, "g"}, {h + moved + i, "g h i"}, {h + g + i, "g"}, {h + i, "h i"}, {h + g, "g"}, {g, "g"}, {"", ""}, {h, "h"},
	} {
		snapshot := read(t, openGateway+shop+step.routes)
		if last != nil {
			snapshot = keepEqual(snapshot, builder.last)
		}
		now, fresh := builder.Build(snapshot), NewBuilder(Options{PortOffset: 8000}).Build(snapshot)
		if got := accepted(now); got != step.want || accepted(fresh) != step.want {
			t.Errorf("accepted: %q, fresh %q, want %q", got, accepted(fresh), step.want)
		}
		for at, route := range now.Routes {
			if show(route.Parents[0].Conditions) != show(fresh.Routes[at].Parents[0].Conditions) {
				t.Errorf("%s: %s, fresh %s", route.Key(), show(route.Parents[0].Conditions), show(fresh.Routes[at].Parents[0].Conditions))
			}
		}
		again := builder.Build(keepEqual(read(t, openGateway+shop+step.routes), snapshot))
		if !slices.Equal(again.Routes, now.Routes) {
			t.Error("without any change routes are other ones")
		}
		last = now
	}
}

// keepEqual replaces objects by those of the last Snapshot that say the same.
func keepEqual(now, last cluster.Snapshot) cluster.Snapshot {
	now.GatewayClasses, now.Gateways, now.Services, now.EndpointSlices = last.GatewayClasses, last.Gateways, last.Services, last.EndpointSlices
	for _, route := range now.HTTPRoutes.All() {
		if old, found := last.HTTPRoutes.Get(route.Namespace, route.Name); found && slices.Equal(old.Spec.Hostnames, route.Spec.Hostnames) {
			now.HTTPRoutes = now.HTTPRoutes.With(old)
		}
	}
	for _, route := range now.GRPCRoutes.All() {
		if old, found := last.GRPCRoutes.Get(route.Namespace, route.Name); found && slices.Equal(old.Spec.Hostnames, route.Spec.Hostnames) {
			now.GRPCRoutes = now.GRPCRoutes.With(old)
		}
	}
	return now
}
