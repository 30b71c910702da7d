package conditions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// GatewayClassAccepted says that Gateways of the class are served.
func GatewayClassAccepted(generation int64) metav1.Condition {
	return isTrue(gatewayv1.GatewayClassConditionStatusAccepted, gatewayv1.GatewayClassReasonAccepted, generation,
		"Gateways of this class are served by Limpet.")
}

// GatewayClassInvalidParameters says what is wrong with parametersRef.
func GatewayClassInvalidParameters(generation int64, message string) metav1.Condition {
	return isFalse(gatewayv1.GatewayClassConditionStatusAccepted, gatewayv1.GatewayClassReasonInvalidParameters,
		generation, message)
}

// GatewayClassSupportedVersion says that the Gateway API's version is one that Limpet knows.
func GatewayClassSupportedVersion(generation int64) metav1.Condition {
	return isTrue(gatewayv1.GatewayClassConditionStatusSupportedVersion, gatewayv1.GatewayClassReasonSupportedVersion,
		generation, "Limpet is built for Gateway API v1.7.")
}
