package conditions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// PolicyInvalid says why a policy, or another object that is reported by ancestor, has no effect.
func PolicyInvalid(generation int64, message string) metav1.Condition {
	return isFalse(gatewayv1.PolicyConditionAccepted, gatewayv1.PolicyReasonInvalid, generation, message)
}
