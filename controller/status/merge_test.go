package status

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/features"
	"sigs.k8s.io/yaml"
)

var ourMerger = &merger{controller: "limpet.dev/test", now: "2026-12-01T00:00:00Z"}

// merged is what comes of a status, in YAML, "" if nothing is to be written.
func merged(t *testing.T, live string, update *Update) string {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(live))
	if err != nil {
		t.Fatal(err)
	}
	status, err := ourMerger.merge(data, update)
	if err != nil {
		t.Fatal(err)
	}
	if status == nil {
		return ""
	}
	text, err := yaml.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	// What is merged once is not merged again.
	again, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	if more, err := ourMerger.merge(again, update); err != nil || more != nil {
		t.Errorf("merged again, it is %v (%v)", more, err)
	}
	return string(text)
}

func routeUpdateOf(parents ...gatewayv1.RouteParentStatus) *Update {
	return &Update{Object: Object{"gateway.networking.k8s.io/v1", "HTTPRoute", "default", "shop"},
		Status: Status{Route: &gatewayv1.RouteStatus{Parents: parents}}}
}

func parentOf(name string, status metav1.ConditionStatus, generation int64) gatewayv1.RouteParentStatus {
	return gatewayv1.RouteParentStatus{
		ParentRef: gatewayv1.ParentReference{Name: gatewayv1.ObjectName(name)}, ControllerName: "limpet.dev/test",
		Conditions: []metav1.Condition{{Type: "Accepted", Status: status, Reason: "R", ObservedGeneration: generation}},
	}
}

func TestEntriesOfOtherControllersStay(t *testing.T) {
	t.Parallel()
	live := `
parents:
- {parentRef: {name: gone}, controllerName: limpet.dev/test, conditions: []}
- {parentRef: {name: theirs}, controllerName: example.org/other, future: [1], conditions: [{type: Accepted, status: "True", lastTransitionTime: "2001-01-01T00:00:00Z"}]}
- parentRef: {name: gw}
  controllerName: limpet.dev/test
  conditions:
  - {type: example.org/Checked, status: "False", lastTransitionTime: "2001-01-01T00:00:00Z"}
  - {type: Accepted, status: "True", reason: R, message: "", observedGeneration: 1, lastTransitionTime: "2001-01-01T00:00:00Z"}
  - {type: PartiallyInvalid, status: "True"}
  - {type: limpet.dev/Ignored, status: "True"}
`
	got := merged(t, live, routeUpdateOf(parentOf("gw", "True", 2), parentOf("new", "False", 2)))
	want := `parents:
- conditions:
  - lastTransitionTime: "2001-01-01T00:00:00Z"
    status: "True"
    type: Accepted
  controllerName: example.org/other
  future:
  - 1
  parentRef:
    name: theirs
- conditions:
  - lastTransitionTime: "2001-01-01T00:00:00Z"
    status: "False"
    type: example.org/Checked
  - lastTransitionTime: "2001-01-01T00:00:00Z"
    message: ""
    observedGeneration: 2
    reason: R
    status: "True"
    type: Accepted
  controllerName: limpet.dev/test
  parentRef:
    name: gw
- conditions:
  - lastTransitionTime: "2026-12-01T00:00:00Z"
    message: ""
    observedGeneration: 2
    reason: R
    status: "False"
    type: Accepted
  controllerName: limpet.dev/test
  parentRef:
    name: new
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	gone := merged(t, live, nil)
	if strings.Contains(gone, "limpet.dev/test") || !strings.Contains(gone, "example.org/other") {
		t.Errorf("when nothing is ours any more:\n%s", gone)
	}
}

// Another replica of ours may know a newer generation than the one that writes last.
func TestAConditionOfANewerGenerationStays(t *testing.T) {
	t.Parallel()
	live := `
parents:
- parentRef: {name: gw}
  controllerName: limpet.dev/test
  conditions:
  - {type: Accepted, status: "True", reason: R, message: "", observedGeneration: 3, lastTransitionTime: "2001-01-01T00:00:00Z"}
`
	for generation, wants := range map[int64]string{2: "", 3: `observedGeneration: 3`, 4: `observedGeneration: 4`} {
		got := merged(t, live, routeUpdateOf(parentOf("gw", "False", generation)))
		if written := strings.Contains(got, `status: "False"`); written != (wants != "") || !strings.Contains(got, wants) {
			t.Errorf("what is written by who knows generation %d: %s", generation, got)
		}
	}
}

func TestConditionsOfOthersStayOnGatewaysAndListeners(t *testing.T) {
	t.Parallel()
	live := `
conditions:
- {type: Accepted, status: Unknown, reason: Pending, lastTransitionTime: "1970-01-01T00:00:00Z"}
- {type: example.org/Ours, status: "True", reason: Foreign, lastTransitionTime: "2001-01-01T00:00:00Z", extra: 1}
listeners:
- {name: gone, conditions: []}
- {name: http, conditions: [{type: example.org/Seen, status: "True", lastTransitionTime: "2001-01-01T00:00:00Z"}]}
addresses: [{value: 10.0.0.1}]
`
	update := &Update{Object: Object{"gateway.networking.k8s.io/v1", "Gateway", "default", "gw"}, Status: Status{Gateway: &gatewayv1.GatewayStatus{
		Conditions: []metav1.Condition{{Type: "Accepted", Status: "True", Reason: "Accepted", ObservedGeneration: 1}},
		Listeners: []gatewayv1.ListenerStatus{{Name: "http", SupportedKinds: []gatewayv1.RouteGroupKind{}, AttachedRoutes: 0,
			Conditions: []metav1.Condition{{Type: "Programmed", Status: "True", Reason: "Programmed", ObservedGeneration: 1}}}},
	}}}
	got := merged(t, live, update)
	want := `conditions:
- lastTransitionTime: "2026-12-01T00:00:00Z"
  message: ""
  observedGeneration: 1
  reason: Accepted
  status: "True"
  type: Accepted
- extra: 1
  lastTransitionTime: "2001-01-01T00:00:00Z"
  reason: Foreign
  status: "True"
  type: example.org/Ours
listeners:
- attachedRoutes: 0
  conditions:
  - lastTransitionTime: "2001-01-01T00:00:00Z"
    status: "True"
    type: example.org/Seen
  - lastTransitionTime: "2026-12-01T00:00:00Z"
    message: ""
    observedGeneration: 1
    reason: Programmed
    status: "True"
    type: Programmed
  name: http
  supportedKinds: []
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// addresses are ours: what is to go has to be said.
	data, err := yaml.YAMLToJSON([]byte(live))
	if err != nil {
		t.Fatal(err)
	}
	status, _ := ourMerger.merge(data, update)
	if value, there := removing(data, status)["addresses"]; !there || value != nil {
		t.Error("the patch leaves the addresses")
	}
}

func TestFeaturesAreSortedAndNoneIsForgotten(t *testing.T) {
	t.Parallel()
	var names []string
	for _, feature := range Features() {
		names = append(names, string(feature.Name))
	}
	if !slices.IsSorted(names) {
		t.Errorf("not sorted: %v", names)
	}
	// Nothing of these is implemented, or can be with HAProxy. What a new version of the Gateway API brings has to be put on one list.
	not := []features.FeatureName{
		features.SupportUDPRoute, features.SupportGatewayAddressRoutability, features.SupportGatewayAddressRoutabilityCluster,
		features.SupportGatewayListenerFilters, features.SupportClusterTrustBundle,
	}
	for feature := range features.AllFeatures {
		claimed, refused := slices.Contains(names, string(feature.Name)), slices.Contains(not, feature.Name) ||
			strings.HasPrefix(string(feature.Name), "Mesh")
		if claimed == refused {
			t.Errorf("%s: claimed %v, refused %v", feature.Name, claimed, refused)
		}
	}
}
