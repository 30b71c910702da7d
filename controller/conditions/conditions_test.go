package conditions

import (
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func TestAConditionCarriesTypeStatusReasonGenerationAndMessage(t *testing.T) {
	got := RouteNotAccepted(7, gatewayv1.RouteReasonNoMatchingParent, "no such listener")
	want := metav1.Condition{
		Type: "Accepted", Status: metav1.ConditionFalse, Reason: "NoMatchingParent", ObservedGeneration: 7,
		Message: "no such listener",
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestALongMessageIsCutBetweenCharacters(t *testing.T) {
	got := Ignored(1, "x"+strings.Repeat("ü", maxMessage)).Message
	if len(got) > maxMessage || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes, valid %v, end %q", len(got), utf8.ValidString(got), got[len(got)-8:])
	}
}

func TestPartiallyInvalidBeginsWithThePrefixThatTheSpecificationDemands(t *testing.T) {
	if got := RoutePartiallyInvalid(1, "rules[1]").Message; !strings.HasPrefix(got, "Dropped Rule") {
		t.Error(got)
	}
}

func TestAMessageIsOneLine(t *testing.T) {
	if got := Ignored(1, "a\nb\x1b[31m\xff").Message; got != "a\ufffdb\ufffd[31m\ufffd" {
		t.Errorf("%q", got)
	}
}
