package cluster

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What Limpet creates bears these labels, so that it can be kept apart from what users create.
const (
	// LabelManagedBy stands on Services.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is its value.
	ManagedBy = "limpet"
	// SliceManagedBy is the value of discoveryv1.LabelManagedBy on EndpointSlices. That label, because the labels of a Service
	// are copied to the slices that Kubernetes makes of it.
	SliceManagedBy = "limpet.dev"
)

// Exposed are the Services and EndpointSlices that Limpet made: apart from users', so that no route leads to one of them
// and nothing of them is taken for a backend. Labels may be edited by whoever may edit the object: they say where an
// object is looked for, never whose it is. That is for ownerReferences to say.
type Exposed struct {
	Services       Objects[*corev1.Service]
	EndpointSlices Objects[*discoveryv1.EndpointSlice]
}

// Same says that nothing of it changed. It costs nothing.
func (e Exposed) Same(other Exposed) bool {
	return e.Services.Same(other.Services) && e.EndpointSlices.Same(other.EndpointSlices)
}

// IsExposed says whether a Service or EndpointSlice belongs in Exposed. The slices that Kubernetes makes of an XBackend's
// Service do not: they are where its endpoints come from.
func IsExposed(object metav1.Object) bool {
	if _, is := object.(*discoveryv1.EndpointSlice); is {
		return object.GetLabels()[discoveryv1.LabelManagedBy] == SliceManagedBy
	}
	return object.GetLabels()[LabelManagedBy] == ManagedBy
}
