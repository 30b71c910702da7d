package graph

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// touch notes the backends whose ancestors may be other ones, because a route that refers to them changed.
func (r *routes) touch(needs []objectKey) {
	for _, key := range needs {
		if key.kind == kindService || key.kind == kindXBackend {
			r.touched[key] = true
		}
	}
}

// reachedBy are the Gateways whose routes refer to an object.
func (r *routes) reachedBy(key objectKey) map[types.NamespacedName]bool {
	reached := make(map[types.NamespacedName]bool)
	for route := range r.dependents[key] {
		r.addGateways(reached, route)
	}
	return reached
}

func (r *routes) addGateways(reached map[types.NamespacedName]bool, route objectKey) {
	state := r.states[route]
	if state == nil || state.node == nil {
		return
	}
	for _, parent := range state.node.Parents {
		if len(parent.Listeners)+len(parent.Blocked) > 0 {
			reached[parent.Gateway.Key()] = true
		}
	}
}

// sortedGateways are those that are reached, by namespace and name.
func sortedGateways(reached map[types.NamespacedName]bool) []types.NamespacedName {
	var all []types.NamespacedName
	for name, isReached := range reached {
		if isReached {
			all = append(all, name)
		}
	}
	slices.SortFunc(all, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// ancestorRef is a Gateway as a status names it.
func ancestorRef(name types.NamespacedName) gatewayv1.ParentReference {
	group, kind, namespace := gatewayv1.Group(gatewayv1.GroupName), gatewayv1.Kind(kindGateway), gatewayv1.Namespace(name.Namespace)
	return gatewayv1.ParentReference{Group: &group, Kind: &kind, Namespace: &namespace, Name: gatewayv1.ObjectName(name.Name)}
}
