package apiserver

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// Create adds an object and returns it as it is stored.
func (s *Server) Create(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	k, err := s.kindOf(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.name(k, object)
	if s.objects[k][name] != nil {
		return nil, apierrors.NewAlreadyExists(k.resource(), name.Name)
	}
	fresh := object.DeepCopy()
	if k.schema != nil {
		delete(fresh.Object, "status") // The status is written by itself.
	}
	fresh.SetUID(uuid.NewUUID())
	fresh.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	fresh.SetGeneration(1)
	if err := s.finish(k, fresh, nil); err != nil {
		return nil, err
	}
	s.put(k, name, fresh)
	return fresh, nil
}

// Update replaces an object, but not its status.
func (s *Server) Update(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return s.replace(object, func(k *kind, old, fresh *unstructured.Unstructured) {
		if k.schema != nil {
			copyField(fresh, old, "status")
		}
	})
}

// UpdateStatus replaces an object's status, and nothing else.
func (s *Server) UpdateStatus(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return s.replace(object, func(_ *kind, old, fresh *unstructured.Unstructured) {
		status, there := fresh.Object["status"]
		fresh.Object = old.DeepCopy().Object
		delete(fresh.Object, "status")
		if there {
			fresh.Object["status"] = status
		}
	})
}

// replace puts an object in the place of an old one, if that is still the one it was made from. keep restores what stays.
func (s *Server) replace(
	object *unstructured.Unstructured, keep func(k *kind, old, fresh *unstructured.Unstructured),
) (*unstructured.Unstructured, error) {
	k, err := s.kindOf(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.name(k, object)
	old := s.objects[k][name]
	if old == nil {
		return nil, apierrors.NewNotFound(k.resource(), name.Name)
	}
	if version := object.GetResourceVersion(); version != "" && version != old.GetResourceVersion() ||
		object.GetUID() != "" && object.GetUID() != old.GetUID() {
		return nil, apierrors.NewConflict(k.resource(), name.Name, fmt.Errorf("it was changed since it was read"))
	}
	fresh := object.DeepCopy()
	keep(k, old, fresh)
	fresh.SetUID(old.GetUID())
	fresh.SetCreationTimestamp(old.GetCreationTimestamp())
	fresh.SetGeneration(old.GetGeneration())
	fresh.SetResourceVersion(old.GetResourceVersion())
	if err := s.finish(k, fresh, old); err != nil {
		return nil, err
	}
	if reflect.DeepEqual(fresh.Object, old.Object) {
		return old, nil
	}
	if !reflect.DeepEqual(desired(fresh), desired(old)) {
		fresh.SetGeneration(old.GetGeneration() + 1)
	}
	s.put(k, name, fresh)
	return fresh, nil
}

// desired is what generations count: all but metadata and status.
func desired(object *unstructured.Unstructured) map[string]any {
	rest := map[string]any{}
	for key, value := range object.Object {
		if key != "metadata" && key != "status" && key != "apiVersion" {
			rest[key] = value
		}
	}
	return rest
}

// Delete removes an object, and all that is in it if it is a Namespace.
func (s *Server) Delete(gvk schema.GroupVersionKind, name types.NamespacedName) error {
	k, err := s.kindOf(gvk)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.clusterScoped {
		name.Namespace = ""
	}
	if s.objects[k][name] == nil {
		return apierrors.NewNotFound(k.resource(), name.Name)
	}
	delete(s.objects[k], name)
	if k.name == "Namespace" {
		for _, objects := range s.objects {
			for inside := range objects {
				if inside.Namespace == name.Name {
					delete(objects, inside)
				}
			}
		}
	}
	s.tell()
	return nil
}

// Get returns an object, which must not be changed.
func (s *Server) Get(gvk schema.GroupVersionKind, name types.NamespacedName) (*unstructured.Unstructured, error) {
	k, err := s.kindOf(gvk)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.clusterScoped {
		name.Namespace = ""
	}
	if object := s.objects[k][name]; object != nil {
		return object, nil
	}
	return nil, apierrors.NewNotFound(k.resource(), name.Name)
}

// List returns all objects of a kind, by namespace and name. They must not be changed.
func (s *Server) List(gvk schema.GroupVersionKind) []*unstructured.Unstructured {
	k, err := s.kindOf(gvk)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*unstructured.Unstructured
	for _, object := range s.objects[k] {
		all = append(all, object)
	}
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return all
}

// As returns typed copies of all objects of a kind.
func As[T any](s *Server, gvk schema.GroupVersionKind) ([]*T, error) {
	var all []*T
	for _, object := range s.List(gvk) {
		typed := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
			return nil, fmt.Errorf("%s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
		}
		all = append(all, typed)
	}
	return all, nil
}

// Apply makes an object be there as it is given, status included.
func (s *Server) Apply(object *unstructured.Unstructured) error {
	fresh, err := s.Update(object)
	if apierrors.IsNotFound(err) {
		fresh, err = s.Create(object)
	}
	if err != nil || object.Object["status"] == nil {
		return err
	}
	fresh = fresh.DeepCopy()
	fresh.Object["status"] = object.Object["status"]
	_, err = s.UpdateStatus(fresh)
	return err
}

// Watch returns a channel that has a value whenever something changed since the last one was taken.
func (s *Server) Watch() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	watcher := make(chan struct{}, 1)
	watcher <- struct{}{}
	s.watchers = append(s.watchers, watcher)
	return watcher
}

// put stores an object; the caller holds the lock.
func (s *Server) put(k *kind, name types.NamespacedName, object *unstructured.Unstructured) {
	s.revision++
	object.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	s.objects[k][name] = object
	s.tell()
}

func (s *Server) tell() {
	for _, watcher := range s.watchers {
		select {
		case watcher <- struct{}{}:
		default:
		}
	}
}

// finish completes an object and says what is wrong with it.
func (s *Server) finish(k *kind, object, old *unstructured.Unstructured) error {
	if !k.clusterScoped && object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	if k.clusterScoped {
		object.SetNamespace("")
	}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: k.group, Version: k.versions[0], Kind: k.name})
	if k.finish != nil {
		k.finish(object.Object)
	}
	if k.schema == nil {
		return nil
	}
	k.schema.complete(object.Object)
	var before map[string]any
	if old != nil {
		before = old.Object
	}
	if errs := k.schema.validate(object.Object, before); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: k.group, Kind: k.name}, object.GetName(), errs)
	}
	return nil
}

func (s *Server) name(k *kind, object *unstructured.Unstructured) types.NamespacedName {
	if k.clusterScoped {
		return types.NamespacedName{Name: object.GetName()}
	}
	return types.NamespacedName{Namespace: cmp.Or(object.GetNamespace(), metav1.NamespaceDefault), Name: object.GetName()}
}

func copyField(to, from *unstructured.Unstructured, field string) {
	delete(to.Object, field)
	if value, there := from.Object[field]; there {
		to.Object[field] = runtime.DeepCopyJSONValue(value)
	}
}
