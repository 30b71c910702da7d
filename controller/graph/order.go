package graph

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// older is the order in which the specification breaks ties: the creation time, then namespace and name. Objects from
// files mostly have no creation time; all of those count as the oldest.
func older(a, b metav1.Object) int {
	return cmp.Or(
		a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()),
		cmp.Compare(a.GetName(), b.GetName()),
	)
}

// splice returns a sorted list without the removed elements and with the added ones. It costs one copy of the list and a
// binary search for each change. Every removed element is in the list.
func splice[T comparable](list, removed, added []T, compare func(a, b T) int) []T {
	slices.SortFunc(removed, compare)
	slices.SortFunc(added, compare)
	result := make([]T, 0, len(list)-len(removed)+len(added))
	for len(removed) > 0 || len(added) > 0 {
		if len(added) == 0 || len(removed) > 0 && compare(removed[0], added[0]) <= 0 {
			at, _ := slices.BinarySearchFunc(list, removed[0], compare)
			result = append(result, list[:at]...)
			list, removed = list[at+1:], removed[1:]
			continue
		}
		at, _ := slices.BinarySearchFunc(list, added[0], compare)
		result = append(append(result, list[:at]...), added[0])
		list, added = list[at:], added[1:]
	}
	return append(result, list...)
}
