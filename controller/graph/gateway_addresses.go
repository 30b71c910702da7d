package graph

import (
	"net/netip"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// readAddresses takes the addresses that spec.addresses asks for, or the default. In a pod all are bound alike: what is asked
// for is for the Gateway's Service to have.
func (b *gatewayBuild) readAddresses(d *gatewayDraft) {
	if b.options.Pod == nil {
		d.requestAddresses(b.options.DefaultAddress)
		return
	}
	d.requestAddresses(netip.Addr{})
	d.node.Requested = slices.DeleteFunc(d.node.Addresses, func(a netip.Addr) bool { return !a.IsValid() })
	d.node.Addresses = b.options.Pod.Addresses
}

func (d *gatewayDraft) requestAddresses(fallback netip.Addr) {
	requested := d.node.Source.Spec.Addresses
	if len(requested) > 16 {
		d.refused.add(gatewayv1.GatewayReasonInvalid, "spec.addresses must not have more than 16 entries")
		requested = nil
	}
	seen := make(map[string]bool)
	for i, request := range requested {
		if seen[request.Value] && request.Value != "" {
			d.refused.add(gatewayv1.GatewayReasonInvalid, "spec.addresses[%d].value: %q is there twice", i, request.Value)
		}
		seen[request.Value] = true
		if address, usable := d.readAddress(i, request, fallback); usable && !slices.Contains(d.node.Addresses, address) {
			d.node.Addresses = append(d.node.Addresses, address)
		}
	}
	if len(requested) == 0 {
		d.node.Addresses = []netip.Addr{fallback}
	}
}

func (d *gatewayDraft) readAddress(index int, request gatewayv1.GatewaySpecAddress, fallback netip.Addr) (netip.Addr, bool) {
	if kind := valueOr(request.Type, gatewayv1.IPAddressType); kind != gatewayv1.IPAddressType {
		d.refused.add(gatewayv1.GatewayReasonUnsupportedAddress,
			"spec.addresses[%d].type: %q is not supported, only IPAddress is", index, kind)
		return netip.Addr{}, false
	}
	if request.Routability != gatewayv1.GatewayAddressRoutabilityDefault {
		d.refused.add(gatewayv1.GatewayReasonUnsupportedAddress,
			"spec.addresses[%d].routability: %q is not built yet", index, request.Routability)
		return netip.Addr{}, false
	}
	if request.Value == "" {
		return fallback, true
	}
	address, err := netip.ParseAddr(request.Value)
	if err != nil || address.Zone() != "" {
		d.refused.add(gatewayv1.GatewayReasonInvalid,
			"spec.addresses[%d].value: %q is not an IP address", index, request.Value)
		return netip.Addr{}, false
	}
	return address.Unmap(), true
}

// claim is one address and port that a Gateway has.
type claim struct {
	address netip.AddrPort
	owner   *gatewayDraft
}

// claimAddresses gives each address and port to the oldest Gateway that asks for it. A younger one is left out as a
// whole: a Gateway must have all its listeners on all its addresses, so there is no serving half of it.
//
// The reason is AddressNotUsable, for which the API names "the address is already in use". The listeners themselves stay
// accepted (PortUnavailable would blame the port, and another address would heal it).
func claimAddresses(drafts []*gatewayDraft) {
	var claims []claim
	for _, draft := range drafts {
		if draft.refused.any() {
			continue
		}
		wanted := draft.claimsOf(draft.listeners)
		for _, want := range wanted {
			if taken := findClaim(claims, want); taken != nil {
				owner := taken.owner.node
				draft.unusable.add(gatewayv1.GatewayReasonAddressNotUsable, "address %s is in use by the older Gateway %s: "+
					"give one of them another port, or another address in spec.addresses", want.address, owner.Key())
			}
		}
		if !draft.unusable.any() {
			claims = append(claims, wanted...)
		}
	}
	for _, draft := range drafts {
		if !draft.refused.any() && !draft.unusable.any() {
			claims = draft.claimForSets(claims)
		}
	}
}

// claimForSets comes after the listeners of all Gateways: who may only add a ListenerSet must not take an address from one.
// A listener whose port is taken is refused alone, for the same reason.
func (d *gatewayDraft) claimForSets(claims []claim) []claim {
	for _, set := range d.sets {
		for _, listener := range set.listeners {
			if listener.refused.any() {
				continue
			}
			wanted := d.claimsOf([]*listenerDraft{listener})
			for _, want := range wanted {
				if taken := findClaim(claims, want); taken != nil && taken.owner != d {
					listener.refused.add(gatewayv1.ListenerReasonPortUnavailable, "port: %s is in use by another Gateway", want.address)
				}
			}
			if !listener.refused.any() {
				claims = append(claims, wanted...)
			}
		}
	}
	return claims
}

// claimsOf are the addresses and ports of accepted listeners: also of one whose certificate is missing, so that
// nobody loses an address when the certificate comes.
func (d *gatewayDraft) claimsOf(listeners []*listenerDraft) []claim {
	var wanted []claim
	for _, address := range d.node.Addresses {
		for _, listener := range listeners {
			if listener.refused.any() {
				continue
			}
			want := claim{netip.AddrPortFrom(address, listener.node.Bind), d}
			if !slices.Contains(wanted, want) {
				wanted = append(wanted, want)
			}
		}
	}
	return wanted
}

func findClaim(claims []claim, want claim) *claim {
	for i := range claims {
		if claims[i].address.Port() == want.address.Port() && overlap(claims[i].address.Addr(), want.address.Addr()) {
			return &claims[i]
		}
	}
	return nil
}

// overlap says whether a connection could arrive at both addresses; "::" takes IPv4 too.
func overlap(a, b netip.Addr) bool {
	switch {
	case a == b:
		return true
	case a.IsUnspecified():
		return a.Is6() || b.Is4()
	case b.IsUnspecified():
		return b.Is6() || a.Is4()
	}
	return false
}
