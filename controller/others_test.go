package controller

import (
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/replicas"
)

func TestOnlyReplicasThatTakeTrafficAreAsked(t *testing.T) {
	t.Parallel()
	replica := func(name, ip string, ready bool) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "limpet-system"}}
		pod.Status.PodIP = ip
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "controller"}, {Name: "haproxy", Ready: ready}}
		return pod
	}
	ending := replica("ending", "10.0.0.4", true)
	now := metav1.Now()
	ending.DeletionTimestamp = &now
	s := cluster.Snapshot{Replicas: cluster.NewObjects(
		replica("self", "10.0.0.1", true), replica("ready", "10.0.0.2", true), replica("starting", "10.0.0.3", false), ending,
		replica("without-address", "", true))}
	want := []replicas.Pod{{Name: "ready", Address: netip.MustParseAddr("10.0.0.2")}}
	if got := otherReplicas(s, "self"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
