package suite

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

const otherController = "example.com/other-controller"

// accepted waits until a route's newest generation is accepted by us.
func (w *World) accepted(t *testing.T, name string) *gatewayv1.HTTPRoute {
	t.Helper()
	var r gatewayv1.HTTPRoute
	eventually(t, time.Minute, func() error {
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, &r); err != nil {
			return err
		}
		for _, parent := range ours(&r) {
			if c := meta.FindStatusCondition(parent.Conditions, "Accepted"); c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == r.Generation {
				return nil
			}
		}
		return fmt.Errorf("route %s is not accepted: %+v", name, r.Status)
	})
	return &r
}

// ours are the entries that the other controller did not write.
func ours(r *gatewayv1.HTTPRoute) []gatewayv1.RouteParentStatus {
	var all []gatewayv1.RouteParentStatus
	for _, parent := range r.Status.Parents {
		if parent.ControllerName != otherController {
			all = append(all, parent)
		}
	}
	return all
}

func others(r *gatewayv1.HTTPRoute) []gatewayv1.RouteParentStatus {
	var all []gatewayv1.RouteParentStatus
	for _, parent := range r.Status.Parents {
		if parent.ControllerName == otherController {
			all = append(all, parent)
		}
	}
	return all
}

// second is a tiny controller: it keeps its own entry in the status of a route, up to date with its generation.
type second struct{ client.Client }

func (o *second) keep(ctx context.Context, key client.ObjectKey) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var r gatewayv1.HTTPRoute
		if err := o.Get(ctx, key, &r); err != nil {
			return err
		}
		r.Status.Parents = append(ours(&r), gatewayv1.RouteParentStatus{
			ControllerName: otherController,
			ParentRef:      gatewayv1.ParentReference{Name: "theirs", Group: new(gatewayv1.Group(gatewayv1.GroupName)), Kind: new(gatewayv1.Kind("Gateway"))},
			Conditions: []metav1.Condition{{
				Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", Message: "mine",
				ObservedGeneration: r.Generation, LastTransitionTime: metav1.Unix(1_700_000_000, 0),
			}},
		})
		return o.Status().Update(ctx, &r)
	})
}

// Two controllers keep their entries on one route: neither touches the other's, and ours is written at most twice a change.
func TestTwoControllersOnOneRoute(t *testing.T) {
	s := setting(t)
	w := s.world(t, "two-controllers", 1)
	r := route(w.ns, "both", "both.example.com", "/")
	r.Spec.ParentRefs = append(r.Spec.ParentRefs, gatewayv1.ParentReference{Name: "theirs"})
	w.create(t, r)
	w.accepted(t, "both")
	key := client.ObjectKeyFromObject(r)
	other := &second{Client: w}
	writes := countWrites(t, w, key)
	for change := range 5 {
		if err := other.keep(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		now := w.accepted(t, "both")
		kept := others(now)
		if len(kept) != 1 || kept[0].Conditions[0].Message != "mine" {
			t.Fatalf("after %d changes their entry is %+v", change, kept)
		}
		if len(ours(now)) != 1 {
			t.Fatalf("we have %d entries, there is one Gateway of ours: %+v", len(ours(now)), now.Status)
		}
		if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if err := w.Get(t.Context(), key, now); err != nil {
				return err
			}
			now.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("both-%d.example.com", change))}
			return w.Update(t.Context(), now)
		}); err != nil {
			t.Fatal(err)
		}
		w.answers(t, fmt.Sprintf("both-%d.example.com", change), time.Minute)
		after := w.accepted(t, "both")
		// Their entry is behind now, as they have not looked yet: it must be as they left it.
		if left := others(after); !reflect.DeepEqual(left, kept) {
			t.Fatalf("their entry was %+v, and is %+v", kept, left)
		}
	}
	if n := writes(); n > 2*6 {
		t.Errorf("our entry was written %d times for the route and 5 changes, at most 12 are allowed", n)
	} else {
		t.Logf("our entry was written %d times for 5 changes", n)
	}
}

// countWrites counts how often our entry of a route is written from now on.
func countWrites(t *testing.T, w *World, key client.ObjectKey) func() int {
	t.Helper()
	watching, err := w.Watch(t.Context(), &gatewayv1.HTTPRouteList{}, client.InNamespace(key.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	var mutex sync.Mutex
	count := 0
	go func() {
		var last []gatewayv1.RouteParentStatus
		for event := range watching.ResultChan() {
			r, is := event.Object.(*gatewayv1.HTTPRoute)
			if !is || r.Name != key.Name {
				continue
			}
			now := ours(r)
			mutex.Lock()
			if event.Type == watch.Modified && !reflect.DeepEqual(now, last) {
				count++
			}
			mutex.Unlock()
			last = now
		}
	}()
	t.Cleanup(watching.Stop)
	return func() int { mutex.Lock(); defer mutex.Unlock(); return count }
}

// idleFor is how long nothing may happen: E2E_IDLE, 10 minutes by default.
func idleFor(t *testing.T) time.Duration {
	t.Helper()
	long, err := time.ParseDuration(or("E2E_IDLE", "10m"))
	if err != nil {
		t.Fatal(err)
	}
	return long
}

// On an idle cluster nothing is written, nothing is reloaded, and the files stay as they are.
func TestIdle(t *testing.T) {
	s := setting(t)
	w := s.world(t, "idle", 2)
	pods := w.settled(t)
	time.Sleep(15 * time.Second) // what is still under way ends
	writes := &tally{counts: map[string]int{}}
	for kind, list := range map[string]client.ObjectList{
		"GatewayClass": &gatewayv1.GatewayClassList{}, "Gateway": &gatewayv1.GatewayList{}, "HTTPRoute": &gatewayv1.HTTPRouteList{},
		"Service": &corev1.ServiceList{}, "EndpointSlice": &discoveryv1.EndpointSliceList{}, "ConfigMap": &corev1.ConfigMapList{}, "Secret": &corev1.SecretList{},
	} {
		writes.watch(t, w, kind, list)
	}
	before := map[string]string{}
	for _, pod := range pods {
		before[pod.Name] = w.state(t, pod.Name)
	}
	time.Sleep(idleFor(t))
	for _, pod := range pods {
		if now := w.state(t, pod.Name); now != before[pod.Name] {
			t.Errorf("pod %s: files or processes differ.\nbefore:\n%s\nafter:\n%s", pod.Name, before[pod.Name], now)
		}
	}
	if all := writes.all(); len(all) > 0 {
		t.Errorf("written while nothing happened: %v", all)
	}
}

// state is all files that HAProxy reads, by their hashes, and its worker, which a reload replaces.
func (w *World) state(t *testing.T, pod string) string {
	t.Helper()
	out, err := w.kubectl(t.Context(), "exec", pod, "-c", "haproxy", "--", "sh", "-c",
		"cat /proc/1/task/1/children; echo; readlink /run/limpet/current; cd /run/limpet/current/ && find . -type f | sort | xargs sha256sum")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tally counts changes by kind and name.
type tally struct {
	mutex  sync.Mutex
	counts map[string]int
}

func (c *tally) watch(t *testing.T, w *World, kind string, list client.ObjectList) {
	t.Helper()
	// What is there comes as added.
	watching, err := w.Watch(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watching.Stop)
	go func() {
		for event := range watching.ResultChan() {
			if event.Type != watch.Modified && event.Type != watch.Deleted {
				continue
			}
			object, err := meta.Accessor(event.Object)
			if err != nil {
				continue
			}
			c.mutex.Lock()
			c.counts[fmt.Sprintf("%s %s/%s %s", kind, object.GetNamespace(), object.GetName(), event.Type)]++
			c.mutex.Unlock()
		}
	}()
}

func (c *tally) all() map[string]int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	all := map[string]int{}
	for what, n := range c.counts {
		all[what] = n
	}
	return all
}
