package suite

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"
)

// World is a namespace with a Gateway, and a route to backends that keep sessions.
type World struct {
	*Setting
	ns string
	// URL is where the Gateway is reached.
	URL string
}

const (
	gatewayName = "edge"
	host        = "shop.example.com"
)

// world makes one for a test, and waits until it answers.
func (s *Setting) world(t *testing.T, name string, backends int32) *World {
	t.Helper()
	w := &World{Setting: s, ns: "e2e-" + name}
	w.namespace(t, w.ns)
	w.create(t, echo(w.ns, "shop", s.Echo, backends))
	w.create(t, backend(w.ns, "shop"))
	w.create(t, gateway(w.ns, s.Class))
	w.create(t, route(w.ns, "shop", host, "/"))
	w.available(t, "shop")
	w.URL = w.address(t)
	return w
}

func (s *Setting) namespace(t *testing.T, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_ = s.Delete(t.Context(), namespace)
	eventually(t, 2*time.Minute, func() error {
		err := s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		return err
	})
	t.Cleanup(func() { _ = s.Delete(background(), namespace) })
}

func (s *Setting) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := s.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// available waits until all of a Deployment's pods are.
func (w *World) available(t *testing.T, name string) {
	t.Helper()
	eventually(t, 3*time.Minute, func() error {
		var d appsv1.Deployment
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, &d); err != nil {
			return err
		}
		return complete(&d)
	})
}

// complete says what a Deployment lacks: all of its pods are new and available, and no other is left.
func complete(d *appsv1.Deployment) error {
	wanted, now := *d.Spec.Replicas, d.Status
	if now.ObservedGeneration < d.Generation || now.Replicas != wanted || now.UpdatedReplicas != wanted || now.AvailableReplicas != wanted {
		return fmt.Errorf("%s is not settled: %+v", d.Name, now)
	}
	return nil
}

// address waits until the Gateway is programmed and answers.
func (w *World) address(t *testing.T) string {
	t.Helper()
	var g gatewayv1.Gateway
	eventually(t, 2*time.Minute, func() error {
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: gatewayName}, &g); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(g.Status.Conditions, "Programmed") || len(g.Status.Addresses) == 0 {
			return fmt.Errorf("the Gateway is not programmed: %+v", g.Status)
		}
		return nil
	})
	url := "http://" + net.JoinHostPort(g.Status.Addresses[0].Value, "80") + "/"
	probe := newClient(&Traffic{url: url, host: host}, 1)
	eventually(t, time.Minute, func() error {
		_, err := probe.once()
		return err
	})
	return url
}

// replicas are the pods of the release, ready and not being ended, sorted by name.
func (s *Setting) replicas(t *testing.T) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	err := s.List(t.Context(), &list, client.InNamespace(s.Namespace),
		client.MatchingLabels{"app.kubernetes.io/instance": s.Release, "app.kubernetes.io/name": "limpet"})
	if err != nil {
		t.Fatal(err)
	}
	ready := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	})
	slices.SortFunc(ready, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return ready
}

// settled waits until the release has as many ready pods as it is to have, and no others.
func (s *Setting) settled(t *testing.T) []corev1.Pod {
	t.Helper()
	eventually(t, 3*time.Minute, func() error {
		var d appsv1.Deployment
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: s.Release}, &d); err != nil {
			return err
		}
		return complete(&d)
	})
	return s.replicas(t)
}

// leader is the pod that holds the Lease.
func (s *Setting) leader(t *testing.T) (string, error) {
	t.Helper()
	var lease coordinationv1.Lease
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: s.Release}, &lease); err != nil {
		return "", err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", errors.New("nobody leads")
	}
	// An identity begins with the pod's name.
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return name, nil
}

func echo(ns, name, image string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1)),
			}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(10)),
					Containers: []corev1.Container{{
						Name: "echo", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
						Env: []corev1.EnvVar{
							{Name: "POD_NAME", ValueFrom: field("metadata.name")},
							{Name: "NAMESPACE", ValueFrom: field("metadata.namespace")},
						},
						ReadinessProbe: &corev1.Probe{
							PeriodSeconds: 1,
							ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(3000)}},
						},
						// Time for everybody to learn that it ends.
						Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}}},
					}},
				},
			},
		},
	}
}

func backend(ns, name string) *gatewayxv1alpha1.XBackend {
	return &gatewayxv1alpha1.XBackend{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: gatewayxv1alpha1.BackendSpec{
			Type: gatewayxv1alpha1.BackendTypeEndpointSelector,
			EndpointSelector: &gatewayxv1alpha1.EndpointSelectorBackend{
				LabelSelector: gatewayxv1alpha1.LabelSelector{
					MatchLabels: map[gatewayv1.LabelKey]gatewayv1.LabelValue{"app": gatewayv1.LabelValue(name)},
				},
			},
			Port: gatewayxv1alpha1.BackendPort{Number: 3000},
			SessionPersistence: &gatewayv1.SessionPersistence{
				Type:   new(gatewayv1.CookieBasedSessionPersistence),
				Cookie: &gatewayv1.CookieConfig{Name: new(gatewayv1.CookieName("limpet-e2e"))},
			},
		},
	}
}

func gateway(ns, class string) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: gatewayName},
		Spec: gatewayv1.GatewaySpec{
			GatewayClassName: gatewayv1.ObjectName(class),
			Listeners:        []gatewayv1.Listener{{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
		},
	}
}

// route leads a host and a path to an XBackend.
func route(ns, name, hostname, path string) *gatewayv1.HTTPRoute {
	prefix := gatewayv1.PathMatchPathPrefix
	return &gatewayv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: gatewayName}}},
			Hostnames:       []gatewayv1.Hostname{gatewayv1.Hostname(hostname)},
			Rules: []gatewayv1.HTTPRouteRule{{
				Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: &prefix, Value: &path}}},
				BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{
					Group: new(gatewayv1.Group(gatewayxv1alpha1.GroupName)), Kind: new(gatewayv1.Kind("XBackend")), Name: "shop",
				}}}},
			}},
		},
	}
}
