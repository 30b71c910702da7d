package conditions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// RouteReasonHostnameConflict is a reason of our own for a route that is not accepted: the specification has none for a
// hostname that a route of the other kind has already.
const RouteReasonHostnameConflict gatewayv1.RouteConditionReason = "HostnameConflict"

// IsPartiallyInvalid tells the condition that only an accepted route may have.
func IsPartiallyInvalid(c metav1.Condition) bool {
	return c.Type == string(gatewayv1.RouteConditionPartiallyInvalid)
}

// RouteAccepted says that at least one listener of the parent takes at least one rule of the route.
func RouteAccepted(generation int64) metav1.Condition {
	return isTrue(gatewayv1.RouteConditionAccepted, gatewayv1.RouteReasonAccepted, generation, "The route is accepted.")
}

// RouteNotAccepted says why the parent does not take the route.
func RouteNotAccepted(generation int64, reason gatewayv1.RouteConditionReason, message string) metav1.Condition {
	return isFalse(gatewayv1.RouteConditionAccepted, reason, generation, message)
}

// RoutePartiallyInvalid says which rules are dropped while others are served. It must not be set when it is not so, and
// the specification demands the prefix for an implementation that drops rules.
func RoutePartiallyInvalid(generation int64, message string) metav1.Condition {
	return isTrue(gatewayv1.RouteConditionPartiallyInvalid, gatewayv1.RouteReasonUnsupportedValue, generation,
		"Dropped Rule: "+message)
}

// RouteResolvedRefs says that all references of the route lead somewhere.
func RouteResolvedRefs(generation int64) metav1.Condition {
	return isTrue(gatewayv1.RouteConditionResolvedRefs, gatewayv1.RouteReasonResolvedRefs, generation,
		"All references are resolved.")
}

// RouteRefsNotResolved says which reference cannot be used; its share of the requests is answered with 500.
func RouteRefsNotResolved(generation int64, reason gatewayv1.RouteConditionReason, message string) metav1.Condition {
	return isFalse(gatewayv1.RouteConditionResolvedRefs, reason, generation, message)
}
