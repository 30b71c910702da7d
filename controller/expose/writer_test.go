package expose

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/internal/apiservertest"
)

// onServer is a world whose objects an API server holds.
type onServer struct {
	*world
	server    *apiservertest.Server
	namespace string
	exposers  []*Exposer
	changed   atomic.Int32
}

// newOnServer starts a replica for each of those who lead, in order, as pods limpet-a, limpet-b and so on.
func newOnServer(t *testing.T, leads ...func() bool) *onServer {
	t.Helper()
	server := apiservertest.Shared(t)
	r := &onServer{world: newWorld(t, class, pod("limpet-a", 1, true)), server: server, namespace: server.Namespace(t)}
	r.options.Namespace = r.namespace
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{}, len(leads))
	for i, lead := range leads {
		options := r.options
		options.Pod = "limpet-" + string(rune('a'+i))
		e := New(options, WriterOptions{
			Client: server.Client, Leading: lead, Delay: 200 * time.Millisecond, Patience: time.Second,
			Changed: func() { r.changed.Add(1) },
		})
		r.exposers = append(r.exposers, e)
		go func() { e.Run(ctx); done <- struct{}{} }()
	}
	t.Cleanup(func() {
		cancel()
		for range leads {
			<-done
		}
	})
	return r
}

func always() bool { return true }
func never() bool  { return false }

// gateway is a Gateway that exists at the server, too.
func (r *onServer) gateway(t *testing.T, name, spec string) *gatewayv1.Gateway {
	t.Helper()
	r.add(t, gatewayNamed(name, spec))
	gateway := get[*gatewayv1.Gateway](t, r.world, "Gateway default/"+name)
	delete(r.objects, idOf(gateway))
	gateway = gateway.DeepCopy()
	gateway.Namespace, gateway.UID, gateway.ResourceVersion = r.namespace, "", ""
	r.server.Create(t, gateway)
	gateway.TypeMeta = metav1.TypeMeta{APIVersion: gatewayv1.GroupVersion.String(), Kind: "Gateway"}
	r.objects[idOf(gateway)] = gateway
	return gateway
}

// look takes what the server holds into the Snapshot, and tells the replicas.
func (r *onServer) look(t *testing.T) {
	t.Helper()
	var services corev1.ServiceList
	var slices discoveryv1.EndpointSliceList
	var table corev1.ConfigMap
	for _, list := range []client.ObjectList{&services, &slices} {
		if err := r.server.Client.List(t.Context(), list, client.InNamespace(r.namespace)); err != nil {
			t.Fatal(err)
		}
	}
	s := r.snapshot()
	var exposed, users []*corev1.Service
	for i := range services.Items {
		if one := &services.Items[i]; cluster.IsExposed(one) {
			exposed = append(exposed, one)
		} else {
			users = append(users, one)
		}
	}
	var exposedSlices, usersSlices []*discoveryv1.EndpointSlice
	for i := range slices.Items {
		if one := &slices.Items[i]; cluster.IsExposed(one) {
			exposedSlices = append(exposedSlices, one)
		} else {
			usersSlices = append(usersSlices, one)
		}
	}
	s.Services, s.EndpointSlices = cluster.NewObjects(users...), cluster.NewObjects(usersSlices...)
	s.Exposed = cluster.Exposed{Services: cluster.NewObjects(exposed...), EndpointSlices: cluster.NewObjects(exposedSlices...)}
	switch err := r.server.Client.Get(t.Context(), types.NamespacedName{Namespace: r.namespace, Name: portsName}, &table); {
	case apierrors.IsNotFound(err):
		r.table = cluster.ReadPorts(nil, r.table)
	case err != nil:
		t.Fatal(err)
	default:
		r.table = cluster.ReadPorts(&table, r.table)
	}
	s.Ports = r.table
	g := r.builder.Build(s)
	for _, e := range r.exposers {
		e.Expose(g, s)
	}
}

// until looks until something holds.
func (r *onServer) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	apiservertest.Eventually(t, 30*time.Second, what, func() bool {
		r.look(t)
		return holds()
	})
}

func (r *onServer) exposure(name string) Exposure {
	return r.exposers[0].Exposures()[types.NamespacedName{Namespace: r.namespace, Name: name}]
}

func (r *onServer) service(t *testing.T, name string) *corev1.Service {
	t.Helper()
	service := &corev1.Service{}
	if err := r.server.Client.Get(t.Context(), types.NamespacedName{Namespace: r.namespace, Name: name}, service); err != nil {
		t.Fatal(err)
	}
	return service
}

func TestAServerGivesAGatewayItsAddress(t *testing.T) {
	t.Parallel()
	r := newOnServer(t, always)
	r.gateway(t, "gw", httpListener)
	r.until(t, "gw has an address", func() bool { return len(r.exposure("gw").Addresses) == 1 && r.exposure("gw").Reason == "" })
	r.until(t, "nothing is wanted", func() bool { return len(r.exposers[0].wanted.Changes) == 0 })

	service := r.service(t, "gw-limpet")
	before := service.ResourceVersion
	for range 3 {
		r.look(t)
	}
	if after := r.service(t, "gw-limpet").ResourceVersion; after != before {
		t.Errorf("a Service that was right was written: version %s became %s", before, after)
	}

	// A tenant leads the Service to another port, selects pods of his own and takes the labels off.
	service.Spec.Ports[0].TargetPort = intstr.FromInt32(10001)
	service.Spec.Selector, service.Labels = map[string]string{"app": "mine"}, nil
	if err := r.server.Client.Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	r.until(t, "the Service is repaired", func() bool {
		is := r.service(t, "gw-limpet")
		return is.Spec.Ports[0].TargetPort.IntVal == 10000 && len(is.Spec.Selector) == 0 && cluster.IsExposed(is)
	})
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "gw-limpet-v4"}}
	if err := r.server.Client.Delete(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	r.until(t, "the slice is back", func() bool {
		return r.server.Client.Get(t.Context(), client.ObjectKeyFromObject(slice), slice) == nil
	})
}

func TestAServersRefusalIsTold(t *testing.T) {
	t.Parallel()
	r := newOnServer(t, always)
	r.gateway(t, "unusable", httpListener+"\n  addresses: [{value: 192.0.2.1}]")
	r.gateway(t, "neighbour", httpListener)
	r.gateway(t, "taken", httpListener)
	r.server.Create(t, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "taken-limpet"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "mine"}, Ports: []corev1.ServicePort{{Port: 80}}},
	})
	r.until(t, "the neighbour has an address", func() bool { return r.exposure("neighbour").Reason == "" })
	r.until(t, "an address outside is not usable", func() bool {
		return r.exposure("unusable").Reason == gatewayv1.GatewayReasonAddressNotUsable && r.changed.Load() > 0
	})
	r.until(t, "a name that is taken is told", func() bool {
		return r.exposure("taken").Problem == "Service taken-limpet belongs to somebody else and is left alone: delete it, or give the Gateway another name."
	})
	if service := r.service(t, "taken-limpet"); service.Spec.Selector["app"] != "mine" || len(service.Labels) > 0 {
		t.Errorf("somebody else's Service was touched: %+v", service)
	}
}

func TestAnAddressIsChangedOnlyForOneThatCanBeHad(t *testing.T) {
	t.Parallel()
	r := newOnServer(t, always)
	gateway := r.gateway(t, "gw", httpListener)
	r.until(t, "gw has an address", func() bool { return r.exposure("gw").Reason == "" })
	first := r.service(t, "gw-limpet")
	ask := func(value string) {
		changed := gateway.DeepCopy()
		changed.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: value}}
		r.objects[idOf(changed)] = changed
	}
	ask("192.0.2.1")
	r.until(t, "that is not usable", func() bool {
		return r.exposure("gw").Reason == gatewayv1.GatewayReasonAddressNotUsable && r.changed.Load() > 0
	})
	if is := r.service(t, "gw-limpet"); is.UID != first.UID {
		t.Error("the Service was given up for an address that cannot be had")
	}
	// One that is free: that of a Service which is gone.
	spare := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "spare"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	r.server.Create(t, spare)
	if err := r.server.Client.Delete(t.Context(), spare); err != nil {
		t.Fatal(err)
	}
	ask(spare.Spec.ClusterIP)
	r.until(t, "gw has the address "+spare.Spec.ClusterIP, func() bool {
		e := r.exposure("gw")
		return e.Reason == "" && len(e.Addresses) == 1 && e.Addresses[0].Value == spare.Spec.ClusterIP
	})
}

func TestAQuotaIsTold(t *testing.T) {
	t.Parallel()
	r := newOnServer(t, always)
	none := resource.MustParse("0")
	r.server.Create(t, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceServices: none}},
	})
	quota := &corev1.ResourceQuota{}
	if err := r.server.Client.Get(t.Context(), types.NamespacedName{Namespace: r.namespace, Name: "none"}, quota); err != nil {
		t.Fatal(err)
	}
	// No controller keeps the quota's status in these tests.
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{corev1.ResourceServices: none}}
	if err := r.server.Client.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	r.gateway(t, "gw", httpListener)
	r.until(t, "the quota is told", func() bool { return r.exposure("gw").Reason == gatewayv1.GatewayReasonNoResources })
}

// TestReplicasAgree: all replicas want the same, and each would do it; there is one of everything.
func TestReplicasAgree(t *testing.T) {
	t.Parallel()
	r := newOnServer(t, never, never)
	r.add(t, pod("limpet-b", 2, true))
	r.gateway(t, "a", httpListener)
	r.gateway(t, "b", httpListener)
	r.until(t, "both have addresses without a leader", func() bool { return r.exposure("a").Reason == "" && r.exposure("b").Reason == "" })
	r.until(t, "nothing is wanted", func() bool { return len(r.exposers[0].wanted.Changes) == 0 })
	before := r.table.Data()

	table := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: portsName}}
	if err := r.server.Client.Delete(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	r.until(t, "the table is back", func() bool { return r.table.Version() != "" && len(r.table.Data()) == 2 })
	if after := r.table.Data(); after["10000"] != before["10000"] || after["10001"] != before["10001"] {
		t.Errorf("ports moved from %v to %v", before, after)
	}
}

func TestAnXBackendNeverHasTwoServices(t *testing.T) {
	t.Parallel()
	r := newOnServer(t, always, always)
	r.gateway(t, "gw", httpListener)
	r.add(t, xbackendNamed("shop", selectsShop))
	for _, id := range []string{"XBackend default/shop", "HTTPRoute default/shop"} {
		object := r.objects[id]
		delete(r.objects, id)
		object.SetNamespace(r.namespace)
		r.objects[idOf(object)] = object
	}
	of := func() []corev1.Service {
		var list corev1.ServiceList
		if err := r.server.Client.List(t.Context(), &list, client.InNamespace(r.namespace), client.HasLabels{graph.LabelXBackend}); err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	r.until(t, "there is one", func() bool { return len(of()) > 0 })
	r.until(t, "there is one alone, and nothing is wanted", func() bool {
		return len(of()) == 1 && len(r.exposers[0].wanted.Changes) == 0
	})
	if one := of()[0]; one.Spec.ClusterIP != corev1.ClusterIPNone || one.Spec.Selector["app"] != "shop" {
		t.Errorf("the Service is %+v", one.Spec)
	}
}
