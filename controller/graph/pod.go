package graph

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// Pod is how Gateways that share one are bound: at all addresses of the pod, and each of their ports at a container port that
// no other has. So they never are in each other's way; the address that clients know is that of the Gateway's Service.
type Pod struct {
	// Addresses are 0.0.0.0 and ::, by the families that the pod has.
	Addresses []netip.Addr
}

// NewPod returns what is bound in a pod with these addresses.
func NewPod(addresses []netip.Addr) *Pod {
	pod := &Pod{}
	for _, family := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		if slices.ContainsFunc(addresses, func(a netip.Addr) bool { return a.Unmap().Is4() == family.Is4() }) {
			pod.Addresses = append(pod.Addresses, family)
		}
	}
	return pod
}

// Holder is what the listener's port is called in the table of container ports: listeners of one port share it.
func (l *Listener) Holder() cluster.PortHolder { return cluster.NewPortHolder(l.Gateway.Key(), l.Port) }

// placed says whether the listener has a port to bind.
func (d *listenerDraft) placed() bool { return d.node.Bind != 0 }

func (d *listenerDraft) whyUnplaced() string {
	return fmt.Sprintf("port %d has no port in Limpet's pods yet.", d.node.Port)
}

// placed says whether anything that can be served has a port to bind.
func (d *gatewayDraft) placed() bool {
	return slices.ContainsFunc(d.listeners, func(l *listenerDraft) bool { return l.served() && l.placed() })
}

func (d *gatewayDraft) whyUnplaced() string { return "no listener has a port in Limpet's pods yet." }
