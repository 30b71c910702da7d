package graph

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// TestGatewaysThatShareAPodAreNeverInEachOthersWay: each of their ports is bound at one that the table gives it.
func TestGatewaysThatShareAPodAreNeverInEachOthersWay(t *testing.T) {
	t.Parallel()
	builder := NewBuilder(Options{Pod: NewPod([]netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")})})
	s := read(t, gateway+gatewayWith("other", httpListener+"\n  addresses: [{value: 10.96.0.7}, {type: IPAddress}]"))

	without := builder.Build(s)
	for _, name := range []string{"default/gw", "default/other"} {
		expect(t, without.gateway(t, name).Conditions, "Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs Programmed=False/Pending")
		expect(t, without.listener(t, name, "http").Conditions,
			"Accepted=True/Accepted Conflicted=False/NoConflicts ResolvedRefs=True/ResolvedRefs Programmed=False/Pending", "port 80 has no port")
	}

	s.Ports = cluster.ReadPorts(&corev1.ConfigMap{Data: map[string]string{"10000": "default/gw:80", "10001": "default/other:80"}}, nil)
	with := builder.Build(s)
	for name, port := range map[string]uint16{"default/gw": 10000, "default/other": 10001} {
		node := with.gateway(t, name)
		expect(t, node.Conditions, gatewayOK)
		if bind := with.listener(t, name, "http").Bind; !node.Valid || bind != port {
			t.Errorf("%s: valid %t, bound at %d, want %d", name, node.Valid, bind, port)
		}
		if got := fmt.Sprint(node.Addresses); got != "[0.0.0.0 ::]" {
			t.Errorf("%s is bound on %s", name, got)
		}
	}
	if got := fmt.Sprint(with.gateway(t, "default/other").Requested); got != "[10.96.0.7]" {
		t.Errorf("requested: %s", got)
	}
	// The table alone changed: the other Gateway is the same to all later stages.
	s.Ports = cluster.ReadPorts(&corev1.ConfigMap{Data: map[string]string{"10000": "default/gw:80", "10005": "default/other:80"}}, nil)
	moved := builder.Build(s)
	if moved.gateway(t, "default/gw") != with.gateway(t, "default/gw") || moved.gateway(t, "default/other") == with.gateway(t, "default/other") {
		t.Error("a port of one Gateway moved: the other one must stay the same pointer, and it must not")
	}
}
