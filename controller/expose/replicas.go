package expose

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// replica is one of our pods, as an EndpointSlice shows it.
type replica struct {
	pod                *corev1.Pod
	addresses          []netip.Addr
	serving, terminate bool
}

// readReplicas are our pods that have an address and have not ended, by name.
func (c *computation) readReplicas() []replica {
	var all []replica
	for _, pod := range c.snapshot.Replicas.All() {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		one := replica{pod: pod, serving: c.serves(pod), terminate: pod.DeletionTimestamp != nil}
		ips := pod.Status.PodIPs
		if len(ips) == 0 {
			ips = []corev1.PodIP{{IP: pod.Status.PodIP}}
		}
		for _, ip := range ips {
			if address, err := netip.ParseAddr(ip.IP); err == nil {
				one.addresses = append(one.addresses, address.Unmap())
			}
		}
		if len(one.addresses) > 0 {
			all = append(all, one)
		}
	}
	return all
}

// Serves says whether HAProxy in a pod of ours takes traffic. Its own container says so: a controller that crashes beside it
// makes the pod not ready, and takes no traffic away.
func Serves(pod *corev1.Pod, container string) bool {
	return !lost(pod) && slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == container && s.Ready
	})
}

func (c *computation) serves(pod *corev1.Pod) bool { return Serves(pod, c.options.Container) }

// lost says that nobody hears of the pod's node any more. Then what its kubelet said last still stands, only the pod as a
// whole is marked as not ready.
func lost(pod *corev1.Pod) bool {
	ready, containers := corev1.ConditionUnknown, corev1.ConditionUnknown
	for _, condition := range pod.Status.Conditions {
		switch condition.Type {
		case corev1.PodReady:
			ready = condition.Status
		case corev1.ContainersReady:
			containers = condition.Status
		}
	}
	return ready == corev1.ConditionFalse && containers == corev1.ConditionTrue
}

// rank is this replica's place among those that are ready, and how many others there are.
func (c *computation) rank() (place, others int) {
	for _, pod := range c.snapshot.Replicas.All() {
		if pod.Name == c.options.Pod || !c.serves(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		others++
		if pod.Name < c.options.Pod {
			place++
		}
	}
	if own, found := c.snapshot.Replicas.Get(c.options.Namespace, c.options.Pod); !found || !c.serves(own) || own.DeletionTimestamp != nil {
		place = others // A replica that does not serve comes after all that do.
	}
	return place, others
}

// endpoints are our pods in one family, by name. If none of them serves, those that did according to the slice that is
// there go on as long as their pods exist: what we see may be wrong, and to send traffic where it may be served is better
// than to send it nowhere.
func (c *computation) endpoints(family discoveryv1.AddressType, before []discoveryv1.Endpoint) []discoveryv1.Endpoint {
	var all []discoveryv1.Endpoint
	serving := slices.ContainsFunc(c.replicas, func(r replica) bool { return r.serving })
	for _, r := range c.replicas {
		at := slices.IndexFunc(r.addresses, func(a netip.Addr) bool { return familyOf(a) == family })
		if at < 0 {
			continue
		}
		serves := r.serving || !serving && served(before, r)
		all = append(all, r.endpoint(r.addresses[at], serves))
	}
	slices.SortFunc(all, func(a, b discoveryv1.Endpoint) int { return cmp.Compare(a.TargetRef.Name, b.TargetRef.Name) })
	return all
}

func (r replica) endpoint(address netip.Addr, serves bool) discoveryv1.Endpoint {
	ready, terminating := serves && !r.terminate, r.terminate
	endpoint := discoveryv1.Endpoint{
		Addresses:  []string{address.String()},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serves, Terminating: &terminating},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: r.pod.Namespace, Name: r.pod.Name, UID: r.pod.UID},
	}
	if r.pod.Spec.NodeName != "" {
		endpoint.NodeName = &r.pod.Spec.NodeName
	}
	return endpoint
}

// served says whether a replica served according to the endpoints that are there.
func served(before []discoveryv1.Endpoint, r replica) bool {
	return slices.ContainsFunc(before, func(e discoveryv1.Endpoint) bool {
		return e.TargetRef != nil && e.TargetRef.UID == r.pod.UID && e.Conditions.Serving != nil && *e.Conditions.Serving
	})
}

func familyOf(address netip.Addr) discoveryv1.AddressType {
	if address.Is4() {
		return discoveryv1.AddressTypeIPv4
	}
	return discoveryv1.AddressTypeIPv6
}

// families are those in which our pods have addresses.
func (c *computation) families() []discoveryv1.AddressType {
	var all []discoveryv1.AddressType
	for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		if slices.ContainsFunc(c.replicas, func(r replica) bool {
			return slices.ContainsFunc(r.addresses, func(a netip.Addr) bool { return familyOf(a) == family })
		}) {
			all = append(all, family)
		}
	}
	return all
}
