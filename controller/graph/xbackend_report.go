package graph

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/limpet-gateway/limpet/controller/conditions"
)

// maxXBackendAncestors is the API's limit.
const maxXBackendAncestors = 32

// report says what came of an XBackend at each Gateway that reaches it through a route.
func (x *xbackend) report(routes *routes) *Reported {
	key := objectKey{kindXBackend, x.source.Namespace, x.source.Name}
	collisions := routes.collisionsOf(key)
	return &Reported{
		APIVersion: gatewayxv1alpha1.GroupVersion.String(), Kind: kindXBackend, Source: x.source,
		Ancestors: ancestorsOf(routes.reachedBy(key), maxXBackendAncestors, func(gateway types.NamespacedName) []metav1.Condition {
			return x.conditions(collisions[gateway])
		}),
	}
}

func (x *xbackend) conditions(collisions []string) []metav1.Condition {
	generation := x.source.Generation
	all := []metav1.Condition{x.accepted(collisions)}
	switch {
	case x.refs.any():
		all = append(all, conditions.PolicyRefsNotResolved(generation, x.refs.reason(), x.refs.text()))
	case len(x.needs) > 0:
		all = append(all, conditions.PolicyResolvedRefs(generation))
	}
	return all
}

func (x *xbackend) accepted(collisions []string) metav1.Condition {
	var wrong policyProblems
	wrong = append(wrong, x.invalid...)
	wrong = append(wrong, x.unsupported...)
	if x.demandsTLS && x.tls == nil && x.refs.any() {
		reason := gatewayv1.BackendTLSPolicyReasonNoValidCACertificate
		if x.refs.reason() == reasonInvalidClientCertificate {
			reason = reasonInvalidClientCertificate
		}
		wrong.add(reason, "nothing is sent to it, which is answered with 503: %s", strings.TrimSuffix(x.refs.text(), "."))
	}
	for _, collision := range collisions {
		wrong.add(gatewayv1.PolicyReasonConflicted, "%s", collision)
	}
	if wrong.any() {
		return conditions.PolicyNotAccepted(x.source.Generation, wrong.reason(), wrong.text())
	}
	return conditions.PolicyAccepted(x.source.Generation, "The backend is accepted.")
}

// collision is an XBackend whose session has the name of another one's in the same split.
type collision struct {
	loser   types.NamespacedName
	message string
}

// collisionsOf says, for each Gateway, in which of its routes an XBackend gets no session.
func (r *routes) collisionsOf(key objectKey) map[types.NamespacedName][]string {
	var all map[types.NamespacedName][]string
	name := types.NamespacedName{Namespace: key.namespace, Name: key.name}
	for route := range r.dependents[key] {
		state := r.states[route]
		if state == nil || state.rules == nil {
			continue
		}
		for _, collision := range state.rules.collisions {
			if collision.loser != name {
				continue
			}
			reached := make(map[types.NamespacedName]bool)
			r.addGateways(reached, route)
			for gateway := range reached {
				if all == nil {
					all = make(map[types.NamespacedName][]string)
				}
				all[gateway] = append(all[gateway], collision.message)
			}
		}
	}
	for _, messages := range all {
		slices.Sort(messages)
	}
	return all
}

// reportXBackends says anew what came of those that changed, and of those to which a route leads or led that changed.
func (b *Builder) reportXBackends(edit *reportsEdit, reported map[types.NamespacedName]bool) {
	dirty := maps.Clone(reported)
	for key := range b.routes.touched {
		if key.kind == kindXBackend {
			dirty[types.NamespacedName{Namespace: key.namespace, Name: key.name}] = true
		}
	}
	for name := range dirty {
		if node, found := b.xbackends.table.Get(serviceKey(name.Namespace, name.Name)); found {
			edit.set(node.report(b.routes))
		} else {
			edit.drop(objectKey{kindXBackend, name.Namespace, name.Name})
		}
	}
}
