package controller

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// maxChanged is how many objects a message names.
const maxChanged = 10

// changedObjects names objects that differ between two Snapshots.
func changedObjects(old, now cluster.Snapshot) []string {
	var all []string
	all = appendChanged(all, "GatewayClass", old.GatewayClasses, now.GatewayClasses)
	all = appendChanged(all, "Gateway", old.Gateways, now.Gateways)
	all = appendChanged(all, "ListenerSet", old.ListenerSets, now.ListenerSets)
	all = appendChanged(all, "HTTPRoute", old.HTTPRoutes, now.HTTPRoutes)
	all = appendChanged(all, "GRPCRoute", old.GRPCRoutes, now.GRPCRoutes)
	all = appendChanged(all, "ReferenceGrant", old.ReferenceGrants, now.ReferenceGrants)
	all = appendChanged(all, "Namespace", old.Namespaces, now.Namespaces)
	all = appendChanged(all, "Service", old.Services, now.Services)
	all = appendChanged(all, "EndpointSlice", old.EndpointSlices, now.EndpointSlices)
	all = appendChanged(all, "Secret", old.Secrets, now.Secrets)
	all = appendChanged(all, "ConfigMap", old.ConfigMaps, now.ConfigMaps)
	all = appendChanged(all, "BackendTLSPolicy", old.Policies, now.Policies)
	all = appendChanged(all, "XBackend", old.XBackends, now.XBackends)
	all = appendChanged(all, "Pod", old.Pods, now.Pods)
	before := map[any]bool{}
	for _, other := range old.Others {
		before[other] = true
	}
	for _, other := range now.Others {
		if !before[other] {
			all = append(all, fmt.Sprintf("%s %s/%s", other.GetKind(), other.GetNamespace(), other.GetName()))
		}
	}
	if len(all) > maxChanged {
		all = append(all[:maxChanged], fmt.Sprintf("and %d more", len(all)-maxChanged))
	}
	return all
}

func appendChanged[T interface {
	comparable
	metav1.Object
}](all []string, kind string, old, now cluster.Objects[T]) []string {
	if now.Same(old) {
		return all
	}
	for _, object := range now.All() {
		if was, there := old.Get(object.GetNamespace(), object.GetName()); !there || was != object {
			all = append(all, fmt.Sprintf("%s %s/%s", kind, object.GetNamespace(), object.GetName()))
		}
	}
	for _, object := range old.All() {
		if _, still := now.Get(object.GetNamespace(), object.GetName()); !still {
			all = append(all, fmt.Sprintf("%s %s/%s (gone)", kind, object.GetNamespace(), object.GetName()))
		}
	}
	return all
}
