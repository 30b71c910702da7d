package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

type gatewaySession = gatewayv1.SessionPersistence

// entry is an object as the cache keeps it, without what nobody reads.
type entry struct {
	// anyObject is what Snapshots show: without status if the kind is a custom one. It is that of the last entry while what
	// is shown stays.
	anyObject
	resourceVersion string
	live            Live
	sessions        oldSessions
	// broken says that the object does not have the form that its kind has with us.
	broken bool
}

// GetResourceVersion is that of the object as it is, not as it was when it was shown first.
func (e *entry) GetResourceVersion() string { return e.resourceVersion }

// Live is what the API server holds of an object, as far as its status is concerned.
type Live struct {
	// APIVersion is the one that it is read in.
	APIVersion      string
	UID             types.UID
	ResourceVersion string
	Generation      int64
	// Status is JSON; empty if there is none. It must not be changed.
	Status []byte
}

func (l Live) equal(other Live) bool {
	return l.UID == other.UID && l.Generation == other.Generation && bytes.Equal(l.Status, other.Status)
}

// Live returns what the API server holds of an object of a custom kind, as far as events told.
func (a *API) Live(name Name) (Live, bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for k, w := range a.kinds {
		if e := w.entries[name.NamespacedName]; k.name == name.Kind && e != nil && k.custom() {
			return e.live, true
		}
	}
	return Live{}, false
}

// EachLive calls a function for every object of a custom kind, which must be quick and not call the API.
func (a *API) EachLive(each func(Name, Live)) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for k, w := range a.kinds {
		if k.custom() {
			for name, e := range w.entries {
				each(Name{k.name, name}, e.live)
			}
		}
	}
}

// transform makes an entry of what the API server sends.
func (a *API) transform(sent any) (any, error) {
	switch object := sent.(type) {
	case *unstructured.Unstructured:
		return a.customEntry(object), nil
	case *metav1.PartialObjectMetadata:
		trim(object)
		return &entry{anyObject: object, resourceVersion: object.ResourceVersion}, nil
	case *entry:
		return object, nil
	case anyObject:
		trim(object)
		if k := kindOfType(object); k != nil {
			object.GetObjectKind().SetGroupVersionKind(k.schema())
		}
		e := &entry{anyObject: object, resourceVersion: object.GetResourceVersion()}
		return e, nil
	default:
		return sent, nil
	}
}

// trim drops what nobody reads, and what changes without meaning.
func trim(object metav1.Object) {
	object.SetManagedFields(nil)
	annotations := object.GetAnnotations()
	for _, key := range []string{corev1.LastAppliedConfigAnnotation, corev1.EndpointsLastChangeTriggerTime} {
		delete(annotations, key)
	}
	if len(annotations) == 0 {
		object.SetAnnotations(nil)
	}
}

// customEntry reads an object of a custom kind. What is shown of it already is not read again.
func (a *API) customEntry(sent *unstructured.Unstructured) *entry {
	k := kindNamed(sent.GetKind())
	live := Live{
		APIVersion: sent.GetAPIVersion(), UID: sent.GetUID(), ResourceVersion: sent.GetResourceVersion(), Generation: sent.GetGeneration(),
	}
	if status, there := sent.Object["status"]; there {
		live.Status, _ = json.Marshal(status)
		delete(sent.Object, "status")
	}
	trim(sent)
	e := &entry{anyObject: sent, resourceVersion: sent.GetResourceVersion(), live: live}
	if shown := a.shown(k, nameOf(sent)); shown != nil && shown.sameContent(e) {
		e.anyObject, e.sessions = shown.anyObject, shown.sessions
		return e
	}
	object, sessions, err := k.read(sent)
	if err != nil {
		a.options.Log.Error("an object does not have the form that its kind has in v1.7 of the Gateway API: what was known of it before counts",
			"object", objectID{kind: k.name, namespace: sent.GetNamespace(), name: sent.GetName()}.String(), "error", err)
		e.broken = true
		return e
	}
	e.anyObject, e.sessions = object, sessions
	return e
}

func (a *API) shown(k *kind, name types.NamespacedName) *entry {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if w := a.kinds[k]; w != nil {
		return w.entries[name]
	}
	return nil
}

// read makes a typed object.
func (k *kind) read(sent *unstructured.Unstructured) (anyObject, oldSessions, error) {
	object := k.objects.fresh()
	var sessions oldSessions
	if hasOldFields(sent.Object) {
		// Which fields are unknown, only strict decoding tells.
		data, err := json.Marshal(sent.Object)
		if err != nil {
			return nil, nil, err
		}
		var unknown []error
		if object, unknown, err = k.decode(data); err != nil {
			return nil, nil, err
		}
		if sessions, _, err = readOldSessions(data, object, unknown); err != nil {
			return nil, nil, err
		}
	} else if err := runtime.DefaultUnstructuredConverter.FromUnstructured(sent.Object, object); err != nil {
		return nil, nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(k.schema())
	return object, sessions, nil
}

// hasOldFields says whether a route has a session in the form that older versions of the API had.
func hasOldFields(object map[string]any) bool {
	spec, _ := object["spec"].(map[string]any)
	rules, _ := spec["rules"].([]any)
	return slices.ContainsFunc(rules, func(rule any) bool {
		fields, _ := rule.(map[string]any)
		session, _ := fields["sessionPersistence"].(map[string]any)
		return slices.ContainsFunc(oldFields, func(name string) bool { _, there := session[name]; return there })
	})
}

// sameContent says that both show the same. The spec of a custom kind stays while its generation does.
func (e *entry) sameContent(other *entry) bool {
	if e.anyObject == other.anyObject {
		return true
	}
	if e.broken || other.broken || e.GetUID() != other.GetUID() || e.GetGeneration() != other.GetGeneration() {
		return false
	}
	if e.live.UID == "" {
		return e.sameAll(other)
	}
	return maps.Equal(e.GetLabels(), other.GetLabels()) && maps.Equal(e.GetAnnotations(), other.GetAnnotations()) &&
		e.GetDeletionTimestamp().Equal(other.GetDeletionTimestamp())
}

// sameAll compares objects that are not custom ones; metadata alone stands for content that only its version tells.
func (e *entry) sameAll(other *entry) bool {
	if _, metadata := e.anyObject.(*metav1.PartialObjectMetadata); metadata {
		return e.resourceVersion == other.resourceVersion
	}
	a, b := e.DeepCopyObject(), other.DeepCopyObject()
	for _, object := range []runtime.Object{a, b} {
		if object, is := object.(metav1.Object); is {
			object.SetResourceVersion("")
		}
	}
	return equality.Semantic.DeepEqual(a, b)
}

func nameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// kindNamed finds a kind that is in the table: others are not watched.
func kindNamed(name string) *kind {
	at := slices.IndexFunc(kinds, func(k *kind) bool { return k.name == name })
	if at < 0 {
		panic(fmt.Sprintf("a %s was sent, which is not watched", name))
	}
	return kinds[at]
}

// kindOfType finds the kind of a typed object.
func kindOfType(object anyObject) *kind {
	at := slices.IndexFunc(kinds, func(k *kind) bool { return k.objects.takes(object) })
	if at < 0 {
		return nil
	}
	return kinds[at]
}
