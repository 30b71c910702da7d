package cluster

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// list is the list of one kind in a Snapshot, whatever its type.
type list interface {
	// fresh is an empty object of the kind.
	fresh() anyObject
	// takes says whether the object is of the kind.
	takes(object anyObject) bool
	// set makes the list one of these values; if it is equal to the old one, that one.
	set(now *Snapshot, old Snapshot, values []anyObject)
	// edit replaces and adds objects by their names, and removes those that are nil.
	edit(now *Snapshot, changes map[types.NamespacedName]anyObject)
	// same says that the list is the same in both.
	same(a, b Snapshot) bool
	// changed tells which objects came, changed, or are gone.
	changed(old, now Snapshot, tell func(object metav1.Object, gone bool))
}

// field finds the list of one type in a Snapshot.
type field[T any, P interface {
	*T
	anyObject
}] func(*Snapshot) *Objects[P]

// in is the list that a function finds.
func in[T any, P interface {
	*T
	anyObject
}](find func(*Snapshot) *Objects[P]) list {
	return field[T, P](find)
}

func (f field[T, P]) fresh() anyObject { return P(new(T)) }

func (f field[T, P]) takes(object anyObject) bool {
	_, is := object.(P)
	return is
}

func (f field[T, P]) set(now *Snapshot, old Snapshot, values []anyObject) {
	objects := make([]P, 0, len(values))
	for _, value := range values {
		if object, is := value.(P); is {
			objects = append(objects, object)
		}
	}
	fresh, was := NewObjects(objects...), *f(&old)
	if slices.Equal(fresh.list, was.list) {
		fresh = was
	}
	*f(now) = fresh
}

func (f field[T, P]) edit(now *Snapshot, changes map[types.NamespacedName]anyObject) {
	was := f(now)
	fresh := make([]P, 0, len(changes))
	for _, change := range changes {
		if object, is := change.(P); is {
			fresh = append(fresh, object)
		}
	}
	slices.SortFunc(fresh, compare[P])
	merged := make([]P, 0, len(was.list)+len(fresh))
	for _, object := range was.list {
		for len(fresh) > 0 && compare(fresh[0], object) < 0 {
			merged, fresh = append(merged, fresh[0]), fresh[1:]
		}
		if _, replaced := changes[types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}]; !replaced {
			merged = append(merged, object)
		}
	}
	merged = append(merged, fresh...)
	if !slices.Equal(merged, was.list) {
		*was = Objects[P]{merged}
	}
}

func (f field[T, P]) same(a, b Snapshot) bool { return f(&a).Same(*f(&b)) }

func (f field[T, P]) changed(old, now Snapshot, tell func(object metav1.Object, gone bool)) {
	if f.same(old, now) {
		return
	}
	was, is := f(&old), f(&now)
	for _, object := range is.list {
		if before, there := was.Get(object.GetNamespace(), object.GetName()); !there || before != object {
			tell(object, false)
		}
	}
	for _, object := range was.list {
		if _, still := is.Get(object.GetNamespace(), object.GetName()); !still {
			tell(object, true)
		}
	}
}

func compare[T metav1.Object](a, b T) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}
