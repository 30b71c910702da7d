package expose

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/limpet-gateway/limpet/controller/graph"
)

func xbackendNamed(name, spec string) string {
	return "\n---\nkind: XBackend\nmetadata: {name: " + name + ", namespace: default, uid: uid-of-xbackend}\nspec: " + spec +
		"\n---\nkind: HTTPRoute\nmetadata: {name: shop, namespace: default}\nspec:\n  parentRefs: [{name: gw}]\n  rules:\n" +
		"  - backendRefs: [{group: gateway.networking.x-k8s.io, kind: XBackend, name: " + name + "}]\n"
}

const selectsShop = "{type: EndpointSelector, port: {number: 8080}, endpointSelector: {matchLabels: {app: shop}}}"

func headless(w *world) []*corev1.Service {
	return all(w, func(s *corev1.Service) bool { return s.Labels[graph.LabelXBackend] != "" })
}

func oneXBackend(t *testing.T, name string) *world {
	t.Helper()
	w := newWorld(t, class, gatewayNamed("gw", httpListener), pod("limpet-a", 1, true), xbackendNamed(name, selectsShop))
	w.settle(t)
	if all := headless(w); len(all) != 1 {
		t.Fatalf("%d headless Services", len(all))
	}
	return w
}

func TestAnXBackendsServiceFollowsItsSpec(t *testing.T) {
	t.Parallel()
	w := oneXBackend(t, "shop")
	w.add(t, xbackendNamed("shop", "{type: EndpointSelector, port: {number: 9090}, endpointSelector: {matchLabels: {app: other}}}"))
	w.settle(t)
	if all := headless(w); len(all) != 1 || all[0].Spec.Ports[0].Port != 9090 || all[0].Spec.Selector["app"] != "other" {
		t.Errorf("%d Services, %+v", len(all), all[0].Spec)
	}
	// Edits are repaired.
	edited := headless(w)[0].DeepCopy()
	edited.Spec.Selector, edited.Spec.Ports[0].TargetPort = map[string]string{"app": "mine"}, intstr.FromInt32(1)
	edited.Labels = nil
	w.put(edited)
	w.settle(t)
	if all := headless(w); len(all) != 1 || all[0].Spec.Selector["app"] != "other" || all[0].Spec.Ports[0].TargetPort.IntVal != 9090 {
		t.Errorf("%d Services, %+v", len(all), all)
	}
	// A type that selects nothing has none.
	w.add(t, xbackendNamed("shop", "{type: ExternalHostname, port: {number: 443}, externalHostname: {hostname: a.example.com}}"))
	w.settle(t)
	if all := headless(w); len(all) != 0 {
		t.Errorf("%d Services for a name outside", len(all))
	}
}

func TestOfTwoServicesOfAnXBackendTheYoungerGoes(t *testing.T) {
	t.Parallel()
	w := oneXBackend(t, "shop")
	first := headless(w)[0]
	second := first.DeepCopy()
	second.Name, second.UID, second.CreationTimestamp = "shop-aaaaa", "", metav1.Unix(noon+1, 0)
	w.put(second)
	// One of somebody else, with the same labels, stays.
	foreign := first.DeepCopy()
	foreign.Name, foreign.UID, foreign.OwnerReferences = "shop-zzzzz", "", nil
	w.put(foreign)
	w.settle(t)
	if w.objects[idOf(first)] == nil || w.objects[idOf(second)] != nil || w.objects[idOf(foreign)] == nil {
		t.Errorf("left: %d", len(headless(w)))
	}
}

func TestAnXBackendWithALongNameHasALabelThatGraphKnows(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("shop.", 20) + "x"
	w := oneXBackend(t, name)
	service := headless(w)[0]
	if got := service.Labels[graph.LabelXBackend]; got != graph.LabelValue(name) || len(got) > 63 {
		t.Errorf("label %q", got)
	}
	if strings.Contains(service.GenerateName, ".") || len(service.GenerateName) > 58 {
		t.Errorf("generateName %q is none of a Service", service.GenerateName)
	}
	w.add(t, `
kind: EndpointSlice
metadata: {name: s, namespace: default, labels: {limpet.dev/xbackend: `+graph.LabelValue(name)+`}}
addressType: IPv4
endpoints: [{addresses: [10.1.0.1]}]
`)
	backend := w.builder.Build(w.snapshot()).Backend(graph.BackendKey{Kind: "XBackend", Namespace: "default", Name: name})
	if backend == nil || len(backend.Endpoints) != 1 {
		t.Errorf("the backend is %+v", backend)
	}
}

func TestAnXBackendThatIsGoneLeavesItsServiceToKubernetes(t *testing.T) {
	t.Parallel()
	w := oneXBackend(t, "shop")
	delete(w.objects, "XBackend default/shop")
	if wanted := w.settle(t); len(wanted.Changes) > 0 {
		t.Errorf("wanted: %s", keys(wanted))
	}
	if owner := metav1.GetControllerOf(headless(w)[0]); owner == nil || owner.UID != "uid-of-xbackend" || owner.Kind != "XBackend" ||
		owner.APIVersion != gatewayxv1alpha1.GroupVersion.String() {
		t.Errorf("owned by %+v", owner)
	}
}
