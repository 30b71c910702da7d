// Package conditions has a constructor for every condition that Limpet sets.
//
// A generation and a message come in, a condition goes out, with the types and reasons of the Gateway API. Times are left
// empty: only who writes a status knows whether the condition's status changed. It must never decide anything, and a
// message must never hold key material.
package conditions

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// maxMessage keeps a status readable; the API's own limit is 32768 bytes.
const maxMessage = 4096

// TypeIgnored is a condition of our own, set only while it is true: the object is served as if a field that it has were
// not there, because Limpet does not honour that field yet and leaving it out hurts nobody.
const TypeIgnored = "limpet.dev/Ignored"

// types are those of all conditions that have a constructor here.
var types = []string{
	string(gatewayv1.GatewayConditionAccepted),
	string(gatewayv1.GatewayConditionProgrammed),
	string(gatewayv1.GatewayConditionResolvedRefs),
	string(gatewayv1.GatewayConditionInsecureFrontendValidationMode),
	string(gatewayv1.ListenerConditionConflicted),
	string(gatewayv1.ListenerConditionOverlappingTLSConfig),
	string(gatewayv1.RouteConditionPartiallyInvalid),
	string(gatewayv1.GatewayClassConditionStatusSupportedVersion),
	TypeIgnored,
}

// Ours says whether Limpet sets conditions of that type. Those of every other type are somebody else's.
func Ours(kind string) bool { return slices.Contains(types, kind) }

// ReasonNotBuilt is the reason of TypeIgnored.
const ReasonNotBuilt = "NotBuilt"

// ReasonUnusableCertificate is a reason of our own: a certificate can be read, but OpenSSL would not take it for this. The
// specification asks for such a reason where an implementation looks further than whether a reference can be resolved.
const ReasonUnusableCertificate = "UnusableCertificate"

// Ignored says which fields of an object that is served otherwise are not honoured.
func Ignored(generation int64, message string) metav1.Condition {
	return isTrue(TypeIgnored, ReasonNotBuilt, generation, message)
}

func isTrue[T, R ~string](kind T, reason R, generation int64, message string) metav1.Condition {
	return condition(string(kind), metav1.ConditionTrue, string(reason), generation, message)
}

func isFalse[T, R ~string](kind T, reason R, generation int64, message string) metav1.Condition {
	return condition(string(kind), metav1.ConditionFalse, string(reason), generation, message)
}

func isUnknown[T, R ~string](kind T, reason R, generation int64, message string) metav1.Condition {
	return condition(string(kind), metav1.ConditionUnknown, string(reason), generation, message)
}

func condition(kind string, status metav1.ConditionStatus, reason string, generation int64, message string) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, ObservedGeneration: generation, Message: bounded(printable(message)),
	}
}

// printable keeps a message one line, whatever the names in it hold: it ends in logs and on terminals.
func printable(message string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, message)
}

// bounded cuts a message between two characters.
func bounded(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	const mark = "…"
	end := maxMessage - len(mark)
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + mark
}
