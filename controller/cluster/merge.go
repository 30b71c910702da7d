package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// merger makes one Snapshot of all files, and remembers the last one's objects.
type merger struct {
	taken map[objectID]taken
	// implied are the Namespaces that nobody wrote down.
	implied map[string]*corev1.Namespace
}

// taken is an object that is in the snapshot, and where it came from.
type taken struct {
	*object
	value anyObject
	file  string
	line  int
}

func newMerger() merger {
	return merger{taken: map[objectID]taken{}, implied: map[string]*corev1.Namespace{}}
}

// merge makes the snapshot that follows old. Of two objects with one name the first counts; files from which something
// seems to go come after all others.
func (m *merger) merge(old Snapshot, sources []source) (Snapshot, []Problem) {
	now := make(map[objectID]taken, len(m.taken))
	var duplicates []Problem
	sources = slices.Clone(sources)
	slices.SortStableFunc(sources, func(a, b source) int { return cmp.Compare(number(a.leaving), number(b.leaving)) })
	for _, s := range sources {
		for _, part := range s.content.parts {
			for _, o := range part.objects {
				this := taken{object: o, file: s.path, line: part.line + o.line - 1}
				first, there := now[o.id]
				if !there {
					this.value = m.value(o)
					now[o.id] = this
				} else if !s.leaving {
					duplicates = append(duplicates, duplicate(first, this))
				}
			}
		}
	}
	m.taken = now
	return m.snapshot(old), duplicates
}

func number(leaving bool) int {
	if leaving {
		return 1
	}
	return 0
}

func duplicate(first, second taken) Problem {
	place := Problem{File: first.file, Line: first.line}.Place()
	return Problem{
		Severity: Error, File: second.file, Line: second.line, Object: second.id.String(),
		Message: fmt.Sprintf("is in %s already: that one counts, this one is ignored", place),
	}
}

// value returns what the snapshot shows of an object: what it showed before if the object is the same, else a value
// with the next generation.
func (m *merger) value(o *object) anyObject {
	before, was := m.taken[o.id]
	if was && before.content == o.content {
		return before.value
	}
	if !o.generated {
		return o.value
	}
	generation := int64(1)
	if was {
		generation = before.value.GetGeneration()
		if before.spec != o.spec {
			generation++
		}
	}
	value := o.value
	if o.shown {
		value, _ = value.DeepCopyObject().(anyObject)
	}
	o.shown = true
	value.SetGeneration(generation)
	return value
}

// snapshot makes the lists; one that is equal to the old one's is that one.
func (m *merger) snapshot(old Snapshot) Snapshot {
	byKind := map[string][]anyObject{}
	namespaces := map[string]*corev1.Namespace{}
	var others []*unstructured.Unstructured
	sessions := oldSessions{}
	for id, o := range m.taken {
		maps.Copy(sessions, o.sessions)
		if other, is := o.value.(*unstructured.Unstructured); is {
			others = append(others, other)
		} else {
			byKind[id.kind] = append(byKind[id.kind], o.value)
		}
		if id.namespace != "" {
			namespaces[id.namespace] = nil
		}
	}
	for name := range namespaces {
		if _, written := m.taken[objectID{kind: "Namespace", name: name}]; !written {
			namespaces[name] = m.namespace(name)
			byKind["Namespace"] = append(byKind["Namespace"], namespaces[name])
		}
	}
	m.implied = namespaces
	now := Snapshot{OldSessions: sessions, Others: reorder(old.Others, others)}
	for _, k := range kinds {
		k.objects.set(&now, old, byKind[k.name])
	}
	return now
}

// namespace is one that nobody wrote down.
func (m *merger) namespace(name string) *corev1.Namespace {
	if known := m.implied[name]; known != nil {
		return known
	}
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}},
	}
}

func reorder(old, others []*unstructured.Unstructured) []*unstructured.Unstructured {
	slices.SortFunc(others, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetNamespace(), b.GetNamespace()),
			cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetAPIVersion(), b.GetAPIVersion()))
	})
	if slices.Equal(old, others) {
		return old
	}
	return others
}

// same says that nothing differs between two snapshots.
func (s Snapshot) same(other Snapshot) bool {
	for _, k := range kinds {
		for _, l := range k.lists() {
			if !l.same(s, other) {
				return false
			}
		}
	}
	return s.Ports == other.Ports && slices.Equal(s.Others, other.Others)
}
