package expose

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/graph"
)

// surplus deletes what a Gateway of ours needs no more, and all of a Gateway that went over to another class. What belonged to
// a Gateway that is gone, Kubernetes deletes. Where a class of ours is gone, everything stays: with the class it comes back,
// and nobody's address is lost by a mistake.
func (c *computation) surplus() {
	left := make(map[types.UID]bool)
	for _, gateway := range c.snapshot.Gateways.All() {
		left[gateway.UID] = true
	}
	for _, gateway := range c.graph.Gateways {
		delete(left, gateway.Source.UID)
	}
	for _, service := range c.snapshot.Exposed.Services.All() {
		if owner := c.surplusOf(service, "Service", left); owner != "" {
			c.delete(service, owner)
		}
	}
	for _, slice := range c.snapshot.Exposed.EndpointSlices.All() {
		if owner := c.surplusOf(slice, "EndpointSlice", left); owner != "" {
			c.delete(slice, owner)
		}
	}
}

// surplusOf is the owner of an object that must go, "" for one that stays.
func (c *computation) surplusOf(object metav1.Object, kind string, left map[types.UID]bool) types.UID {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != "Gateway" || object.GetDeletionTimestamp() != nil {
		return ""
	}
	if keep := c.keep[owner.UID]; keep != nil && !keep[kind+" "+object.GetName()] {
		return owner.UID
	}
	if left[owner.UID] && c.isOurClass(object.GetLabels()[gatewayv1.GatewayClassNameLabelKey]) {
		return owner.UID
	}
	return ""
}

func (c *computation) isOurClass(label string) bool {
	for _, class := range c.graph.Classes {
		if graph.LabelValue(class.Source.Name) == label {
			return true
		}
	}
	return false
}

func (c *computation) delete(object metav1.Object, owner types.UID) {
	meta := metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}
	change := Change{Verb: Delete, Owner: owner}
	switch object.(type) {
	case *corev1.Service:
		change.Object = &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta}
	case *discoveryv1.EndpointSlice:
		change.Object = &discoveryv1.EndpointSlice{TypeMeta: metav1.TypeMeta{
			APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"}, ObjectMeta: meta}
	}
	c.change(change)
}
