// Package apiserver is a small stand-in for a Kubernetes API server: it holds objects in memory, knows the kinds that Gateway
// API's CustomResourceDefinitions define besides some of Kubernetes' own, completes and validates objects as their schemas say,
// counts generations, and speaks enough of the API's HTTP for client-go. It has no watches, no finalizers and no access control.
//
// In go the CustomResourceDefinitions and what clients send; out come the objects. It runs nothing: see package node.
package apiserver

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// Logs writes what a pod printed since a time.
type Logs func(pod types.NamespacedName, since time.Time, to io.Writer) error

// Server is the stand-in. It can be used by many goroutines.
type Server struct {
	// Logs answers requests for logs of pods.
	Logs Logs

	kinds []*kind

	mu       sync.Mutex
	objects  map[*kind]map[types.NamespacedName]*unstructured.Unstructured
	revision int64
	watchers []chan struct{}
}

// New returns a Server that knows the kinds of these CustomResourceDefinitions, given as YAML.
func New(definitions [][]byte) (*Server, error) {
	s := &Server{kinds: builtin(), objects: map[*kind]map[types.NamespacedName]*unstructured.Unstructured{}}
	var crds []*unstructured.Unstructured
	for _, text := range definitions {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			return nil, err
		}
		k, err := customKind(crd)
		if err != nil {
			return nil, err
		}
		s.kinds = append(s.kinds, k)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			return nil, err
		}
		crds = append(crds, &unstructured.Unstructured{Object: content})
	}
	for _, k := range s.kinds {
		s.objects[k] = map[types.NamespacedName]*unstructured.Unstructured{}
	}
	for _, crd := range crds {
		if _, err := s.Create(crd); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Server) kindOf(gvk schema.GroupVersionKind) (*kind, error) {
	return s.find(gvk, func(k *kind) bool { return k.name == gvk.Kind })
}

func (s *Server) find(gvk schema.GroupVersionKind, is func(*kind) bool) (*kind, error) {
	at := slices.IndexFunc(s.kinds, func(k *kind) bool { return k.group == gvk.Group && is(k) && slices.Contains(k.versions, gvk.Version) })
	if at < 0 {
		return nil, fmt.Errorf("there is no kind %s", gvk)
	}
	return s.kinds[at], nil
}
