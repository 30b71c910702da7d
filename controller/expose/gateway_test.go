package expose

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
)

var gw = types.NamespacedName{Namespace: "default", Name: "gw"}

const (
	serviceID = "Service default/gw-limpet"
	sliceID   = "EndpointSlice default/gw-limpet-v4"
)

func oneGateway(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, class, gatewayNamed("gw", httpListener), pod("limpet-a", 1, true), pod("limpet-b", 2, true))
	w.settle(t)
	return w
}

// ready lists the endpoints of the slice that are ready, by pod.
func (w *world) ready(t *testing.T) string {
	t.Helper()
	var all []string
	for _, endpoint := range get[*discoveryv1.EndpointSlice](t, w, sliceID).Endpoints {
		if *endpoint.Conditions.Ready {
			all = append(all, endpoint.TargetRef.Name)
		}
	}
	return strings.Join(all, " ")
}

func TestAnIdleClusterWantsNothing(t *testing.T) {
	t.Parallel()
	w := oneGateway(t)
	if wanted := w.compute(); len(wanted.Changes) > 0 {
		t.Errorf("wanted: %s", keys(wanted))
	}
}

func TestPodsAreListedByTheReadinessOfHAProxy(t *testing.T) {
	t.Parallel()
	w := oneGateway(t)
	w.add(t, pod("limpet-b", 2, false))
	w.settle(t)
	if ready := w.ready(t); ready != "limpet-a" {
		t.Errorf("ready: %q, want limpet-a alone", ready)
	}
	// The controller crashes: the pod is not ready, HAProxy is.
	crashed := strings.Replace(pod("limpet-b", 2, true), "  phase: Running",
		"  conditions: [{type: Ready, status: \"False\"}, {type: ContainersReady, status: \"False\"}]", 1)
	w.add(t, crashed)
	w.settle(t)
	if ready := w.ready(t); ready != "limpet-a limpet-b" {
		t.Errorf("ready: %q, want both: HAProxy of the one whose controller crashed serves", ready)
	}
	// Its node is lost: nobody says any more what its containers do.
	lost := strings.Replace(crashed, "type: ContainersReady, status: \"False\"", "type: ContainersReady, status: \"True\"", 1)
	w.add(t, lost)
	w.settle(t)
	if ready := w.ready(t); ready != "limpet-a" {
		t.Errorf("ready: %q, want limpet-a alone: the node of the other one is lost", ready)
	}
}

func TestNobodyTakesTheLastAddressAway(t *testing.T) {
	t.Parallel()
	w := oneGateway(t)
	w.add(t, pod("limpet-b", 2, false))
	w.settle(t)
	w.add(t, pod("limpet-a", 1, false))
	w.settle(t)
	if ready := w.ready(t); ready != "limpet-a" {
		t.Errorf("no pod is ready: the slice has %q as ready, want limpet-a, which was the last", ready)
	}
	delete(w.objects, "Pod limpet-system/limpet-a")
	w.settle(t)
	if ready := w.ready(t); ready != "" {
		t.Errorf("the last pod is gone, and %q still is ready", ready)
	}
	delete(w.objects, "Pod limpet-system/limpet-b")
	if wanted := w.compute(); len(wanted.Changes) > 0 {
		t.Errorf("without any pod in sight: %s", keys(wanted))
	}
	w.add(t, pod("limpet-c", 3, true))
	w.settle(t)
	if ready := w.ready(t); ready != "limpet-c" {
		t.Errorf("ready: %q, want limpet-c", ready)
	}
}

func TestATerminatingPodServesWhatItHas(t *testing.T) {
	t.Parallel()
	w := oneGateway(t)
	w.add(t, strings.Replace(pod("limpet-b", 2, true), "uid: uid-of-limpet-b", `uid: uid-of-limpet-b, deletionTimestamp: "2025-12-01T12:00:00Z"`, 1))
	w.settle(t)
	endpoint := get[*discoveryv1.EndpointSlice](t, w, sliceID).Endpoints[1]
	if *endpoint.Conditions.Ready || !*endpoint.Conditions.Serving || !*endpoint.Conditions.Terminating {
		t.Errorf("conditions of a terminating pod: ready %t, serving %t, terminating %t",
			*endpoint.Conditions.Ready, *endpoint.Conditions.Serving, *endpoint.Conditions.Terminating)
	}
}

// TestEditsOfTenantsAreRepaired: what a tenant does to the objects in his namespace is undone, and what others add stays.
func TestEditsOfTenantsAreRepaired(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*corev1.Service, *discoveryv1.EndpointSlice){
		"target port": func(s *corev1.Service, _ *discoveryv1.EndpointSlice) {
			s.Spec.Ports[0].TargetPort = intstr.FromInt32(10001)
		},
		"port added": func(s *corev1.Service, _ *discoveryv1.EndpointSlice) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: 8081})
		},
		"selector": func(s *corev1.Service, _ *discoveryv1.EndpointSlice) {
			s.Spec.Selector = map[string]string{"app": "mine"}
		},
		"labels": func(s *corev1.Service, _ *discoveryv1.EndpointSlice) { s.Labels = map[string]string{"a": "b"} },
		"type":   func(s *corev1.Service, _ *discoveryv1.EndpointSlice) { s.Spec.Type = corev1.ServiceTypeNodePort },
		"external name": func(s *corev1.Service, _ *discoveryv1.EndpointSlice) {
			s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "x.example.com"
		},
		"endpoint's address": func(_ *corev1.Service, s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses[0] = "10.0.0.66" },
		"endpoints":          func(_ *corev1.Service, s *discoveryv1.EndpointSlice) { s.Endpoints = nil },
		"slice's port":       func(_ *corev1.Service, s *discoveryv1.EndpointSlice) { *s.Ports[0].Port = 10001 },
		"slice's labels":     func(_ *corev1.Service, s *discoveryv1.EndpointSlice) { s.Labels = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := oneGateway(t)
			w.add(t, gatewayNamed("neighbour", httpListener))
			w.settle(t)
			service, slice := get[*corev1.Service](t, w, serviceID), get[*discoveryv1.EndpointSlice](t, w, sliceID)
			edited, editedSlice := service.DeepCopy(), slice.DeepCopy()
			edit(edited, editedSlice)
			edited.Annotations, edited.Finalizers = map[string]string{"vendor.example.com/id": "7"}, []string{"vendor.example.com/lb"}
			w.put(edited)
			w.put(editedSlice)
			for _, change := range w.compute().Changes {
				if change.Gateway != gw {
					t.Errorf("also changes %s", change.Key())
				}
			}
			w.settle(t)
			is, isSlice := get[*corev1.Service](t, w, serviceID), get[*discoveryv1.EndpointSlice](t, w, sliceID)
			if !equalSpec(is, service) || isSlice.Labels[discoveryv1.LabelServiceName] != "gw-limpet" || sliceDiffers(isSlice, slice) {
				t.Errorf("repaired to %+v and %+v", is, isSlice)
			}
			if is.Annotations["vendor.example.com/id"] != "7" || len(is.Finalizers) != 1 {
				t.Errorf("what others added is gone: %v, %v", is.Annotations, is.Finalizers)
			}
		})
	}
}

func equalSpec(a, b *corev1.Service) bool {
	return a.Spec.Type == b.Spec.Type && len(a.Spec.Selector) == 0 && len(a.Spec.Ports) == len(b.Spec.Ports) &&
		a.Spec.Ports[0] == b.Spec.Ports[0] && a.Spec.ExternalName == "" && a.Labels[cluster.LabelManagedBy] == cluster.ManagedBy &&
		a.Labels["gateway.networking.k8s.io/gateway-name"] == "gw"
}

// TestATenantsSlicesAreHisOwn: what a tenant adds under the label of his Service is neither ours nor anybody else's.
func TestATenantsSlicesAreHisOwn(t *testing.T) {
	t.Parallel()
	w := oneGateway(t)
	w.add(t, `
kind: EndpointSlice
metadata: {name: mine, namespace: default, labels: {kubernetes.io/service-name: gw-limpet, endpointslice.kubernetes.io/managed-by: limpet.dev}}
addressType: IPv4
endpoints: [{addresses: [10.0.0.66]}]
`)
	if wanted := w.compute(); len(wanted.Changes) > 0 {
		t.Errorf("wanted: %s", keys(wanted))
	}
}

func TestAServiceOfSomebodyElseIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, class, gatewayNamed("gw", httpListener), pod("limpet-a", 1, true), `
kind: Service
metadata: {name: gw-limpet, namespace: default, labels: {app.kubernetes.io/managed-by: limpet}}
spec: {selector: {app: mine}, ports: [{port: 80}]}
`)
	w.apply(t, w.compute().Changes)
	w.apply(t, w.compute().Changes)
	if service := get[*corev1.Service](t, w, serviceID); service.Spec.Selector["app"] != "mine" {
		t.Errorf("somebody else's Service became %+v", service.Spec)
	}
	if e := w.compute().Exposures[gw]; e.Reason != gatewayv1.GatewayReasonAddressNotAssigned || len(e.Addresses) > 0 {
		t.Errorf("the Gateway has %+v", e)
	}
}

func TestParametersSayTheTypeAndAnnotationsOfTheService(t *testing.T) {
	t.Parallel()
	w := oneGateway(t)
	w.add(t, "apiVersion: limpet.dev/v1alpha1\nkind: LimpetParameters\nmetadata: {name: p, namespace: default}\n"+
		"spec: {service: {type: NodePort, annotations: {lb: internal, cost: low}}}",
		gatewayNamed("gw", httpListener+"\n  infrastructure: {annotations: {lb: external}, "+
			"parametersRef: {group: limpet.dev, kind: LimpetParameters, name: p}}"))
	w.settle(t)
	service := get[*corev1.Service](t, w, serviceID)
	if service.Spec.Type != corev1.ServiceTypeNodePort || service.Annotations["lb"] != "external" || service.Annotations["cost"] != "low" {
		t.Errorf("type %s, annotations %v", service.Spec.Type, service.Annotations)
	}
	if slice := get[*discoveryv1.EndpointSlice](t, w, sliceID); slice.Annotations["cost"] != "" {
		t.Errorf("the slice has annotations of the Service: %v", slice.Annotations)
	}
	w.add(t, gatewayNamed("gw", httpListener))
	w.settle(t)
	service = get[*corev1.Service](t, w, serviceID)
	if service.Spec.Type != corev1.ServiceTypeClusterIP || service.Annotations["lb"]+service.Annotations["cost"] != "" {
		t.Errorf("without them: type %s, annotations %v", service.Spec.Type, service.Annotations)
	}
}

func TestInfrastructureIsTakenBack(t *testing.T) {
	t.Parallel()
	w := oneGateway(t)
	w.add(t, gatewayNamed("gw", httpListener+"\n  infrastructure: {labels: {team: shop}, annotations: {lb: internal}}"))
	w.settle(t)
	service := get[*corev1.Service](t, w, serviceID)
	if service.Labels["team"] != "shop" || service.Annotations["lb"] != "internal" || get[*discoveryv1.EndpointSlice](t, w, sliceID).Labels["team"] != "shop" {
		t.Errorf("labels %v, annotations %v", service.Labels, service.Annotations)
	}
	w.add(t, gatewayNamed("gw", httpListener))
	w.settle(t)
	service = get[*corev1.Service](t, w, serviceID)
	if service.Labels["team"] != "" || len(service.Annotations) != 0 {
		t.Errorf("left over: labels %v, annotations %v", service.Labels, service.Annotations)
	}
}

func TestNamesOfServices(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 253)
	seen := map[string]string{}
	for _, name := range []string{"gw", "a.b", "a-b", "1gw", "xgw", long, long[:252] + "b", long[:57], long[:56], long[:55] + "." + "a", strings.Repeat("a.", 100) + "b"} {
		service := ServiceName(name)
		if wrong := validation.IsDNS1035Label(service); len(wrong) > 0 {
			t.Errorf("%q has the Service %q: %v", name, service, wrong)
		}
		if wrong := validation.IsValidLabelValue(graph.LabelValue(name)); len(wrong) > 0 {
			t.Errorf("%q has the label %q: %v", name, graph.LabelValue(name), wrong)
		}
		if seen[service] != "" {
			t.Errorf("%q and %q have the same Service %q", name, seen[service], service)
		}
		seen[service] = name
	}
	if ServiceName("gw") != "gw-limpet" {
		t.Errorf("gw has %s", ServiceName("gw"))
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	loadBalancer := func(ingress ...corev1.LoadBalancerIngress) func(*corev1.Service) {
		return func(s *corev1.Service) {
			s.Spec.Type, s.Status.LoadBalancer.Ingress = corev1.ServiceTypeLoadBalancer, ingress
		}
	}
	for _, test := range []struct {
		name, spec string
		service    func(*corev1.Service)
		want       string
	}{
		{"the address in the cluster", "", func(s *corev1.Service) { s.Spec.ClusterIPs = []string{"10.96.0.9", "fd00::9"} },
			"IPAddress 10.96.0.9 IPAddress fd00::9"},
		{"a load balancer's address", "", loadBalancer(corev1.LoadBalancerIngress{IP: "203.0.113.1"}), "IPAddress 203.0.113.1"},
		{"a load balancer's name", "", loadBalancer(corev1.LoadBalancerIngress{Hostname: "LB-1.example.com."}), "Hostname lb-1.example.com"},
		{"what is no name is not shown", "", loadBalancer(corev1.LoadBalancerIngress{Hostname: "a b"}), " AddressNotAssigned"},
		{"a load balancer without one yet", "", loadBalancer(), " AddressNotAssigned"},
		{"an address that was asked for", "addresses: [{value: 10.96.0.9}]",
			func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.0.9", []string{"10.96.0.9"} }, "IPAddress 10.96.0.9"},
		{"one of two", "addresses: [{value: 10.96.0.9}, {value: \"fd00::0009\"}]",
			func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.0.9", []string{"10.96.0.9"} },
			"IPAddress 10.96.0.9 AddressNotUsable"},
		{"both, spelled as asked for", "addresses: [{value: 10.96.0.9}, {value: \"fd00::0009\"}]",
			func(s *corev1.Service) {
				s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.0.9", []string{"10.96.0.9", "fd00::9"}
			},
			"IPAddress 10.96.0.9 IPAddress fd00::0009"},
		{"an empty value is any", "addresses: [{type: IPAddress}]",
			func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.0.9", []string{"10.96.0.9"} }, "IPAddress 10.96.0.9"},
		{"two of one family", "addresses: [{value: 192.0.2.1}, {value: 10.96.0.9}]",
			func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.0.9", []string{"10.96.0.9"} },
			"IPAddress 10.96.0.9 AddressNotUsable"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := oneGateway(t)
			w.add(t, gatewayNamed("gw", httpListener+"\n  "+test.spec))
			service := get[*corev1.Service](t, w, serviceID).DeepCopy()
			test.service(service)
			w.put(service)
			e := w.compute().Exposures[gw]
			var words []string
			for _, address := range e.Addresses {
				words = append(words, string(*address.Type), address.Value)
			}
			if got := strings.Join(words, " ") + strings.Repeat(" ", min(1, len(e.Reason))) + string(e.Reason); got != test.want {
				t.Errorf("%q: %s, want %q", got, e.Problem, test.want)
			}
		})
	}
}

// TestB80ALoadBalancersAddressThatComesBackIsShown: also when nothing else changes with it.
func TestB80ALoadBalancersAddressThatComesBackIsShown(t *testing.T) {
	t.Parallel()
	w := oneGateway(t)
	w.options.ServiceType = corev1.ServiceTypeLoadBalancer
	w.settle(t)
	for _, ingress := range [][]corev1.LoadBalancerIngress{{{IP: "203.0.113.1"}}, nil, {{IP: "203.0.113.1"}}} {
		service := get[*corev1.Service](t, w, serviceID).DeepCopy()
		service.Status.LoadBalancer.Ingress = ingress
		w.put(service)
		wanted := w.compute()
		if e := wanted.Exposures[gw]; len(wanted.Changes) > 0 || len(e.Addresses) != len(ingress) || (e.Reason == "") != (len(ingress) > 0) {
			t.Errorf("with %v: %+v, wanted %s", ingress, e, keys(wanted))
		}
	}
}

func TestAnAddressThatIsAskedForIsThatOfTheService(t *testing.T) {
	t.Parallel()
	w := oneGateway(t)
	w.add(t, gatewayNamed("gw", httpListener+"\n  addresses: [{value: 10.96.0.77}]"))
	if e := w.compute().Exposures[gw]; e.Reason != gatewayv1.GatewayReasonAddressNotUsable {
		t.Errorf("before the Service has it: %+v", e)
	}
	e := w.settle(t).Exposures[gw]
	if len(e.Addresses) != 1 || e.Addresses[0].Value != "10.96.0.77" {
		t.Errorf("exposed at %+v", e)
	}
	// Who no longer asks for an address keeps the one that he has.
	w.add(t, gatewayNamed("gw", httpListener))
	if e := w.settle(t).Exposures[gw]; e.Addresses[0].Value != "10.96.0.77" {
		t.Errorf("exposed at %+v", e)
	}
}

func TestWhatWentOverToAnotherClassGoes(t *testing.T) {
	t.Parallel()
	w := oneGateway(t)
	gateway := get[*gatewayv1.Gateway](t, w, "Gateway default/gw").DeepCopy()
	gateway.Spec.GatewayClassName = "another"
	w.put(gateway)
	w.settle(t)
	if w.objects[serviceID] != nil || w.objects[sliceID] != nil {
		t.Error("Service or slice are still there")
	}
}

func TestWhenTheClassIsGoneEverythingStays(t *testing.T) {
	t.Parallel()
	w := oneGateway(t)
	delete(w.objects, "GatewayClass /limpet")
	w.settle(t)
	get[*corev1.Service](t, w, serviceID)
	get[*discoveryv1.EndpointSlice](t, w, sliceID)
}

func TestAGatewayThatIsBeingDeletedGetsNothingNew(t *testing.T) {
	t.Parallel()
	w := oneGateway(t)
	gateway := get[*gatewayv1.Gateway](t, w, "Gateway default/gw").DeepCopy()
	now := metav1.Unix(noon, 0)
	gateway.DeletionTimestamp = &now
	w.put(gateway)
	delete(w.objects, serviceID)
	if wanted := w.compute(); len(wanted.Changes) > 0 {
		t.Errorf("wanted: %s", keys(wanted))
	}
}

func TestMoreThan100PortsTakeSeveralSlices(t *testing.T) {
	t.Parallel()
	entries := func(from int) string {
		var all []string
		for i := range 60 {
			port := from + i
			all = append(all, "{name: p"+itoa(port)+", port: "+itoa(port)+", protocol: HTTP}")
		}
		return "listeners: [" + strings.Join(all, ", ") + "]"
	}
	w := newWorld(t, class, gatewayNamed("gw", entries(8000)+"\n  allowedListeners: {namespaces: {from: Same}}"), pod("limpet-a", 1, true), `
kind: ListenerSet
metadata: {name: more, namespace: default}
spec:
  parentRef: {name: gw}
  `+entries(9000))
	w.settle(t)
	first, second := get[*discoveryv1.EndpointSlice](t, w, sliceID), get[*discoveryv1.EndpointSlice](t, w, sliceID+"-2")
	if len(first.Ports) != 100 || len(second.Ports) != 20 {
		t.Errorf("%d and %d ports, want 100 and 20", len(first.Ports), len(second.Ports))
	}
	delete(w.objects, "ListenerSet default/more")
	w.settle(t)
	if w.objects[sliceID+"-2"] != nil {
		t.Error("the second slice is still there")
	}
}

func itoa(number int) string { return strconv.Itoa(number) }

func TestTheRankIsThePlaceAmongThoseThatServe(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		self         string
		rank, others int
	}{{"limpet-a", 0, 1}, {"limpet-c", 1, 1}, {"limpet-b", 2, 2}, {"elsewhere", 2, 2}} {
		w := newWorld(t, pod("limpet-a", 1, true), pod("limpet-b", 2, false), pod("limpet-c", 3, true))
		w.options.Pod = test.self
		if wanted := w.compute(); wanted.Rank != test.rank || wanted.Others != test.others {
			t.Errorf("%s has rank %d and %d others, want %d and %d", test.self, wanted.Rank, wanted.Others, test.rank, test.others)
		}
	}
}
