package controller

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/replicas"
)

// haproxyContainer is the container of a replica that takes traffic. Its readiness counts, and never that of the whole pod: a
// controller that crashes takes no traffic away.
const haproxyContainer = "haproxy"

// otherReplicas are those besides this one that are ready for traffic.
func otherReplicas(s cluster.Snapshot, self string) []replicas.Pod {
	var all []replicas.Pod
	for _, pod := range s.Replicas.All() {
		address, err := netip.ParseAddr(pod.Status.PodIP)
		if pod.Name == self || pod.DeletionTimestamp != nil || err != nil || !slices.ContainsFunc(pod.Status.ContainerStatuses, takesTraffic) {
			continue
		}
		all = append(all, replicas.Pod{Name: pod.Name, Address: address})
	}
	return all
}

func takesTraffic(s corev1.ContainerStatus) bool { return s.Name == haproxyContainer && s.Ready }
