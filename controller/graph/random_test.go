package graph

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
	gatewayxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	limpetv1alpha1 "github.com/limpet-gateway/limpet/api/v1alpha1"
	"github.com/limpet-gateway/limpet/controller/cluster"
)

// equal compares Graphs deeply, with all that they say when asked.
func equal(t *testing.T, got, want *Graph) {
	t.Helper()
	options := cmp.Options{
		cmpopts.IgnoreUnexported(Graph{}, Listener{}, GatewayClass{}),
		cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{}), cmpopts.EquateEmpty(),
	}
	// The fast way first: only cmp knows that nil and empty are equal here.
	same := reflect.DeepEqual(got.Gateways, want.Gateways) && reflect.DeepEqual(got.Routes, want.Routes) &&
		reflect.DeepEqual(got.ListenerSets, want.ListenerSets) &&
		reflect.DeepEqual(got.Others, want.Others) && reflect.DeepEqual(got.Reported, want.Reported) && reflect.DeepEqual(got.Unclaimed, want.Unclaimed)
	if !same || !reflect.DeepEqual(got.Classes, want.Classes) {
		if difference := cmp.Diff(want, got, options); difference != "" {
			t.Fatalf("want -, got +:\n%s", difference)
		}
	}
	for i := range want.Gateways {
		listeners := got.Gateways[i].AllListeners()
		for j, listener := range want.Gateways[i].AllListeners() {
			if a, b := got.AttachedRoutes(listeners[j]), want.AttachedRoutes(listener); a != b {
				t.Fatalf("%s has %d attached routes, want %d", listener, a, b)
			}
		}
	}
	if len(got.attached) != len(want.attached) {
		t.Fatalf("counts for %d listeners, want %d", len(got.attached), len(want.attached))
	}
	if got.HAProxy != want.HAProxy {
		t.Fatalf("HAProxy %+v, want %+v", got.HAProxy, want.HAProxy)
	}
	for key := range backendKeys {
		if !reflect.DeepEqual(got.Backend(key), want.Backend(key)) {
			t.Fatalf("%v\n%s", key, cmp.Diff(want.Backend(key), got.Backend(key), options))
		}
	}
}

// backendKeys are all that a world can have.
func backendKeys(yield func(BackendKey) bool) {
	for _, namespace := range []string{"a", "b"} {
		for i := range 5 {
			for port := range int32(3) {
				if !yield(BackendKey{"Service", namespace, fmt.Sprintf("s%d", i), 80 + port}) {
					return
				}
			}
			if !yield(BackendKey{Kind: "XBackend", Namespace: namespace, Name: fmt.Sprintf("s%d", i)}) {
				return
			}
		}
	}
}

// namesWhatChanged checks that no Backend differs of a Service that ChangedBackends does not name.
func namesWhatChanged(t *testing.T, was, is *Graph) {
	t.Helper()
	changed := slices.Collect(is.ChangedBackends(was))
	for key := range backendKeys {
		origin := key
		origin.Port = 0
		if was.Backend(key) != is.Backend(key) && !slices.Contains(changed, origin) {
			t.Fatalf("%v changed", key)
		}
	}
}

func TestABuilderThatRemembersGivesWhatAFreshOneGives(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := world{rand.New(rand.NewPCG(seed, 1))}
			var snapshot cluster.Snapshot
			builder := NewBuilder(Options{})
			var snapshots []cluster.Snapshot
			var graphs []*Graph
			for step := range 120 {
				for range 1 + w.IntN(3) {
					w.edit(&snapshot)
				}
				snapshots, graphs = append(snapshots, snapshot), append(graphs, builder.Build(snapshot))
				equal(t, graphs[step], NewBuilder(Options{}).Build(snapshot))
				// And an older one is what it was.
				past := w.IntN(step + 1)
				equal(t, graphs[past], NewBuilder(Options{}).Build(snapshots[past]))
				namesWhatChanged(t, graphs[past], graphs[step])
			}
		})
	}
}

// world makes objects with few names, so that they meet.
type world struct{ *rand.Rand }

func (w world) pick(of ...string) string { return of[w.IntN(len(of))] }

func (w world) chance(percent int) bool { return w.IntN(100) < percent }

func (w world) meta(kind string, count int) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: w.pick("a", "b"), Name: fmt.Sprintf("%s%d", kind, w.IntN(count)), Generation: w.Int64N(9)}
	if w.chance(50) {
		meta.CreationTimestamp = metav1.NewTime(time.Unix(w.Int64N(3), 0))
	}
	return meta
}

// put replaces or removes one object.
func put[T object](w world, all *cluster.Objects[T], object T) {
	if w.chance(25) {
		*all = all.Without(object.GetNamespace(), object.GetName())
		return
	}
	*all = all.With(object)
}

func (w world) edit(s *cluster.Snapshot) {
	switch w.IntN(27) {
	case 0:
		put(w, &s.GatewayClasses, w.class())
	case 1, 2:
		put(w, &s.Gateways, w.gateway())
	case 3, 4, 5:
		put(w, &s.HTTPRoutes, w.route())
	case 6:
		put(w, &s.ReferenceGrants, w.grant())
	case 7:
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.pick("a", "b"), Labels: map[string]string{"team": w.pick("red", "blue")}}}
		put(w, &s.Namespaces, namespace)
	case 8:
		put(w, &s.Services, w.service())
	case 9:
		put(w, &s.EndpointSlices, w.slice())
	case 10:
		put(w, &s.Secrets, w.secret())
	case 11, 12:
		put(w, &s.Policies, w.policy())
	case 13:
		put(w, &s.ConfigMaps, w.configMap())
	case 19, 20:
		put(w, &s.ListenerSets, w.set())
	case 14, 15, 16:
		put(w, &s.XBackends, w.xbackend())
	case 17, 18:
		put(w, &s.Pods, w.pod())
	case 21:
		put(w, &s.TLSRoutes, w.tlsRoute())
	case 22:
		put(w, &s.TCPRoutes, w.tcpRoute())
	case 24, 25:
		put(w, &s.Parameters, w.parameters())
	default:
		s.Others = w.others(s.Others)
	}
}

func (w world) class() *gatewayv1.GatewayClass {
	class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: w.pick("c0", "c1")}}
	class.Spec.ControllerName = gatewayv1.GatewayController(w.pick(DefaultControllerName, DefaultControllerName, "example.com/other"))
	if w.chance(40) {
		namespace := gatewayv1.Namespace(w.pick("a", "b"))
		class.Spec.ParametersRef = &gatewayv1.ParametersReference{
			Group: "limpet.dev", Kind: gatewayv1.Kind(w.pick(kindParameters, kindParameters, "ConfigMap")), Name: w.pick("p0", "p1"), Namespace: &namespace}
	}
	return class
}

func (w world) parameters() *limpetv1alpha1.LimpetParameters {
	parameters := &limpetv1alpha1.LimpetParameters{ObjectMeta: w.meta("p", 2)}
	idle := gatewayv1.Duration(w.pick("1s", "2s", "no time"))
	parameters.Spec.Timeouts = &limpetv1alpha1.ClientTimeouts{Idle: &idle}
	if w.chance(30) {
		parameters.Spec.TrustedProxies = []limpetv1alpha1.AddressRange{limpetv1alpha1.AddressRange(w.pick("10.0.0.0/8", "::1"))}
	}
	if threads := w.Int32N(3); threads > 0 {
		parameters.Spec.HAProxy = &limpetv1alpha1.HAProxyParameters{Threads: &threads}
	}
	return parameters
}

func (w world) gateway() *gatewayv1.Gateway {
	gateway := &gatewayv1.Gateway{ObjectMeta: w.meta("gw", 3)}
	gateway.Spec.GatewayClassName = gatewayv1.ObjectName(w.pick("c0", "c0", "c1", "c2"))
	for i := range 1 + w.IntN(4) {
		gateway.Spec.Listeners = append(gateway.Spec.Listeners, w.listener(i))
	}
	if w.chance(30) {
		gateway.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{ParametersRef: &gatewayv1.LocalParametersReference{
			Group: "limpet.dev", Kind: kindParameters, Name: w.pick("p0", "p1")}}
	}
	if w.chance(30) {
		gateway.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: w.pick("10.0.0.1", "0.0.0.0", "x")}}
	}
	if w.chance(30) {
		namespace := gatewayv1.Namespace(w.pick("a", "b"))
		gateway.Spec.TLS = &gatewayv1.GatewayTLSConfig{Frontend: &gatewayv1.FrontendTLSConfig{Default: gatewayv1.TLSConfig{
			Validation: &gatewayv1.FrontendTLSValidation{CACertificateRefs: []gatewayv1.ObjectReference{
				{Kind: "ConfigMap", Name: "ca0", Namespace: &namespace}, {Kind: "ConfigMap", Name: "ca1"}}}}}}
	}
	if from := gatewayv1.FromNamespaces(w.pick("All", "Same", "Selector")); w.chance(80) {
		gateway.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{
			From: &from, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}}}
	}
	return gateway
}

// set is called like a Gateway, so that a parentRef of another kind finds it.
func (w world) set() *gatewayv1.ListenerSet {
	set := &gatewayv1.ListenerSet{ObjectMeta: w.meta("gw", 3)}
	namespace := gatewayv1.Namespace(w.pick("a", "b"))
	set.Spec.ParentRef = gatewayv1.ParentGatewayReference{Name: gatewayv1.ObjectName(fmt.Sprintf("gw%d", w.IntN(3))), Namespace: &namespace}
	for i := range 1 + w.IntN(3) {
		set.Spec.Listeners = append(set.Spec.Listeners, gatewayv1.ListenerEntry(w.listener(i)))
	}
	return set
}

func (w world) listener(i int) gatewayv1.Listener {
	from := gatewayv1.FromNamespaces(w.pick("All", "All", "Same", "Selector"))
	listener := gatewayv1.Listener{
		Name: gatewayv1.SectionName(fmt.Sprintf("l%d", i)), Port: int32(80 + w.IntN(3)), Protocol: gatewayv1.ProtocolType(w.pick("HTTP", "HTTP", "HTTPS", "TLS", "TCP", "UDP")),
		AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{
			From: &from, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}}},
	}
	if hostname := gatewayv1.Hostname(w.pick("", "a.com", "*.a.com", "b.com")); hostname != "" {
		listener.Hostname = &hostname
	}
	if listener.Protocol == "TLS" && w.chance(50) {
		mode := gatewayv1.TLSModePassthrough
		listener.TLS = &gatewayv1.ListenerTLSConfig{Mode: &mode}
	} else if listener.Protocol == "HTTPS" || listener.Protocol == "TLS" {
		namespace := gatewayv1.Namespace(w.pick("a", "b"))
		listener.TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{
			{Name: gatewayv1.ObjectName(w.pick("x0", "x1")), Namespace: &namespace}}}
	}
	return listener
}

func (w world) tlsRoute() *gatewayv1.TLSRoute {
	like := w.route()
	route := &gatewayv1.TLSRoute{ObjectMeta: like.ObjectMeta}
	route.Spec.CommonRouteSpec, route.Spec.Hostnames = like.Spec.CommonRouteSpec, like.Spec.Hostnames
	for _, rule := range like.Spec.Rules {
		route.Spec.Rules = append(route.Spec.Rules, gatewayv1.TLSRouteRule{BackendRefs: plainRefs(rule.BackendRefs)})
	}
	return route
}

func (w world) tcpRoute() *gatewayv1.TCPRoute {
	like := w.tlsRoute()
	route := &gatewayv1.TCPRoute{ObjectMeta: like.ObjectMeta}
	route.Spec.CommonRouteSpec = like.Spec.CommonRouteSpec
	for _, rule := range like.Spec.Rules {
		route.Spec.Rules = append(route.Spec.Rules, gatewayv1.TCPRouteRule{BackendRefs: rule.BackendRefs})
	}
	return route
}

func plainRefs(refs []gatewayv1.HTTPBackendRef) []gatewayv1.BackendRef {
	var plain []gatewayv1.BackendRef
	for _, ref := range refs {
		plain = append(plain, ref.BackendRef)
	}
	return plain
}

func (w world) route() *gatewayv1.HTTPRoute {
	route := &gatewayv1.HTTPRoute{ObjectMeta: w.meta("r", 6)}
	for range w.IntN(3) {
		namespace, kind := gatewayv1.Namespace(w.pick("a", "b")), gatewayv1.Kind(w.pick("Gateway", "Gateway", "Gateway", "ListenerSet", "Service"))
		ref := gatewayv1.ParentReference{Name: gatewayv1.ObjectName(fmt.Sprintf("gw%d", w.IntN(4))), Namespace: &namespace, Kind: &kind}
		if section := gatewayv1.SectionName(w.pick("l0", "l1", "l9")); w.chance(30) {
			ref.SectionName = &section
		}
		route.Spec.ParentRefs = append(route.Spec.ParentRefs, ref)
	}
	if w.chance(50) {
		route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(w.pick("a.com", "b.a.com", "*.a.com", "BAD"))}
	}
	for range 1 + w.IntN(3) {
		route.Spec.Rules = append(route.Spec.Rules, w.rule())
	}
	return route
}

func (w world) rule() gatewayv1.HTTPRouteRule {
	var rule gatewayv1.HTTPRouteRule
	path := w.pick("/", "/a", "/a/", "bad")
	rule.Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Value: &path}}}
	for range w.IntN(3) {
		namespace, port := gatewayv1.Namespace(w.pick("a", "b")), int32(80+w.IntN(3))
		ref := gatewayv1.HTTPBackendRef{}
		ref.Name, ref.Namespace, ref.Port = gatewayv1.ObjectName(fmt.Sprintf("s%d", w.IntN(5))), &namespace, &port
		if w.chance(40) {
			group, kind := gatewayv1.Group(groupExperimental), gatewayv1.Kind("XBackend")
			ref.Group, ref.Kind, ref.Port = &group, &kind, nil
		}
		rule.BackendRefs = append(rule.BackendRefs, ref)
	}
	if w.chance(10) {
		rule.Retry = &gatewayv1.HTTPRouteRetry{}
	}
	if w.chance(30) {
		session := &gatewayv1.SessionPersistence{Cookie: &gatewayv1.CookieConfig{}}
		if name := gatewayv1.CookieName("__Host-sid"); w.chance(30) {
			session.Cookie.Name = &name
		}
		rule.SessionPersistence = session //nolint:staticcheck // deprecated upstream, and served by us
	}
	return rule
}

func (w world) grant() *gatewayv1beta1.ReferenceGrant {
	grant := &gatewayv1beta1.ReferenceGrant{ObjectMeta: w.meta("g", 2)}
	grant.Spec.From = []gatewayv1.ReferenceGrantFrom{
		{Group: gatewayv1.GroupName, Kind: gatewayv1.Kind(w.pick("HTTPRoute", "Gateway")), Namespace: gatewayv1.Namespace(w.pick("a", "b"))}}
	grant.Spec.To = []gatewayv1.ReferenceGrantTo{{Kind: gatewayv1.Kind(w.pick("Service", "Secret"))}}
	return grant
}

func (w world) service() *corev1.Service {
	service := &corev1.Service{ObjectMeta: w.meta("s", 5)}
	for i := range 1 + w.IntN(3) {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", i), Port: int32(80 + i)})
	}
	switch {
	case w.chance(10):
		service.Spec.Type = corev1.ServiceTypeExternalName
	case w.chance(10):
		service.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	}
	return service
}

func (w world) slice() *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: w.meta("e", 8), AddressType: discoveryv1.AddressType(w.pick("IPv4", "IPv4", "IPv4", "FQDN"))}
	slice.Labels = map[string]string{w.pick(discoveryv1.LabelServiceName, discoveryv1.LabelServiceName, LabelXBackend): fmt.Sprintf("s%d", w.IntN(5))}
	for i := range 1 + w.IntN(3) {
		name, port := fmt.Sprint("p", i), int32(8080+w.IntN(2))
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &name, Port: &port})
	}
	for range w.IntN(4) {
		ready, serving := w.chance(50), w.chance(70)
		endpoint := discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.0.0.%d", w.IntN(6))}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving},
		}
		if w.chance(70) {
			endpoint.TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: fmt.Sprintf("p%d", w.IntN(6))}
		}
		slice.Endpoints = append(slice.Endpoints, endpoint)
	}
	return slice
}

func (w world) policy() *gatewayv1.BackendTLSPolicy {
	policy := &gatewayv1.BackendTLSPolicy{ObjectMeta: w.meta("t", 4)}
	for range 1 + w.IntN(2) {
		target := gatewayv1.LocalPolicyTargetReferenceWithSectionName{}
		target.Kind, target.Name = gatewayv1.Kind(w.pick("Service", "Service", "Service", "XBackend")), gatewayv1.ObjectName(fmt.Sprintf("s%d", w.IntN(5)))
		if section := gatewayv1.SectionName(w.pick("p0", "p1", "none")); w.chance(50) {
			target.SectionName = &section
		}
		policy.Spec.TargetRefs = append(policy.Spec.TargetRefs, target)
	}
	policy.Spec.Validation.Hostname = gatewayv1.PreciseHostname(w.pick("a.com", "b.com", "BAD"))
	for range 1 + w.IntN(2) {
		policy.Spec.Validation.CACertificateRefs = append(policy.Spec.Validation.CACertificateRefs,
			gatewayv1.LocalObjectReference{Kind: gatewayv1.Kind(w.pick("ConfigMap", "ConfigMap", "Secret")), Name: gatewayv1.ObjectName(w.pick("ca0", "ca1"))})
	}
	return policy
}

func (w world) xbackend() *gatewayxv1alpha1.XBackend {
	backend := &gatewayxv1alpha1.XBackend{ObjectMeta: w.meta("s", 5)}
	spec := &backend.Spec
	spec.Type, spec.Port.Number = gatewayxv1alpha1.BackendTypeEndpointSelector, gatewayxv1alpha1.PortNumber(w.IntN(3)+8079)
	spec.EndpointSelector = &gatewayxv1alpha1.EndpointSelectorBackend{}
	spec.EndpointSelector.MatchLabels = map[gatewayv1.LabelKey]gatewayv1.LabelValue{"app": gatewayv1.LabelValue(w.pick("x", "y"))}
	if w.chance(50) {
		name := gatewayv1.CookieName(w.pick("one", "two"))
		spec.SessionPersistence = &gatewayv1.SessionPersistence{Cookie: &gatewayv1.CookieConfig{Name: &name}}
	}
	if w.chance(40) {
		validation := w.policy().Spec.Validation
		spec.TLS = &gatewayxv1alpha1.BackendTLS{Mode: gatewayxv1alpha1.BackendTLSModeServerOnly, Validation: &validation}
		if w.chance(50) {
			spec.TLS.Mode = gatewayxv1alpha1.BackendTLSModeClientAndServer
			spec.TLS.ClientCertificateRef = &gatewayv1.SecretObjectReference{Name: gatewayv1.ObjectName(w.pick("x0", "x1"))}
		}
	}
	return backend
}

func (w world) pod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: w.meta("p", 6)}
	pod.Labels = map[string]string{"app": w.pick("x", "y", "z")}
	pod.Status.PodIPs = []corev1.PodIP{{IP: fmt.Sprintf("10.0.0.%d", w.IntN(6))}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionStatus(w.pick("True", "True", "False"))}}
	return pod
}

func (w world) configMap() *corev1.ConfigMap {
	fresh := bundleOf(w.pick(twoAuthorities()[0], twoAuthorities()[1], "x"))
	fresh.ObjectMeta = w.meta("ca", 2)
	return fresh
}

func (w world) secret() *corev1.Secret {
	fresh := secret(goodPair().crt, w.pick(goodPair().key, goodPair().key, "x"))
	fresh.ObjectMeta = w.meta("x", 2)
	return fresh
}

// others replaces one of some objects without type.
func (w world) others(all []*unstructured.Unstructured) []*unstructured.Unstructured {
	kind := w.pick("UDPRoute", "QUICRoute")
	fresh := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": kind}}
	fresh.SetNamespace(w.pick("a", "b"))
	fresh.SetName(fmt.Sprintf("gw%d", w.IntN(3)))
	parent := map[string]any{"name": fmt.Sprintf("gw%d", w.IntN(3))}
	fresh.Object["spec"] = map[string]any{"parentRef": parent, "parentRefs": []any{parent}}
	same := func(other *unstructured.Unstructured) bool {
		return other.GetKind() == kind && nameOf(other) == nameOf(fresh)
	}
	all = slices.DeleteFunc(slices.Clone(all), same)
	if w.chance(70) {
		all = append(all, fresh)
	}
	return all
}
