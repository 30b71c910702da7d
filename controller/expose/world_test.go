package expose

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"
	"sigs.k8s.io/yaml"

	limpetv1alpha1 "github.com/limpet-gateway/limpet/api/v1alpha1"
	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
)

const (
	ourNamespace = "limpet-system"
	portsName    = "limpet-ports"
	noon         = 1764590400
)

// world is the objects of a cluster, and what an API server does with them as far as it matters here.
type world struct {
	objects map[string]client.Object
	version int
	now     time.Time
	options Options
	builder *graph.Builder
	table   *cluster.PortTable
}

func newWorld(t testing.TB, documents ...string) *world {
	t.Helper()
	w := &world{
		objects: make(map[string]client.Object), now: time.Unix(noon, 0),
		options: Options{Namespace: ourNamespace, PortsConfigMap: portsName, Pod: "limpet-a", ServiceType: corev1.ServiceTypeClusterIP},
		builder: graph.NewBuilder(graph.Options{Pod: graph.NewPod([]netip.Addr{netip.MustParseAddr("10.0.0.1")})}),
	}
	w.add(t, documents...)
	return w
}

func idOf(object client.Object) string {
	return kindOf(object) + " " + object.GetNamespace() + "/" + object.GetName()
}

// add adds objects, or replaces those of the same name.
func (w *world) add(t testing.TB, documents ...string) {
	t.Helper()
	for _, document := range strings.Split(strings.Join(documents, "\n---\n"), "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		var head metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		object := map[string]client.Object{
			"GatewayClass": &gatewayv1.GatewayClass{}, "Gateway": &gatewayv1.Gateway{}, "ListenerSet": &gatewayv1.ListenerSet{},
			"HTTPRoute": &gatewayv1.HTTPRoute{}, "XBackend": &gatewayxv1alpha1.XBackend{}, "Pod": &corev1.Pod{},
			"Service": &corev1.Service{}, "EndpointSlice": &discoveryv1.EndpointSlice{}, "ConfigMap": &corev1.ConfigMap{},
			"LimpetParameters": &limpetv1alpha1.LimpetParameters{},
		}[head.Kind]
		if object == nil {
			t.Fatalf("no kind of these tests: %s", head.Kind)
		}
		if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		w.put(object)
	}
}

// put stores an object as an API server does.
func (w *world) put(object client.Object) {
	w.version++
	object.SetResourceVersion(fmt.Sprint(w.version))
	if object.GetName() == "" {
		object.SetName(object.GetGenerateName() + "x" + fmt.Sprint(w.version))
	}
	if object.GetUID() == "" {
		object.SetUID(types.UID("uid-of-" + strings.ToLower(kindOf(object)) + "-" + object.GetName()))
	}
	if service, is := object.(*corev1.Service); is && service.Spec.ClusterIP == "" {
		service.Spec.ClusterIP = fmt.Sprintf("10.96.0.%d", w.version)
		service.Spec.ClusterIPs = []string{service.Spec.ClusterIP}
	}
	w.objects[idOf(object)] = object
}

func all[T client.Object](w *world, keep func(T) bool) []T {
	var found []T
	for _, object := range w.objects {
		if one, is := object.(T); is && (keep == nil || keep(one)) {
			found = append(found, one)
		}
	}
	return found
}

func (w *world) snapshot() cluster.Snapshot {
	services := func(exposed bool) cluster.Objects[*corev1.Service] {
		return cluster.NewObjects(all(w, func(s *corev1.Service) bool { return cluster.IsExposed(s) == exposed })...)
	}
	slices := func(exposed bool) cluster.Objects[*discoveryv1.EndpointSlice] {
		return cluster.NewObjects(all(w, func(s *discoveryv1.EndpointSlice) bool { return cluster.IsExposed(s) == exposed })...)
	}
	table, _ := w.objects["ConfigMap "+ourNamespace+"/"+portsName].(*corev1.ConfigMap)
	w.table = cluster.ReadPorts(table, w.table)
	return cluster.Snapshot{
		GatewayClasses: cluster.NewObjects(all[*gatewayv1.GatewayClass](w, nil)...),
		Gateways:       cluster.NewObjects(all[*gatewayv1.Gateway](w, nil)...),
		ListenerSets:   cluster.NewObjects(all[*gatewayv1.ListenerSet](w, nil)...),
		HTTPRoutes:     cluster.NewObjects(all[*gatewayv1.HTTPRoute](w, nil)...),
		XBackends:      cluster.NewObjects(all[*gatewayxv1alpha1.XBackend](w, nil)...),
		Parameters:     cluster.NewObjects(all[*limpetv1alpha1.LimpetParameters](w, nil)...),
		Replicas:       cluster.NewObjects(all[*corev1.Pod](w, nil)...),
		Services:       services(false), EndpointSlices: slices(false), Ports: w.table,
		Exposed: cluster.Exposed{Services: services(true), EndpointSlices: slices(true)},
	}
}

func (w *world) compute() *Wanted {
	snapshot := w.snapshot()
	return Compute(w.builder.Build(snapshot), snapshot, w.options, w.now)
}

// apply makes changes as a Writer does.
func (w *world) apply(t testing.TB, changes []Change) {
	t.Helper()
	for _, change := range changes {
		is := w.objects[idOf(change.Object)]
		switch {
		case change.Verb == Delete:
			if is == nil || !ours(is, change.Owner) {
				t.Fatalf("deletes what is not its own: %s", change.Key())
			}
			delete(w.objects, idOf(change.Object))
		case is == nil || change.Verb == PutOne:
			w.put(change.Object.DeepCopyObject().(client.Object))
		default:
			w.merge(t, is.DeepCopyObject().(client.Object), change)
		}
	}
}

func (w *world) merge(t testing.TB, is client.Object, change Change) {
	t.Helper()
	switch want := change.Object.(type) {
	case *corev1.Service:
		if !ours(is, change.Owner) {
			return
		}
		if mustRecreate(is.(*corev1.Service), want) {
			is = want.DeepCopy()
		} else {
			mergeService(is.(*corev1.Service), want)
		}
	case *discoveryv1.EndpointSlice:
		if !ours(is, change.Owner) {
			return
		}
		mergeSlice(is.(*discoveryv1.EndpointSlice), want)
	case *corev1.ConfigMap:
		if is.GetResourceVersion() != want.ResourceVersion {
			t.Fatalf("writes a table of version %s over one of version %s", want.ResourceVersion, is.GetResourceVersion())
		}
		is = want.DeepCopy()
	}
	w.put(is)
}

// settle computes and applies until nothing is wanted any more.
func (w *world) settle(t testing.TB) *Wanted {
	t.Helper()
	for range 5 {
		wanted := w.compute()
		if len(wanted.Changes) == 0 {
			return wanted
		}
		w.apply(t, wanted.Changes)
	}
	var keys []string
	for _, change := range w.compute().Changes {
		keys = append(keys, string(change.Verb)+" "+change.Key())
	}
	t.Fatalf("there is no end of changes: %s", strings.Join(keys, ", "))
	return nil
}

func get[T client.Object](t testing.TB, w *world, id string) T {
	t.Helper()
	object, is := w.objects[id].(T)
	if !is {
		t.Fatalf("no %s among %s", id, strings.Join(slices.Sorted(func(yield func(string) bool) {
			for id := range w.objects {
				if !yield(id) {
					return
				}
			}
		}), ", "))
	}
	return object
}

func keys(wanted *Wanted) string {
	var all []string
	for _, change := range wanted.Changes {
		all = append(all, string(change.Verb)+" "+change.Key())
	}
	return strings.Join(all, ", ")
}

const class = `
kind: GatewayClass
metadata: {name: limpet, generation: 1}
spec: {controllerName: limpet.dev/gateway-controller}
`

func gatewayNamed(name, spec string) string {
	return fmt.Sprintf("\n---\nkind: Gateway\nmetadata: {name: %s, namespace: default, uid: uid-of-gateway-%s}\nspec:\n  gatewayClassName: limpet\n  %s\n",
		name, name, spec)
}

const httpListener = "listeners: [{name: http, port: 80, protocol: HTTP}]"

// pod is a replica: haproxy says whether HAProxy in it is ready.
func pod(name string, number int, haproxy bool) string {
	return fmt.Sprintf(`
---
kind: Pod
metadata: {name: %s, namespace: limpet-system, uid: uid-of-%s}
spec: {nodeName: node-%d}
status:
  phase: Running
  podIPs: [{ip: 10.0.0.%d}]
  containerStatuses: [{name: haproxy, ready: %t}]
`, name, name, number, number, haproxy)
}
