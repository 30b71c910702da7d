package graph

import (
	"cmp"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/conditions"
)

const (
	groupExperimental = "gateway.networking.x-k8s.io"
	groupLimpet       = "limpet.dev"
)

// others are the objects of the Gateway API's kinds, and of our own, that Limpet does not serve yet. They are read
// without types: whatever they hold, a condition must come of it.
type others struct {
	// list is what the rest was made of.
	list     []*unstructured.Unstructured
	relevant []*unstructured.Unstructured

	nodes     []*Other
	last      map[otherKey]*Other
	unclaimed []*Unclaimed
}

type otherKey struct{ apiVersion, kind, namespace, name string }

// newOthers sorts out what matters. It costs nothing if the list is the one of the last time.
func newOthers(list []*unstructured.Unstructured, last *others) *others {
	if len(list) == len(last.list) && (len(list) == 0 || &list[0] == &last.list[0]) {
		return last
	}
	fresh := &others{list: list, last: last.last}
	for _, object := range list {
		if object == nil || !slices.Contains([]string{gatewayv1.GroupName, groupExperimental, groupLimpet}, groupOf(object)) {
			continue
		}
		fresh.relevant = append(fresh.relevant, object)
	}
	return fresh
}

func groupOf(object *unstructured.Unstructured) string { return object.GroupVersionKind().Group }

// otherInput is what other objects are read against.
type otherInput struct {
	gateways map[types.NamespacedName]*Gateway
	sets     map[types.NamespacedName]*ListenerSet
	routes   *routes
}

// read makes the nodes again; those that are equal to the last time's are taken over.
func (o *others) read(in *otherInput) {
	fresh := make(map[otherKey]*Other, len(o.relevant))
	o.nodes, o.unclaimed = nil, nil
	for _, object := range o.relevant {
		node := in.newOther(object)
		if len(node.Parents) == 0 {
			o.unclaimed = append(o.unclaimed, &Unclaimed{Kind: node.Kind, Namespace: node.Namespace, Name: node.Name,
				Message: "it has nothing to do with a Gateway of ours; its kind is not served yet."})
			continue
		}
		key := otherKey{node.APIVersion, node.Kind, node.Namespace, node.Name}
		if last := o.last[key]; last != nil && reflect.DeepEqual(last, node) {
			node = last
		}
		fresh[key] = node
		o.nodes = append(o.nodes, node)
	}
	o.last = fresh
}

// newOther says what a kind that is not served means for us. The kinds are told apart by how they refer to others, so
// that one which a later version of the API brings is not met with silence.
func (in *otherInput) newOther(object *unstructured.Unstructured) *Other {
	node := &Other{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		Generation: generationOf(object),
	}
	parents := entries(field(object.Object, "spec", "parentRefs"))
	targets := slices.Concat(entries(field(object.Object, "spec", "targetRefs")), entry(field(object.Object, "spec", "targetRef")))
	switch {
	case len(parents) > 0:
		in.readParents(node, parents)
	case len(targets) > 0:
		in.readTargets(node, targets)
	case node.Kind == kindXBackend:
		in.addAncestors(node, in.routes.reachedBy(objectKey{kindXBackend, node.Namespace, node.Name}))
	}
	return node
}

// readParents is for kinds of routes. No listener takes them: the kind is in none's supportedKinds.
func (in *otherInput) readParents(node *Other, refs []map[string]any) {
	for _, source := range refs {
		ref := refOf(source)
		listeners, parent, ours := in.listenersOf(node.Namespace, ref)
		if !ours {
			continue
		}
		accepted := conditions.RouteNotAccepted(node.Generation, gatewayv1.RouteReasonNotAllowedByListeners,
			node.Kind+"s are not served yet: no listener takes them.")
		if !slices.ContainsFunc(listeners, func(l *Listener) bool { return selects(&ref, l) }) {
			accepted = conditions.RouteNotAccepted(node.Generation, gatewayv1.RouteReasonNoMatchingParent,
				parent+" has no listener"+describeRef(&ref)+"; "+node.Kind+"s are not served yet either.")
		}
		node.Parents = append(node.Parents, OtherParent{Ref: ref, Conditions: conditionList(accepted)})
	}
}

// listenersOf are those of a parent, with its name; false if it is not ours.
func (in *otherInput) listenersOf(namespace string, ref gatewayv1.ParentReference) ([]*Listener, string, bool) {
	name := gatewayName(namespace, ref)
	if set := in.sets[name]; set != nil && isListenerSet(ref) {
		return set.Listeners, kindListenerSet + " " + name.String(), true
	}
	if gateway := in.gateways[name]; gateway != nil && isGateway(ref) {
		return gateway.Listeners, kindGateway + " " + name.String(), true
	}
	return nil, "", false
}

// readTargets is for policies: the ancestors are the Gateways of ours that reach a target.
func (in *otherInput) readTargets(node *Other, targets []map[string]any) {
	reached := make(map[types.NamespacedName]bool)
	for _, target := range targets {
		kind, namespace := text(target["kind"]), cmp.Or(text(target["namespace"]), node.Namespace)
		key := objectKey{kind, namespace, text(target["name"])}
		name := types.NamespacedName{Namespace: namespace, Name: key.name}
		switch kind {
		case kindGateway:
			reached[name] = in.gateways[name] != nil
		case KindHTTPRoute, KindGRPCRoute, KindTLSRoute, KindTCPRoute:
			in.routes.addGateways(reached, key)
		default:
			for gateway := range in.routes.reachedBy(key) {
				reached[gateway] = true
			}
		}
	}
	in.addAncestors(node, reached)
}

func (in *otherInput) addAncestors(node *Other, reached map[types.NamespacedName]bool) {
	message := node.Kind + " is not built yet: the object has no effect."
	for _, name := range sortedGateways(reached) {
		node.Parents = append(node.Parents, OtherParent{
			Ref: ancestorRef(name), Conditions: conditionList(conditions.PolicyInvalid(node.Generation, message)),
		})
	}
	node.Parents = node.Parents[:min(len(node.Parents), maxAncestors)]
}
