package conditions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// PolicyAccepted says that a policy, or another object that is reported by ancestor, has effect.
func PolicyAccepted(generation int64, message string) metav1.Condition {
	return isTrue(gatewayv1.PolicyConditionAccepted, gatewayv1.PolicyReasonAccepted, generation, message)
}

// PolicyNotAccepted says why a policy, or another object that is reported by ancestor, has no effect.
func PolicyNotAccepted(generation int64, reason gatewayv1.PolicyConditionReason, message string) metav1.Condition {
	return isFalse(gatewayv1.PolicyConditionAccepted, reason, generation, message)
}

// PolicyResolvedRefs says that all references of a policy lead somewhere.
func PolicyResolvedRefs(generation int64) metav1.Condition {
	return isTrue(gatewayv1.BackendTLSPolicyConditionResolvedRefs, gatewayv1.BackendTLSPolicyReasonResolvedRefs, generation,
		"All references are resolved.")
}

// PolicyRefsNotResolved says which reference of a policy cannot be used.
func PolicyRefsNotResolved(generation int64, reason gatewayv1.PolicyConditionReason, message string) metav1.Condition {
	return isFalse(gatewayv1.BackendTLSPolicyConditionResolvedRefs, reason, generation, message)
}
