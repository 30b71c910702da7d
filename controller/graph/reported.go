package graph

import (
	"cmp"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// reports are the BackendTLSPolicies and XBackends with what their status says.
type reports struct {
	// shown and unclaimed are sorted by kind, namespace and name. They are replaced when they change, never edited.
	shown     []*Reported
	unclaimed []*Unclaimed
	states    map[objectKey]reportState
}

// reportState is what is remembered of one object; either field is set.
type reportState struct {
	node      *Reported
	unclaimed *Unclaimed
}

func newReports() *reports { return &reports{states: make(map[objectKey]reportState)} }

// reportsEdit collects what changes.
type reportsEdit struct {
	*reports
	removed, added                   []*Reported
	removedUnclaimed, addedUnclaimed []*Unclaimed
}

// drop forgets an object that is gone.
func (e *reportsEdit) drop(key objectKey) { e.replace(key, reportState{}) }

// set says what came of an object. One that no Gateway of ours reaches is unclaimed.
func (e *reportsEdit) set(node *Reported) {
	key := objectKey{node.Kind, node.Source.GetNamespace(), node.Source.GetName()}
	last := e.states[key]
	next := reportState{node: node}
	switch {
	case len(node.Ancestors) == 0 && last.unclaimed != nil:
		next = last
	case len(node.Ancestors) == 0:
		next = reportState{unclaimed: &Unclaimed{Kind: key.kind, Namespace: key.namespace, Name: key.name,
			Message: "no route of a Gateway of ours leads to what it is about."}}
	case last.node != nil && reflect.DeepEqual(last.node, node):
		next = last
	}
	e.replace(key, next)
}

func (e *reportsEdit) replace(key objectKey, next reportState) {
	last := e.states[key]
	if next == (reportState{}) {
		delete(e.states, key)
	} else {
		e.states[key] = next
	}
	e.removed, e.added = replace(e.removed, e.added, last.node, next.node)
	e.removedUnclaimed, e.addedUnclaimed = replace(e.removedUnclaimed, e.addedUnclaimed, last.unclaimed, next.unclaimed)
}

func (e *reportsEdit) finish() {
	if len(e.removed)+len(e.added) > 0 {
		e.shown = splice(e.shown, e.removed, e.added, func(a, b *Reported) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), compareNames(a.Source, b.Source))
		})
	}
	if len(e.removedUnclaimed)+len(e.addedUnclaimed) > 0 {
		e.unclaimed = splice(e.unclaimed, e.removedUnclaimed, e.addedUnclaimed, func(a, b *Unclaimed) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
	}
}

func compareNames(a, b metav1.Object) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// ancestorsOf makes an entry for each Gateway that is reached, at most as many as the API takes.
func ancestorsOf(reached map[types.NamespacedName]bool, most int, conditions func(types.NamespacedName) []metav1.Condition) []Ancestor {
	var all []Ancestor
	for _, gateway := range sortedGateways(reached) {
		if len(all) == most {
			break
		}
		all = append(all, Ancestor{Ref: ancestorRef(gateway), Conditions: conditions(gateway)})
	}
	return all
}
