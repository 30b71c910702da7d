package cluster

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/limpet-gateway/limpet/internal/apiservertest"
)

// follower keeps what an API source emits.
type follower struct {
	api *API

	mutex     sync.Mutex
	snapshots []Snapshot
	live      []Name
}

func follow(t *testing.T, s *apiservertest.Server, options APIOptions) *follower {
	t.Helper()
	f := &follower{}
	if options.Config == nil {
		options.Config = s.Config
	}
	options.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	options.OnLive = func(name Name) {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		f.live = append(f.live, name)
	}
	var err error
	if f.api, err = NewAPI(options); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.api.Run(ctx, f.emit) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return f
}

func (f *follower) emit(s Snapshot) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.snapshots = append(f.snapshots, s)
}

// last is the newest Snapshot, and how many there were.
func (f *follower) last() (Snapshot, int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.snapshots) == 0 {
		return Snapshot{}, 0
	}
	return f.snapshots[len(f.snapshots)-1], len(f.snapshots)
}

func (f *follower) until(t *testing.T, what string, holds func(Snapshot) bool) Snapshot {
	t.Helper()
	var s Snapshot
	apiservertest.Eventually(t, 30*time.Second, what, func() bool {
		var count int
		s, count = f.last()
		return count > 0 && holds(s)
	})
	return s
}

// quiet waits as long as a Snapshot would take to come.
func quietly() { time.Sleep(10 * together) }

func apply(t *testing.T, s *apiservertest.Server, namespace, text string) {
	t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
		s.Create(t, object)
	}
}

const shop = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}
spec:
  gatewayClassName: limpet
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{name: shop, port: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: shop}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: shop-1, labels: {kubernetes.io/service-name: shop}}
addressType: IPv4
endpoints: [{addresses: [10.1.1.1]}]
ports: [{name: "", port: 8080}]
`

func TestObjectsOfAnAPIServerBecomeSnapshots(t *testing.T) {
	t.Parallel()
	s := apiservertest.Shared(t)
	namespace := s.Namespace(t)
	apply(t, s, namespace, shop)

	f := follow(t, s, APIOptions{})
	first := f.until(t, "a first Snapshot", func(Snapshot) bool { return true })
	gateway, _ := first.Gateways.Get(namespace, "gw")
	route, _ := first.HTTPRoutes.Get(namespace, "shop")
	service, _ := first.Services.Get(namespace, "shop")
	slice, _ := first.EndpointSlices.Get(namespace, "shop-1")
	if gateway == nil || route == nil || service == nil || slice == nil {
		t.Fatalf("the first Snapshot is not complete: %v %v %v %v", gateway, route, service, slice)
	}
	for _, object := range []anyObject{gateway, route, service, slice} {
		if object.GetManagedFields() != nil || object.GetAnnotations() != nil {
			t.Errorf("%s is not trimmed: %v %v", object.GetName(), object.GetManagedFields(), object.GetAnnotations())
		}
	}
	if gateway.Kind != "Gateway" || gateway.APIVersion != "gateway.networking.k8s.io/v1" || service.Kind != "Service" {
		t.Errorf("objects do not say what they are: %v %v", gateway.TypeMeta, service.TypeMeta)
	}
	if kind := route.Spec.ParentRefs[0].Kind; kind == nil || *kind != "Gateway" {
		t.Error("the route lacks the API server's defaults")
	}
	if _, found := first.Namespaces.Get("", namespace); !found {
		t.Error("there is no Namespace")
	}

	// A change gives a new pointer to what changed, and to nothing else.
	route = route.DeepCopy()
	route.Spec.Hostnames = []gatewayv1.Hostname{"shop.example"}
	if err := s.Client.Update(t.Context(), route); err != nil {
		t.Fatal(err)
	}
	second := f.until(t, "the change", func(s Snapshot) bool {
		now, _ := s.HTTPRoutes.Get(namespace, "shop")
		return now != nil && len(now.Spec.Hostnames) == 1
	})
	if now, _ := second.Gateways.Get(namespace, "gw"); now != gateway {
		t.Error("the Gateway has a new pointer")
	}
	if !second.Services.Same(first.Services) && second.Services.All()[0] != first.Services.All()[0] {
		t.Error("a Service has a new pointer")
	}

	if err := s.Client.Delete(t.Context(), route); err != nil {
		t.Fatal(err)
	}
	f.until(t, "that the route is gone", func(s Snapshot) bool {
		_, there := s.HTTPRoutes.Get(namespace, "shop")
		return !there
	})
}

func TestAStatusGivesNoNewSnapshotAndIsSeen(t *testing.T) {
	t.Parallel()
	s := apiservertest.Shared(t)
	namespace := s.Namespace(t)
	apply(t, s, namespace, shop)
	f := follow(t, s, APIOptions{Namespaces: []string{namespace}, Namespace: namespace})
	before := f.until(t, "the Gateway", func(s Snapshot) bool { return len(s.Gateways.All()) > 0 })
	quietly()
	_, count := f.last()

	gateway := &gatewayv1.Gateway{}
	key := types.NamespacedName{Namespace: namespace, Name: "gw"}
	if err := s.Client.Get(t.Context(), key, gateway); err != nil {
		t.Fatal(err)
	}
	gateway.Status.Conditions = []metav1.Condition{{Type: "Accepted", Status: "True", Reason: "Accepted", LastTransitionTime: metav1.Now()}}
	if err := s.Client.Status().Update(t.Context(), gateway); err != nil {
		t.Fatal(err)
	}
	name := Name{"Gateway", key}
	apiservertest.Eventually(t, 10*time.Second, "the live status", func() bool {
		live, _ := f.api.Live(name)
		return strings.Contains(string(live.Status), `"reason":"Accepted"`) && live.ResourceVersion == gateway.ResourceVersion
	})
	quietly()
	after, now := f.last()
	if now != count {
		t.Errorf("%d Snapshots more", now-count)
	}
	if !after.Gateways.Same(before.Gateways) {
		t.Error("the Gateway has a new pointer")
	}
	if after.Gateways.All()[0].Status.Conditions != nil {
		t.Error("a Snapshot shows a status")
	}

	// What changes next is shown without what was only a status.
	gateway.Labels = map[string]string{"a": "b"}
	if err := s.Client.Update(t.Context(), gateway); err != nil {
		t.Fatal(err)
	}
	f.until(t, "the label", func(s Snapshot) bool { return s.Gateways.All()[0].Labels["a"] == "b" })
}

func TestSecretsAreReadWhenSomebodyNamesThem(t *testing.T) {
	t.Parallel()
	s := apiservertest.Shared(t)
	namespace := s.Namespace(t)
	apply(t, s, namespace, `
apiVersion: v1
kind: Secret
metadata: {name: nobodys}
stringData: {a: b}
---
apiVersion: v1
kind: Secret
metadata: {name: named}
stringData: {a: b}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ca}
data: {ca.crt: text}
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: policy}
spec:
  targetRefs: [{group: "", kind: Service, name: shop}]
  validation: {hostname: shop.example, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: limpet
  listeners:
  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: named}, {name: late}]}}
`)
	f := follow(t, s, APIOptions{Namespaces: []string{namespace}, Namespace: namespace})
	first := f.until(t, "a Snapshot", func(Snapshot) bool { return true })
	if all := first.Secrets.All(); len(all) != 1 || all[0].Name != "named" || string(all[0].Data["a"]) != "b" {
		t.Errorf("Secrets %v", all)
	}
	if ca, _ := first.ConfigMaps.Get(namespace, "ca"); ca == nil || ca.Data["ca.crt"] != "text" {
		t.Errorf("the ConfigMap is %v", ca)
	}

	apply(t, s, namespace, "apiVersion: v1\nkind: Secret\nmetadata: {name: late}\nstringData: {c: d}\n")
	f.until(t, "the Secret that came late", func(s Snapshot) bool {
		late, _ := s.Secrets.Get(namespace, "late")
		return late != nil && string(late.Data["c"]) == "d"
	})
	late := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "late"}, Data: map[string][]byte{"c": []byte("e")}}
	if err := s.Client.Update(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	f.until(t, "its new content", func(s Snapshot) bool {
		late, _ := s.Secrets.Get(namespace, "late")
		return late != nil && string(late.Data["c"]) == "e"
	})
	if err := s.Client.Delete(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	f.until(t, "that it is gone", func(s Snapshot) bool {
		_, there := s.Secrets.Get(namespace, "late")
		return !there
	})
	if _, there := f.api.contents.got[Name{"Secret", types.NamespacedName{Namespace: namespace, Name: "nobodys"}}]; there {
		t.Error("a Secret was read that nobody names")
	}
}

func TestWhatIsOursIsKeptApart(t *testing.T) {
	t.Parallel()
	s := apiservertest.Shared(t)
	ours, theirs := s.Namespace(t), s.Namespace(t)
	pod := func(namespace, name string, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
	}
	mine := map[string]string{"app": "limpet"}
	s.Create(t, pod(ours, "replica", mine), pod(ours, "other", nil), pod(theirs, "fake", mine),
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: theirs, Name: "gw-limpet", Labels: map[string]string{LabelManagedBy: ManagedBy}},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: theirs, Name: "shop"},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: theirs, Name: "gw-limpet-v4",
			Labels: map[string]string{discoveryv1.LabelManagedBy: SliceManagedBy}}, AddressType: discoveryv1.AddressTypeIPv4},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ours, Name: "ports"}, Data: map[string]string{"10000": "a/gw:80"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ours, Name: "private"}},
	)
	f := follow(t, s, APIOptions{
		Namespaces: []string{theirs}, Namespace: ours, PortsConfigMap: "ports", PodSelector: labels.SelectorFromSet(mine),
	})
	first := f.until(t, "a Snapshot", func(Snapshot) bool { return true })
	if pods := first.Replicas.All(); len(pods) != 1 || pods[0].Name != "replica" || len(first.Pods.All()) != 0 {
		t.Errorf("replicas %v, pods %v", pods, first.Pods.All())
	}
	if all := first.Services.All(); len(all) != 1 || all[0].Name != "shop" {
		t.Errorf("Services %v", all)
	}
	if len(first.Exposed.Services.All()) != 1 || len(first.Exposed.EndpointSlices.All()) != 1 || len(first.EndpointSlices.All()) != 0 {
		t.Errorf("exposed %v", first.Exposed)
	}
	if first.Ports.Port("a/gw:80") != 10000 {
		t.Errorf("ports %v", first.Ports)
	}

	// Whoever takes the label off makes it one of the users', and back.
	service := &corev1.Service{}
	if err := s.Client.Get(t.Context(), types.NamespacedName{Namespace: theirs, Name: "gw-limpet"}, service); err != nil {
		t.Fatal(err)
	}
	service.Labels = nil
	if err := s.Client.Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	f.until(t, "the Service among users'", func(s Snapshot) bool {
		return len(s.Services.All()) == 2 && len(s.Exposed.Services.All()) == 0
	})
	if err := s.Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ours, Name: "ports"}}); err != nil {
		t.Fatal(err)
	}
	f.until(t, "that the table stays without its ConfigMap", func(s Snapshot) bool {
		_, there := s.ConfigMaps.Get(ours, "ports")
		return !there && s.Ports.Port("a/gw:80") == 10000
	})
}

func TestConstantChangeStarvesNobody(t *testing.T) {
	t.Parallel()
	s := apiservertest.Shared(t)
	namespace := s.Namespace(t)
	f := follow(t, s, APIOptions{Namespaces: []string{namespace}, Namespace: namespace})
	f.until(t, "a Snapshot", func(Snapshot) bool { return true })
	_, before := f.last()
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}, AddressType: discoveryv1.AddressTypeIPv4}
	s.Create(t, slice)
	changes := 0
	for start := time.Now(); time.Since(start) < 2*time.Second; changes++ {
		slice.Labels = map[string]string{"n": time.Now().Format("150405.000000000")}
		if err := s.Client.Update(t.Context(), slice); err != nil {
			t.Fatal(err)
		}
	}
	quietly()
	_, after := f.last()
	if snapshots := after - before; snapshots < 5 || snapshots > 30 {
		t.Errorf("%d changes in 2 s made %d Snapshots", changes, snapshots)
	}
}
