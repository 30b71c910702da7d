package controller

import (
	"net/netip"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/expose"
	"github.com/limpet-gateway/limpet/controller/replicas"
)

// otherReplicas are those besides this one that are ready for traffic: the ones that clients are sent to.
func otherReplicas(s cluster.Snapshot, self string) []replicas.Pod {
	var all []replicas.Pod
	for _, pod := range s.Replicas.All() {
		address, err := netip.ParseAddr(pod.Status.PodIP)
		if pod.Name == self || pod.DeletionTimestamp != nil || err != nil || !expose.Serves(pod, expose.HAProxyContainer) {
			continue
		}
		all = append(all, replicas.Pod{Name: pod.Name, Address: address})
	}
	return all
}
