package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// readStatuses gives objects the statuses that Limpet wrote, if it wrote since.
func (l *Limpet) readStatuses() error {
	info, err := os.Stat(l.statuses())
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.ModTime().Equal(l.modified) {
		return nil
	}
	if err != nil {
		return err
	}
	l.modified = info.ModTime()
	list, err := readList(l.statuses())
	if err != nil {
		return fmt.Errorf("%s: %w", l.statuses(), err)
	}
	before := l.reported
	l.reported = map[string]bool{}
	for _, item := range list {
		object := &unstructured.Unstructured{Object: item}
		l.reported[fileName(object.GroupVersionKind(), object)] = true
		if err := l.setStatus(object); err != nil {
			return err
		}
	}
	for file := range before {
		if !l.reported[file] {
			// What waited for Limpet to see that its namesake is gone can be written now, and who lost his status loses it.
			if err := l.dropStatus(file); err != nil {
				return err
			}
		}
	}
	return l.writeObjects()
}

func readList(file string) ([]map[string]any, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if text, err = yaml.YAMLToJSON(text); err != nil {
		return nil, err
	}
	var list struct {
		Items []map[string]any `json:"items"`
	}
	err = json.Unmarshal(text, &list) // Kubernetes' own, which reads whole numbers as such.
	return list.Items, err
}

// setStatus replaces an object's status.
func (l *Limpet) setStatus(item *unstructured.Unstructured) error {
	has, known := l.written[fileName(item.GroupVersionKind(), item)]
	if !known {
		return nil // It was deleted just now.
	}
	object, err := l.options.Server.Get(item.GroupVersionKind(), types.NamespacedName{Namespace: item.GetNamespace(), Name: item.GetName()})
	if apierrors.IsNotFound(err) || err == nil && object.GetUID() != has.uid {
		return nil
	}
	if err != nil {
		return err
	}
	return l.writeStatus(object, item.Object["status"])
}

func (l *Limpet) writeStatus(object *unstructured.Unstructured, status any) error {
	object = object.DeepCopy()
	object.SetResourceVersion("")
	delete(object.Object, "status")
	if status != nil {
		object.Object["status"] = status
	}
	_, err := l.options.Server.UpdateStatus(object)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// dropStatus takes the status from an object that Limpet says no more about.
func (l *Limpet) dropStatus(file string) error {
	for _, kind := range kinds {
		for _, object := range l.options.Server.List(kind) {
			if fileName(kind, object) == file && l.written[file].uid == object.GetUID() {
				return l.writeStatus(object, nil)
			}
		}
	}
	return nil
}
