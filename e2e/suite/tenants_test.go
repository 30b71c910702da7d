package suite

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// A tenant edits what Limpet made in his namespace: target ports, endpoints, labels, selectors. The neighbour's requests go on,
// his routes go on changing, and what was edited is repaired.
func TestATenantEditsWhatWasGenerated(t *testing.T) {
	s := setting(t)
	neighbour, tenant := s.world(t, "neighbour", 2), s.world(t, "tenant", 1)
	f := traffic(t, neighbour.URL, host, false)
	service := tenant.generated(t)
	theirs := neighbour.generated(t)
	wanted := service.DeepCopy()
	for name, edit := range map[string]func(*corev1.Service){
		"target port": func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = theirs.Spec.Ports[0].TargetPort },
		"no port":     func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromInt32(1) },
		"selector":    func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "shop"} },
		"labels":      func(s *corev1.Service) { s.Labels = map[string]string{"mine": "mine"} },
		"port":        func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 },
	} {
		tenant.edit(t, service, edit)
		tenant.repaired(t, name, wanted)
	}
	for _, edit := range []func(*discoveryv1.EndpointSlice){
		func(s *discoveryv1.EndpointSlice) { s.Endpoints = nil },
		func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = new(int32(8081)) },
		func(s *discoveryv1.EndpointSlice) { s.Labels[discoveryv1.LabelServiceName] = "another" },
	} {
		tenant.editSlices(t, service.Name, edit)
		tenant.answers(t, host, time.Minute)
	}
	// The neighbour's routes go on changing.
	neighbour.create(t, route(neighbour.ns, "still", "still.example.com", "/"))
	neighbour.answers(t, "still.example.com", 30*time.Second)
	f.Quiet(t, requests/5)
	tenant.answers(t, host, 30*time.Second)
}

// generated is the Service that Limpet made for the Gateway.
func (w *World) generated(t *testing.T) *corev1.Service {
	t.Helper()
	var list corev1.ServiceList
	if err := w.List(t.Context(), &list, client.InNamespace(w.ns), client.MatchingLabels{gatewayv1.GatewayNameLabelKey: gatewayName}); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 {
		t.Fatalf("there are %d Services for the Gateway", len(list.Items))
	}
	return &list.Items[0]
}

func (w *World) edit(t *testing.T, service *corev1.Service, edit func(*corev1.Service)) {
	t.Helper()
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var now corev1.Service
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(service), &now); err != nil {
			return err
		}
		edit(&now)
		return w.Update(t.Context(), &now)
	}); err != nil {
		t.Fatal(err)
	}
}

// repaired waits until a Service is as it was.
func (w *World) repaired(t *testing.T, what string, wanted *corev1.Service) {
	t.Helper()
	eventually(t, 30*time.Second, func() error {
		var now corev1.Service
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(wanted), &now); err != nil {
			return err
		}
		for key, value := range wanted.Labels {
			if now.Labels[key] != value {
				return fmt.Errorf("%s: label %s is %q", what, key, now.Labels[key])
			}
		}
		if len(now.Spec.Selector) > 0 || len(now.Spec.Ports) != 1 || now.Spec.Ports[0].Port != 80 || now.Spec.Ports[0].TargetPort != wanted.Spec.Ports[0].TargetPort {
			return fmt.Errorf("%s: %+v", what, now.Spec)
		}
		return nil
	})
}

func (w *World) editSlices(t *testing.T, service string, edit func(*discoveryv1.EndpointSlice)) {
	t.Helper()
	var list discoveryv1.EndpointSliceList
	if err := w.List(t.Context(), &list, client.InNamespace(w.ns), client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) == 0 {
		t.Fatal("there is no slice to edit")
	}
	for i := range list.Items {
		edit(&list.Items[i])
		if err := client.IgnoreNotFound(w.Update(t.Context(), &list.Items[i])); err != nil {
			t.Log(err) // it was repaired at this moment
		}
	}
}
