// Package node does for the objects of an apiserver.Server what a cluster would: it keeps the pods of Deployments, runs each as a
// process at a loopback address of its own, and keeps the EndpointSlices of Services.
//
// In go the objects and a program that stands for every image; out come Pods, EndpointSlices, processes and what they print.
// It knows nothing of Gateway API.
package node

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/limpet-gateway/limpet/e2e/apiserver"
)

// Name is the name of the only node.
const Name = "loopback"

// Options are what a Node needs.
type Options struct {
	Server *apiserver.Server
	// Program is run for every container. It listens at the address in $POD_IP.
	Program string
	// Dir gets the volumes of the pods.
	Dir string
	// Pods are the addresses that pods get.
	Pods netip.Prefix
	Log  *slog.Logger
}

// Node keeps pods. Run it.
type Node struct {
	options Options
	next    netip.Addr

	mu    sync.Mutex
	procs map[types.UID]*process
	names map[types.NamespacedName]*process
}

var (
	deployments = appsv1.SchemeGroupVersion.WithKind("Deployment")
	pods        = corev1.SchemeGroupVersion.WithKind("Pod")
	services    = corev1.SchemeGroupVersion.WithKind("Service")
	secrets     = corev1.SchemeGroupVersion.WithKind("Secret")
	configMaps  = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	slices      = discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice")
)

// New returns a Node, which answers for the Server's logs.
func New(options Options) *Node {
	n := &Node{options: options, next: options.Pods.Masked().Addr().Next(),
		procs: map[types.UID]*process{}, names: map[types.NamespacedName]*process{}}
	options.Server.Logs = n.logs
	return n
}

// Run does what the objects ask for until ctx ends, then ends all pods.
func (n *Node) Run(ctx context.Context) {
	changed := n.options.Server.Watch()
	defer n.endAll()
	for {
		for _, step := range []func() error{n.keepPods, n.startPods, n.keepSlices} {
			if err := step(); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				n.options.Log.Error("node", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(time.Second):
		}
	}
}

// logs writes what a pod printed.
func (n *Node) logs(pod types.NamespacedName, since time.Time, to io.Writer) error {
	n.mu.Lock()
	process := n.names[pod]
	n.mu.Unlock()
	if process == nil {
		return apierrors.NewBadRequest(fmt.Sprintf("pod %s has not started", pod))
	}
	return process.output.write(since, to)
}

func (n *Node) endAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, process := range n.procs {
		process.end()
	}
}

// untyped is a typed object as the Server takes it.
func untyped(object any, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}
