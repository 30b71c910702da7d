package graph

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// object is a pointer to an API object.
type object interface {
	comparable
	metav1.Object
}

// change is one difference between two lists: an object that was added has no old, one that was removed has no new.
type change[T object] struct{ old, new T }

// key is the namespace and name of what changed.
func (c change[T]) key() types.NamespacedName {
	var none T
	if c.new == none {
		return nameOf(c.old)
	}
	return nameOf(c.new)
}

func nameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// diff says what must happen to one list so that it becomes the other. Where the lists are equal it only compares
// pointers. Of several objects with one name the first counts, as in Objects.Get.
func diff[T object](was, is cluster.Objects[T]) []change[T] {
	if was.Same(is) {
		return nil
	}
	var changes []change[T]
	a, b := was.All(), is.All()
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case repeated(a, i):
			i++
		case repeated(b, j):
			j++
		default:
			var c change[T]
			if order := compareAt(a, i, b, j); order <= 0 {
				c.old, i = a[i], i+1
				if order == 0 {
					c.new, j = b[j], j+1
				}
			} else {
				c.new, j = b[j], j+1
			}
			changes = append(changes, c)
		}
	}
	return changes
}

// repeated says that the object at i has the name of the one before it.
func repeated[T object](list []T, i int) bool {
	return i > 0 && i < len(list) && list[i-1].GetName() == list[i].GetName() &&
		list[i-1].GetNamespace() == list[i].GetNamespace()
}

// compareAt orders the objects at two positions by name; a list that has ended comes last.
func compareAt[T object](a []T, i int, b []T, j int) int {
	switch {
	case j == len(b):
		return -1
	case i == len(a):
		return 1
	}
	return cmp.Or(cmp.Compare(a[i].GetNamespace(), b[j].GetNamespace()), cmp.Compare(a[i].GetName(), b[j].GetName()))
}
