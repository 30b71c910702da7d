package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/dataplane/haproxy/haproxytest"
	"github.com/limpet-gateway/limpet/internal/apiservertest"
)

// installation is Limpet in a cluster of one namespace, with a class of its own.
type installation struct {
	server     *apiservertest.Server
	namespace  string
	controller string
	class      string
	port       uint16
	options    KubernetesOptions
	log        lockedBuffer
}

type lockedBuffer struct {
	mutex sync.Mutex
	text  strings.Builder
}

func (b *lockedBuffer) Write(data []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(data)
}

func (b *lockedBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}

// install prepares an installation, and does not start it.
func install(t *testing.T, s *apiservertest.Server) *installation {
	t.Helper()
	i := &installation{server: s, namespace: s.Namespace(t)}
	i.controller, i.class = "limpet.dev/"+i.namespace, i.namespace
	i.port = netip.MustParseAddrPort(haproxytest.Address(t)).Port()
	i.options = KubernetesOptions{
		Config: s.Config, HAProxy: haproxytest.Binary(t), Namespace: i.namespace, Pod: "limpet-0",
		WatchNamespaces: []string{i.namespace}, PodSelector: labels.SelectorFromSet(labels.Set{"app": "limpet"}),
		KeysSecret: "keys", PortsConfigMap: "ports", Lease: "limpet", Graph: graph.Options{ControllerName: i.controller},
	}
	i.apply(t, fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: %s}
spec: {controllerName: %s}
`, i.class, i.controller))
	return i
}

// run runs one replica until the returned function is called, or the test ends.
func (i *installation) run(t *testing.T, pod string) (stop func()) {
	t.Helper()
	o := i.options
	o.Dir, o.Pod = haproxytest.Dir(t), pod
	o.Log = slog.New(slog.NewTextHandler(&i.log, nil)).With("pod", pod)
	ctx, cancel := context.WithCancel(context.Background())
	grace, cancelGrace := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Kubernetes(ctx, grace, o) }()
	stop = sync.OnceFunc(func() {
		cancel()
		cancelGrace()
		if err := <-ended; err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Log(i.log.String())
		}
	})
	return stop
}

// apply creates objects, or replaces their specs.
func (i *installation) apply(t *testing.T, manifests string) {
	t.Helper()
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if object.GetKind() != "GatewayClass" {
			object.SetNamespace(i.namespace)
		}
		err := i.server.Client.Create(t.Context(), object.DeepCopy())
		if apierrors.IsAlreadyExists(err) {
			err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				live := object.DeepCopy()
				if err := i.server.Client.Get(t.Context(), client.ObjectKeyFromObject(object), live); err != nil {
					return err
				}
				object.SetResourceVersion(live.GetResourceVersion())
				return i.server.Client.Update(t.Context(), object)
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (i *installation) shop() string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: %s
  listeners: [{name: http, port: %d, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop}
spec:
  parentRefs: [{name: gw}]
  rules: [{filters: [{type: RequestRedirect, requestRedirect: {statusCode: 302, path: {type: ReplaceFullPath, replaceFullPath: /to}}}]}]
`, i.class, i.port)
}

func request(t *testing.T, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// answers waits until a request is answered with that status.
func (i *installation) answers(t *testing.T, path string, status int) {
	t.Helper()
	apiservertest.Eventually(t, 30*time.Second, fmt.Sprintf("%s is answered with %d", path, status), func() bool {
		response, err := http.DefaultTransport.RoundTrip(request(t, fmt.Sprintf("http://127.0.0.1:%d%s", i.port, path)))
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == status
	})
}

func (i *installation) route(t *testing.T, name string) *gatewayv1.HTTPRoute {
	t.Helper()
	route := &gatewayv1.HTTPRoute{}
	if err := i.server.Client.Get(t.Context(), types.NamespacedName{Namespace: i.namespace, Name: name}, route); err != nil {
		t.Fatal(err)
	}
	return route
}

func (i *installation) gateway(t *testing.T) *gatewayv1.Gateway {
	t.Helper()
	gateway := &gatewayv1.Gateway{}
	if err := i.server.Client.Get(t.Context(), types.NamespacedName{Namespace: i.namespace, Name: "gw"}, gateway); err != nil {
		t.Fatal(err)
	}
	return gateway
}

// condition is the status of a condition, with its generation: "True 1".
func condition(list []metav1.Condition, kind string) string {
	for _, c := range list {
		if c.Type == kind {
			return fmt.Sprintf("%s %d", c.Status, c.ObservedGeneration)
		}
	}
	return ""
}

// watched counts the changes of an object's status.
type statusWatch struct {
	mutex    sync.Mutex
	statuses []any
}

func watchStatus(t *testing.T, i *installation, resource, name string) *statusWatch {
	t.Helper()
	clients, err := dynamic.NewForConfig(i.server.Config)
	if err != nil {
		t.Fatal(err)
	}
	of := clients.Resource(schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: resource}).Namespace(i.namespace)
	watch, err := of.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	w := &statusWatch{}
	go func() {
		for event := range watch.ResultChan() {
			if object, is := event.Object.(*unstructured.Unstructured); is {
				w.mutex.Lock()
				if status := object.Object["status"]; len(w.statuses) == 0 || !reflect.DeepEqual(w.statuses[len(w.statuses)-1], status) {
					w.statuses = append(w.statuses, status)
				}
				w.mutex.Unlock()
			}
		}
	}()
	t.Cleanup(watch.Stop)
	return w
}

func (w *statusWatch) count() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return len(w.statuses)
}

func TestAClusterIsServedAndToldSo(t *testing.T) {
	s := apiservertest.Shared(t)
	i := install(t, s)
	i.apply(t, i.shop())
	gateways, routes := watchStatus(t, i, "gateways", "gw"), watchStatus(t, i, "httproutes", "shop")
	i.run(t, "limpet-0")
	i.answers(t, "/", http.StatusFound)

	apiservertest.Eventually(t, 20*time.Second, "the statuses", func() bool {
		gateway, route := i.gateway(t), i.route(t, "shop")
		return condition(gateway.Status.Conditions, "Programmed") == "True 1" && len(route.Status.Parents) == 1 &&
			condition(route.Status.Parents[0].Conditions, "Accepted") == "True 1"
	})
	class := &gatewayv1.GatewayClass{}
	if err := s.Client.Get(t.Context(), types.NamespacedName{Name: i.class}, class); err != nil {
		t.Fatal(err)
	}
	if len(class.Status.SupportedFeatures) < 40 || condition(class.Status.Conditions, "Accepted") != "True 1" {
		t.Errorf("the class: %+v", class.Status)
	}

	// One change of each object's: the first status. The one before is that of the API server's defaults.
	time.Sleep(time.Second)
	if count := gateways.count(); count > 3 {
		t.Errorf("%d statuses of the Gateway: %v", count, gateways.statuses)
	}
	if count := routes.count(); count > 3 {
		t.Errorf("%d statuses of the route", count)
	}
	before := gateways.count() + routes.count()
	i.apply(t, strings.Replace(i.shop(), "rules: [{", "rules: [{matches: [{path: {value: /shop}}], ", 1))
	i.answers(t, "/shop", http.StatusFound)
	i.answers(t, "/", http.StatusNotFound)
	apiservertest.Eventually(t, 20*time.Second, "the new generation", func() bool {
		return condition(i.route(t, "shop").Status.Parents[0].Conditions, "Accepted") == "True 2"
	})
	time.Sleep(time.Second)
	if more := gateways.count() + routes.count() - before; more > 2 {
		t.Errorf("a change of a route took %d statuses", more)
	}
}

func TestUsersAreToldOfTheirMistakesByEvents(t *testing.T) {
	s := apiservertest.Shared(t)
	i := install(t, s)
	i.run(t, "limpet-0")
	i.apply(t, strings.Replace(i.shop(), "rules: [{", "rules: [{matches: [{path: {value: /typo}}], backendRefs: [{name: typo, port: 80}]}, {", 1))
	apiservertest.Eventually(t, 30*time.Second, "an Event", func() bool {
		all := &eventsv1.EventList{}
		if err := s.Client.List(t.Context(), all, client.InNamespace(i.namespace)); err != nil {
			t.Fatal(err)
		}
		for _, event := range all.Items {
			if event.Regarding.Name == "shop" && event.Reason == "BackendNotFound" && event.Type == corev1.EventTypeWarning {
				return strings.Contains(event.Note, "typo")
			}
		}
		return false
	})
}

func TestKeysAreMadeOnceAndMadeAgain(t *testing.T) {
	s := apiservertest.Shared(t)
	i := install(t, s)
	name := types.NamespacedName{Namespace: i.namespace, Name: "keys"}
	var all []*keySecret
	var group sync.WaitGroup
	for range 4 {
		one := &keySecret{client: s.Client, name: name, log: slog.New(slog.DiscardHandler)}
		all = append(all, one)
		group.Go(func() {
			if _, err := one.load(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, one := range all[1:] {
		if !reflect.DeepEqual(one.data, all[0].data) {
			t.Fatal("two replicas have different keys")
		}
	}
	if err := s.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}); err != nil {
		t.Fatal(err)
	}
	all[1].keepOnce(t.Context())
	again := &keySecret{client: s.Client, name: name, log: slog.New(slog.DiscardHandler)}
	if _, err := again.load(t.Context()); err != nil || !reflect.DeepEqual(again.data, all[0].data) {
		t.Errorf("after it was deleted, the keys are other ones (%v)", err)
	}
}

// TestTwoControllersOfOneRoute has a tiny second controller, which writes what it has to say as anybody would.
func TestTwoControllersOfOneRoute(t *testing.T) {
	s := apiservertest.Shared(t)
	i := install(t, s)
	i.apply(t, i.shop())
	route := i.route(t, "shop")
	theirs := gatewayv1.RouteParentStatus{
		ParentRef: gatewayv1.ParentReference{Name: "other"}, ControllerName: "example.org/other",
		Conditions: []metav1.Condition{{Type: "Accepted", Status: "True", Reason: "Theirs", LastTransitionTime: metav1.NewTime(time.Unix(1e9, 0))}},
	}
	route.Status.Parents = []gatewayv1.RouteParentStatus{theirs}
	if err := s.Client.Status().Update(t.Context(), route); err != nil {
		t.Fatal(err)
	}
	// It also has something to say about the Gateway, of which it is no controller.
	gateway := i.gateway(t)
	foreign := metav1.Condition{Type: "example.org/Checked", Status: "False", Reason: "Theirs", LastTransitionTime: metav1.NewTime(time.Unix(1e9, 0))}
	gateway.Status.Conditions = append(gateway.Status.Conditions, foreign)
	if err := s.Client.Status().Update(t.Context(), gateway); err != nil {
		t.Fatal(err)
	}
	wantCondition := raw(t, foreign)

	i.run(t, "limpet-0")
	ours := func(route *gatewayv1.HTTPRoute) *gatewayv1.RouteParentStatus {
		for at := range route.Status.Parents {
			if string(route.Status.Parents[at].ControllerName) == i.controller {
				return &route.Status.Parents[at]
			}
		}
		return nil
	}
	apiservertest.Eventually(t, 30*time.Second, "our entry", func() bool { return ours(i.route(t, "shop")) != nil })

	// Both write, again and again.
	for generation := range 10 {
		route := i.route(t, "shop")
		for at := range route.Status.Parents {
			if route.Status.Parents[at].ControllerName == "example.org/other" {
				route.Status.Parents[at].Conditions[0].Message = fmt.Sprint(generation)
			}
		}
		_ = s.Client.Status().Update(t.Context(), route) // It may lose to ours, and tries again.
		i.apply(t, strings.Replace(i.shop(), "rules: [{", fmt.Sprintf("rules: [{matches: [{path: {value: /%d}}], ", generation), 1))
	}
	apiservertest.Eventually(t, 30*time.Second, "our entry of the last generation", func() bool {
		route := i.route(t, "shop")
		mine := ours(route)
		return mine != nil && condition(mine.Conditions, "Accepted") == fmt.Sprintf("True %d", route.Generation)
	})
	route = i.route(t, "shop")
	if len(route.Status.Parents) != 2 || route.Status.Parents[0].ControllerName != "example.org/other" {
		t.Fatalf("parents %+v", route.Status.Parents)
	}
	if got := route.Status.Parents[0]; got.Conditions[0].LastTransitionTime != theirs.Conditions[0].LastTransitionTime || got.ParentRef.Name != "other" {
		t.Errorf("the entry of the other one is %+v", got)
	}
	found := false
	for _, c := range i.gateway(t).Status.Conditions {
		if c.Type == foreign.Type {
			found = raw(t, c) == wantCondition
		}
	}
	if !found {
		t.Errorf("its condition is gone or changed: %+v", i.gateway(t).Status.Conditions)
	}

	// When the Gateway is ours no more, our entry goes and theirs stays.
	if err := s.Client.Delete(t.Context(), i.gateway(t)); err != nil {
		t.Fatal(err)
	}
	apiservertest.Eventually(t, 30*time.Second, "our entry is gone", func() bool {
		route := i.route(t, "shop")
		return ours(route) == nil && len(route.Status.Parents) == 1
	})
}

func raw(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
