// Package cluster gives the objects that Limpet works from, as a Snapshot: sorted, immutable lists by kind.
//
// Files go in, or an API server's events, Snapshots come out, each a complete and consistent view. It must never
// say what an object means, and never hand out a Snapshot in which an object was lost because another one was broken.
package cluster

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
	gatewayxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	limpetv1alpha1 "github.com/limpet-gateway/limpet/api/v1alpha1"
)

// Snapshot is every object that Limpet reads, at one moment. It is a value; what it holds must not be changed.
type Snapshot struct {
	GatewayClasses  Objects[*gatewayv1.GatewayClass]
	Gateways        Objects[*gatewayv1.Gateway]
	ListenerSets    Objects[*gatewayv1.ListenerSet]
	HTTPRoutes      Objects[*gatewayv1.HTTPRoute]
	GRPCRoutes      Objects[*gatewayv1.GRPCRoute]
	TLSRoutes       Objects[*gatewayv1.TLSRoute]
	TCPRoutes       Objects[*gatewayv1.TCPRoute]
	ReferenceGrants Objects[*gatewayv1beta1.ReferenceGrant]
	Namespaces      Objects[*corev1.Namespace]
	Services        Objects[*corev1.Service]
	EndpointSlices  Objects[*discoveryv1.EndpointSlice]
	Secrets         Objects[*corev1.Secret]
	ConfigMaps      Objects[*corev1.ConfigMap]
	// Policies are the BackendTLSPolicies.
	Policies  Objects[*gatewayv1.BackendTLSPolicy]
	XBackends Objects[*gatewayxv1alpha1.XBackend]
	Pods      Objects[*corev1.Pod]
	// Parameters are Limpet's own settings of classes and Gateways.
	Parameters Objects[*limpetv1alpha1.LimpetParameters]
	// Replicas are Limpet's own pods, Ports the table of their container ports (nil before it was ever seen), and Exposed
	// what Limpet made so that clients arrive. All three are empty where objects come from files.
	Replicas Objects[*corev1.Pod]
	Ports    *PortTable
	Exposed  Exposed
	// OldSessions leads from a sessionPersistence of a route to the fields of it that v1.7 of the Gateway API has no more. It
	// changes only together with the route.
	OldSessions map[*gatewayv1.SessionPersistence]*OldSession
	// Others are the objects of all other kinds, as they were written, sorted by kind, namespace and name.
	Others []*unstructured.Unstructured
}

// Objects is an immutable list of objects, sorted by namespace and name.
type Objects[T metav1.Object] struct{ list []T }

// NewObjects sorts the given objects into a list.
func NewObjects[T metav1.Object](objects ...T) Objects[T] {
	list := slices.Clone(objects)
	slices.SortStableFunc(list, compare[T])
	return Objects[T]{list}
}

// All returns the objects in order. The slice must not be changed.
func (o Objects[T]) All() []T { return o.list }

// Namespace returns the objects of a namespace, in order. The slice must not be changed.
func (o Objects[T]) Namespace(namespace string) []T {
	from, _ := o.search(namespace, "")
	to := from
	for to < len(o.list) && o.list[to].GetNamespace() == namespace {
		to++
	}
	return o.list[from:to]
}

// Get returns the object of that name, of the zero T (nil) and false.
func (o Objects[T]) Get(namespace, name string) (T, bool) {
	at, found := o.search(namespace, name)
	if !found {
		var none T
		return none, false
	}
	return o.list[at], true
}

// With returns the list with the object added, or replaced if its name is there already.
func (o Objects[T]) With(object T) Objects[T] {
	at, found := o.search(object.GetNamespace(), object.GetName())
	list := slices.Clone(o.list)
	if found {
		list[at] = object
	} else {
		list = slices.Insert(list, at, object)
	}
	return Objects[T]{list}
}

// Without returns the list without the object of that name.
func (o Objects[T]) Without(namespace, name string) Objects[T] {
	at, found := o.search(namespace, name)
	if !found {
		return o
	}
	return Objects[T]{slices.Delete(slices.Clone(o.list), at, at+1)}
}

// Same says that both are one and the same list: nothing of this kind changed. It costs nothing.
func (o Objects[T]) Same(other Objects[T]) bool {
	return len(o.list) == len(other.list) && (len(o.list) == 0 || &o.list[0] == &other.list[0])
}

func (o Objects[T]) search(namespace, name string) (int, bool) {
	return slices.BinarySearchFunc(o.list, struct{}{}, func(object T, _ struct{}) int {
		return cmp.Or(cmp.Compare(object.GetNamespace(), namespace), cmp.Compare(object.GetName(), name))
	})
}

// Changed names the objects that differ between two Snapshots, as "HTTPRoute default/shop".
func Changed(old, now Snapshot) []string {
	var all []string
	for _, k := range kinds {
		for _, l := range k.lists() {
			l.changed(old, now, func(object metav1.Object, gone bool) {
				name := objectID{kind: k.name, namespace: object.GetNamespace(), name: object.GetName()}.String()
				if gone {
					name += " (gone)"
				}
				all = append(all, name)
			})
		}
	}
	before := map[any]bool{}
	for _, other := range old.Others {
		before[other] = true
	}
	for _, other := range now.Others {
		if !before[other] {
			all = append(all, objectID{kind: other.GetKind(), namespace: other.GetNamespace(), name: other.GetName()}.String())
		}
	}
	return all
}
