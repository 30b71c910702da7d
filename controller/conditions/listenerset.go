package conditions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// ListenerSetReasonParentNotProgrammed is a reason that the specification lists and has no constant for.
const ListenerSetReasonParentNotProgrammed gatewayv1.ListenerSetConditionReason = "ParentNotProgrammed"

// ListenerSetAccepted says that the ListenerSet's listeners are all added to its Gateway.
func ListenerSetAccepted(generation int64) metav1.Condition {
	return isTrue(gatewayv1.ListenerSetConditionAccepted, gatewayv1.ListenerSetReasonAccepted, generation,
		"The ListenerSet and all its listeners are valid.")
}

// ListenerSetSomeListenersNotValid says that the ListenerSet is accepted for some of its listeners only.
func ListenerSetSomeListenersNotValid(generation int64, message string) metav1.Condition {
	return isTrue(gatewayv1.ListenerSetConditionAccepted, gatewayv1.ListenerSetReasonListenersNotValid, generation, message)
}

// ListenerSetNotAccepted says why nothing of the ListenerSet is added to its Gateway.
func ListenerSetNotAccepted(generation int64, reason gatewayv1.ListenerSetConditionReason, message string) metav1.Condition {
	return isFalse(gatewayv1.ListenerSetConditionAccepted, reason, generation, message)
}

// ListenerSetProgrammed says that HAProxy serves the ListenerSet.
func ListenerSetProgrammed(generation int64) metav1.Condition {
	return isTrue(gatewayv1.ListenerSetConditionProgrammed, gatewayv1.ListenerSetReasonProgrammed, generation,
		"HAProxy serves the ListenerSet.")
}

// ListenerSetNotProgrammed says why HAProxy serves nothing of the ListenerSet.
func ListenerSetNotProgrammed(generation int64, reason gatewayv1.ListenerSetConditionReason, message string) metav1.Condition {
	return isFalse(gatewayv1.ListenerSetConditionProgrammed, reason, generation, message)
}
