// Package table holds a persistent map from string to value: every edit gives a new table that shares what did not
// change with the old one, and two tables are compared in proportion to what differs between them.
//
// It is what lets a stage of the pipeline keep its input untouched, and still cost what a change touches and not what
// the installation holds. It must never range in an order that depends on anything but the keys.
package table

import (
	"iter"
	"slices"
	"strings"
)

// fanout is the number of buckets: at 5,000 entries a bucket holds five, at 100,000 a hundred.
const fanout = 1024

// Table maps strings to values. The zero value is an empty table. A table never changes after it was made.
type Table[V comparable] struct {
	root *[fanout]*bucket[V]
	size int
}

type bucket[V comparable] struct{ entries []Entry[V] }

// Entry is one key with its value.
type Entry[V comparable] struct {
	Key   string
	Value V
}

// Of returns a table that holds the given entries; of equal keys the last one stays.
func Of[V comparable](entries ...Entry[V]) Table[V] {
	e := Table[V]{}.Edit()
	for _, entry := range entries {
		e.Set(entry.Key, entry.Value)
	}
	return e.Table()
}

// Len returns the number of entries.
func (t Table[V]) Len() int { return t.size }

// Get returns the value of key and whether there is one.
func (t Table[V]) Get(key string) (V, bool) {
	var none V
	if t.root == nil {
		return none, false
	}
	return t.root[slot(key)].get(key)
}

// Sorted returns all entries in the order of their keys.
func (t Table[V]) Sorted() []Entry[V] {
	if t.root == nil {
		return nil
	}
	all := make([]Entry[V], 0, t.size)
	for _, b := range t.root {
		if b != nil {
			all = append(all, b.entries...)
		}
	}
	slices.SortFunc(all, func(a, b Entry[V]) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// Change is one difference between two tables: Old is absent for an entry that was added, New for one that was removed.
type Change[V comparable] struct {
	Key            string
	Old, New       V
	HadOld, HasNew bool
}

// Diff yields what must happen to old so that it becomes t, in no particular order.
func (t Table[V]) Diff(old Table[V]) iter.Seq[Change[V]] {
	return func(yield func(Change[V]) bool) {
		if t.root == old.root {
			return
		}
		for i := range fanout {
			was, is := old.bucket(i), t.bucket(i)
			if was == is {
				continue
			}
			if !was.diff(is, yield) {
				return
			}
		}
	}
}

// Changes returns Diff's changes in the order of their keys.
func (t Table[V]) Changes(old Table[V]) []Change[V] {
	all := slices.Collect(t.Diff(old))
	slices.SortFunc(all, func(a, b Change[V]) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// Same says whether both tables hold the same entries.
func (t Table[V]) Same(old Table[V]) bool {
	for range t.Diff(old) {
		return false
	}
	return true
}

func (t Table[V]) bucket(i int) *bucket[V] {
	if t.root == nil {
		return nil
	}
	return t.root[i]
}

// Edit starts a series of edits; t itself stays as it is.
func (t Table[V]) Edit() *Editor[V] {
	e := &Editor[V]{size: t.size, root: new([fanout]*bucket[V])}
	if t.root != nil {
		*e.root = *t.root
	}
	return e
}

// Editor collects edits and copies each bucket at most once.
type Editor[V comparable] struct {
	root  *[fanout]*bucket[V]
	owned [fanout]bool
	size  int
}

// Get returns the value of key as edited so far.
func (e *Editor[V]) Get(key string) (V, bool) { return e.root[slot(key)].get(key) }

// Set gives key a value.
func (e *Editor[V]) Set(key string, value V) {
	if now, found := e.Get(key); found && now == value {
		return
	}
	b := e.own(slot(key))
	for i := range b.entries {
		if b.entries[i].Key == key {
			b.entries[i].Value = value
			return
		}
	}
	b.entries = append(b.entries, Entry[V]{key, value})
	e.size++
}

// Delete removes key.
func (e *Editor[V]) Delete(key string) {
	if _, found := e.Get(key); !found {
		return
	}
	b := e.own(slot(key))
	b.entries = slices.DeleteFunc(b.entries, func(entry Entry[V]) bool { return entry.Key == key })
	e.size--
}

// Table ends the series and returns the edited table. The editor must not be used afterwards.
func (e *Editor[V]) Table() Table[V] {
	t := Table[V]{root: e.root, size: e.size}
	e.root = nil
	return t
}

func (e *Editor[V]) own(i int) *bucket[V] {
	if !e.owned[i] {
		fresh := &bucket[V]{}
		if e.root[i] != nil {
			fresh.entries = slices.Clone(e.root[i].entries)
		}
		e.root[i], e.owned[i] = fresh, true
	}
	return e.root[i]
}

func (b *bucket[V]) get(key string) (V, bool) {
	if b != nil {
		for i := range b.entries {
			if b.entries[i].Key == key {
				return b.entries[i].Value, true
			}
		}
	}
	var none V
	return none, false
}

// diff yields what turns b into is and says whether to go on.
func (b *bucket[V]) diff(is *bucket[V], yield func(Change[V]) bool) bool {
	if b != nil {
		for _, e := range b.entries {
			now, found := is.get(e.Key)
			if found && now == e.Value {
				continue
			}
			if !yield(Change[V]{Key: e.Key, Old: e.Value, New: now, HadOld: true, HasNew: found}) {
				return false
			}
		}
	}
	if is != nil {
		for _, e := range is.entries {
			if _, found := b.get(e.Key); found {
				continue
			}
			if !yield(Change[V]{Key: e.Key, New: e.Value, HasNew: true}) {
				return false
			}
		}
	}
	return true
}

// slot is FNV-1a over the key: stable between runs, so that nothing depends on a seed.
func slot(key string) int {
	h := uint32(2166136261)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	return int(h % fanout)
}
