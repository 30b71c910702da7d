package conditions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// GatewayAccepted says that all listeners of the Gateway are valid.
func GatewayAccepted(generation int64) metav1.Condition {
	return isTrue(gatewayv1.GatewayConditionAccepted, gatewayv1.GatewayReasonAccepted, generation,
		"The Gateway and all its listeners are valid.")
}

// GatewaySomeListenersNotValid says that the Gateway is accepted for some of its listeners only.
func GatewaySomeListenersNotValid(generation int64, message string) metav1.Condition {
	return isTrue(gatewayv1.GatewayConditionAccepted, gatewayv1.GatewayReasonListenersNotValid, generation, message)
}

// GatewayNotAccepted says why nothing of the Gateway can be served.
func GatewayNotAccepted(generation int64, reason gatewayv1.GatewayConditionReason, message string) metav1.Condition {
	return isFalse(gatewayv1.GatewayConditionAccepted, reason, generation, message)
}

// GatewayResolvedRefs says that the Gateway's own references and those of its listeners lead somewhere.
func GatewayResolvedRefs(generation int64) metav1.Condition {
	return isTrue(gatewayv1.GatewayConditionResolvedRefs, gatewayv1.GatewayReasonResolvedRefs, generation,
		"All references are resolved.")
}

// GatewayRefsNotResolved says which reference leads nowhere; it changes neither Accepted nor Programmed.
func GatewayRefsNotResolved(generation int64, reason gatewayv1.GatewayConditionReason, message string) metav1.Condition {
	return isFalse(gatewayv1.GatewayConditionResolvedRefs, reason, generation, message)
}

// GatewayInsecureFrontendValidation says where clients are served whose certificate is not valid. It must not be set when it
// is not so.
func GatewayInsecureFrontendValidation(generation int64, message string) metav1.Condition {
	return isTrue(gatewayv1.GatewayConditionInsecureFrontendValidationMode, gatewayv1.GatewayReasonConfigurationChanged,
		generation, message)
}

// GatewayProgrammed says that HAProxy serves the Gateway.
func GatewayProgrammed(generation int64) metav1.Condition {
	return isTrue(gatewayv1.GatewayConditionProgrammed, gatewayv1.GatewayReasonProgrammed, generation,
		"HAProxy serves the Gateway.")
}

// GatewayNotProgrammed says why HAProxy does not serve the Gateway.
func GatewayNotProgrammed(generation int64, reason gatewayv1.GatewayConditionReason, message string) metav1.Condition {
	return isFalse(gatewayv1.GatewayConditionProgrammed, reason, generation, message)
}

// GatewayProgrammedPending says that it is not known yet whether HAProxy serves the Gateway.
func GatewayProgrammedPending(generation int64, message string) metav1.Condition {
	return isUnknown(gatewayv1.GatewayConditionProgrammed, gatewayv1.GatewayReasonPending, generation, message)
}
