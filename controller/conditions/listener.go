package conditions

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// ListenerAccepted says that the listener is valid in itself.
func ListenerAccepted(generation int64) metav1.Condition {
	return isTrue(gatewayv1.ListenerConditionAccepted, gatewayv1.ListenerReasonAccepted, generation,
		"The listener is valid.")
}

// ListenerNotAccepted says why the listener cannot be served.
func ListenerNotAccepted(generation int64, reason gatewayv1.ListenerConditionReason, message string) metav1.Condition {
	return isFalse(gatewayv1.ListenerConditionAccepted, reason, generation, message)
}

// ListenerNoConflicts says that the listener can be told from all others of the Gateway.
func ListenerNoConflicts(generation int64) metav1.Condition {
	return isFalse(gatewayv1.ListenerConditionConflicted, gatewayv1.ListenerReasonNoConflicts, generation,
		"The listener is distinct from all others.")
}

// ListenerConflicted says which listeners cannot be told from this one; the specification refuses all of them.
func ListenerConflicted(generation int64, reason gatewayv1.ListenerConditionReason, message string) metav1.Condition {
	return isTrue(gatewayv1.ListenerConditionConflicted, reason, generation, message)
}

// ListenerResolvedRefs says that the listener's certificates and route kinds are all usable.
func ListenerResolvedRefs(generation int64) metav1.Condition {
	return isTrue(gatewayv1.ListenerConditionResolvedRefs, gatewayv1.ListenerReasonResolvedRefs, generation,
		"All references are resolved.")
}

// ListenerRefsNotResolved says which certificate or route kind cannot be used; the others still are.
func ListenerRefsNotResolved(generation int64, reason gatewayv1.ListenerConditionReason, message string) metav1.Condition {
	return isFalse(gatewayv1.ListenerConditionResolvedRefs, reason, generation, message)
}

// ListenerOverlappingHostnames says which TLS listeners on the same port have hostnames in common with this one. It must
// not be set when it is not so.
func ListenerOverlappingHostnames(generation int64, message string) metav1.Condition {
	return isTrue(gatewayv1.ListenerConditionOverlappingTLSConfig, gatewayv1.ListenerReasonOverlappingHostnames,
		generation, message)
}

// ListenerProgrammed says that HAProxy serves the listener, with a warning if there is one.
func ListenerProgrammed(generation int64, warning string) metav1.Condition {
	return isTrue(gatewayv1.ListenerConditionProgrammed, gatewayv1.ListenerReasonProgrammed, generation,
		strings.TrimSpace("HAProxy serves the listener. "+warning))
}

// ListenerNotProgrammed says why HAProxy does not serve the listener.
func ListenerNotProgrammed(generation int64, reason gatewayv1.ListenerConditionReason, message string) metav1.Condition {
	return isFalse(gatewayv1.ListenerConditionProgrammed, reason, generation, message)
}

// ListenerProgrammedPending says that it is not known yet whether HAProxy serves the listener.
func ListenerProgrammedPending(generation int64, message string) metav1.Condition {
	return isUnknown(gatewayv1.ListenerConditionProgrammed, gatewayv1.ListenerReasonPending, generation, message)
}
