package expose

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
)

// xbackends see to it that Kubernetes makes EndpointSlices of the Pods that an XBackend selects: by a headless Service, as the
// API's notes for implementers say. It has a generated name, so that nobody can take it, and bears the XBackend's name in
// a label that Kubernetes copies to the slices, which is how graph finds them.
//
// It is made for XBackends that a Gateway of ours reaches: others are other controllers' business.
func (c *computation) xbackends() {
	reached := make(map[types.UID]bool)
	for _, reported := range c.graph.Reported {
		reached[reported.Source.GetUID()] = true
	}
	byOwner := make(map[types.UID][]*corev1.Service)
	for _, service := range c.snapshot.Exposed.Services.All() {
		for _, owner := range service.OwnerReferences {
			byOwner[owner.UID] = append(byOwner[owner.UID], service)
		}
	}
	for _, source := range c.snapshot.XBackends.All() {
		c.xbackend(source, byOwner[source.UID], reached[source.UID])
	}
}

func (c *computation) xbackend(source *gatewayxv1alpha1.XBackend, all []*corev1.Service, reached bool) {
	selects := source.Spec.Type == gatewayxv1alpha1.BackendTypeEndpointSelector && source.Spec.EndpointSelector != nil &&
		len(source.Spec.EndpointSelector.MatchLabels) > 0
	slices.SortFunc(all, func(a, b *corev1.Service) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	live := slices.DeleteFunc(slices.Clone(all), func(s *corev1.Service) bool { return s.DeletionTimestamp != nil })
	var want *corev1.Service
	if selects && source.DeletionTimestamp == nil {
		want = newHeadless(source)
	}
	if want != nil && len(live) == 0 {
		live = c.unlabelled(source)
	}
	switch {
	case want == nil:
	case len(live) > 0:
		want.Name, want.GenerateName = live[0].Name, ""
		if serviceDiffers(live[0], want) {
			c.change(Change{Verb: Put, Object: want, Owner: source.UID})
		}
		live = live[1:] // Of several, the oldest is the one.
	case reached:
		c.change(Change{Verb: PutOne, Object: want, Owner: source.UID})
	}
	for _, service := range live {
		c.delete(service, source.UID)
	}
}

// unlabelled are the XBackend's Services whose labels somebody took off.
func (c *computation) unlabelled(source *gatewayxv1alpha1.XBackend) []*corev1.Service {
	var all []*corev1.Service
	for _, service := range c.snapshot.Services.Namespace(source.Namespace) {
		if ours(service, source.UID) && service.DeletionTimestamp == nil {
			all = append(all, service)
		}
	}
	return all
}

func newHeadless(source *gatewayxv1alpha1.XBackend) *corev1.Service {
	isController := true
	selector := make(map[string]string)
	for key, value := range source.Spec.EndpointSelector.MatchLabels {
		selector[string(key)] = string(value)
	}
	port := int32(source.Spec.Port.Number)
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: source.Namespace, GenerateName: label(source.Name, maxLabel-6) + "-",
			Labels: map[string]string{
				cluster.LabelManagedBy: cluster.ManagedBy,
				graph.LabelXBackend:    graph.LabelValue(source.Name),
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: gatewayxv1alpha1.GroupVersion.String(), Kind: "XBackend", Name: source.Name, UID: source.UID, Controller: &isController,
			}},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone, Selector: selector,
			Ports: []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromInt32(port)}},
		},
	}
}
