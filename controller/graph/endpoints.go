package graph

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// candidate is an endpoint as a slice shows it.
type candidate struct {
	Endpoint
	ready bool
}

// readEndpoints joins the slices of a Service for the port of that name.
func readEndpoints(all []*discoveryv1.EndpointSlice, port string) []Endpoint {
	var found []candidate
	for _, slice := range all {
		if slice.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		if number, exists := slicePort(slice, port); exists {
			found = appendCandidates(found, slice, number)
		}
	}
	return newEndpoints(oncePerAddress(oncePerPod(found)))
}

// slicePort finds the number behind a Service's port. Slices repeat the Service port's name, and hold the target port as
// a number even if the Service names it, or has no selector or no address of its own.
func slicePort(slice *discoveryv1.EndpointSlice, name string) (uint16, bool) {
	for _, port := range slice.Ports {
		if valueOr(port.Name, "") != name || valueOr(port.Protocol, corev1.ProtocolTCP) != corev1.ProtocolTCP {
			continue
		}
		if number := valueOr(port.Port, 0); number > 0 && number <= 65535 {
			return uint16(number), true
		}
	}
	return 0, false
}

// unusable says what of a slice is not used. Addresses that are DNS names have no defined meaning, and a gateway that
// resolves names of others' choosing can be led anywhere.
func unusable(service *corev1.Service, slice *discoveryv1.EndpointSlice) []string {
	if slice.AddressType == discoveryv1.AddressTypeFQDN {
		return []string{fmt.Sprintf("EndpointSlice %s: addressType FQDN is not used", slice.Name)}
	}
	if service == nil {
		return nil
	}
	var all []string
	for _, port := range slice.Ports {
		name, number := valueOr(port.Name, ""), valueOr(port.Port, 0)
		switch {
		case !hasTCPPort(service, name):
		case valueOr(port.Protocol, corev1.ProtocolTCP) != corev1.ProtocolTCP:
			all = append(all, fmt.Sprintf("EndpointSlice %s: port %q is %s, but the Service's is TCP", slice.Name, name, *port.Protocol))
		case port.Port == nil:
			all = append(all, fmt.Sprintf("EndpointSlice %s: port %q has no number", slice.Name, name))
		case number < 1 || number > 65535:
			all = append(all, fmt.Sprintf("EndpointSlice %s: %d is no port", slice.Name, number))
		}
	}
	return all
}

func appendCandidates(found []candidate, slice *discoveryv1.EndpointSlice, port uint16) []candidate {
	for i := range slice.Endpoints {
		if candidate, usable := newCandidate(slice.Namespace, &slice.Endpoints[i], port); usable {
			found = append(found, candidate)
		}
	}
	return found
}

// newCandidate reads one endpoint. Only its first address has a meaning. Absent conditions stand for ready and serving,
// as the API documents them; terminating changes nothing for an endpoint that still serves.
func newCandidate(namespace string, endpoint *discoveryv1.Endpoint, port uint16) (candidate, bool) {
	ready := valueOr(endpoint.Conditions.Ready, true)
	if !ready && !valueOr(endpoint.Conditions.Serving, true) || len(endpoint.Addresses) == 0 {
		return candidate{}, false
	}
	address, err := netip.ParseAddr(endpoint.Addresses[0])
	if err != nil || address.Zone() != "" || address.IsUnspecified() || address.IsMulticast() {
		return candidate{}, false
	}
	result := candidate{ready: ready, Endpoint: Endpoint{Address: netip.AddrPortFrom(address.Unmap(), port)}}
	if ref := endpoint.TargetRef; ref != nil && (ref.Kind == "Pod" || ref.Kind == "") {
		result.PodUID = ref.UID
		if ref.Name != "" {
			result.Pod = types.NamespacedName{Namespace: cmp.Or(ref.Namespace, namespace), Name: ref.Name}
		}
	}
	return result, true
}

func (c candidate) hasPod() bool { return c.PodUID != "" || c.Pod.Name != "" }

// byIdentity is the order in which a Backend lists its endpoints.
func byIdentity(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(a.PodUID, b.PodUID),
		cmp.Compare(a.Pod.Namespace, b.Pod.Namespace),
		cmp.Compare(a.Pod.Name, b.Pod.Name),
		a.Address.Compare(b.Address),
	)
}

// better is the order of preference between two entries for one pod or one address: the readiest, then IPv4, then the
// lowest. Readiness first, because the slices of a dual-stack pod are not updated at the same time.
func better(a, b candidate) int {
	return cmp.Or(compareBool(a.ready, b.ready), compareBool(a.Address.Addr().Is4(), b.Address.Addr().Is4()),
		a.Address.Compare(b.Address))
}

// compareBool puts true first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// oncePerPod keeps the best entry of each pod: a dual-stack pod is in two slices, and one that moves between slices may
// be in both for a moment. Endpoints without a pod are told apart by address.
func oncePerPod(all []candidate) []candidate {
	samePod := func(a, b candidate) int {
		if a.PodUID != "" || b.PodUID != "" {
			return cmp.Compare(a.PodUID, b.PodUID)
		}
		return cmp.Or(cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name))
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(samePod(a, b), better(a, b)) })
	return slices.CompactFunc(all, func(a, b candidate) bool { return a.hasPod() && samePod(a, b) == 0 })
}

// oncePerAddress keeps the best entry of each address: two pods share one while the new pod has taken over the address
// of one that is not quite gone.
func oncePerAddress(all []candidate) []candidate {
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(a.Address.Compare(b.Address), compareBool(a.ready, b.ready),
			compareBool(a.hasPod(), b.hasPod()), byIdentity(a, b))
	})
	return slices.CompactFunc(all, func(a, b candidate) bool { return a.Address == b.Address })
}

// newEndpoints decides who takes new sessions: those that are ready, or all if none is. A Service whose last pods are
// terminating but serving still answers.
func newEndpoints(all []candidate) []Endpoint {
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, byIdentity)
	anyReady := slices.ContainsFunc(all, func(c candidate) bool { return c.ready })
	endpoints := make([]Endpoint, len(all))
	for i, c := range all {
		endpoints[i] = c.Endpoint
		endpoints[i].Draining = anyReady && !c.ready
	}
	return endpoints
}
