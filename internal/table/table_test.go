package table

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTableIsAMapThatKeepsItsPast edits at random and compares with a plain map after each series of edits.
func TestTableIsAMapThatKeepsItsPast(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	want := map[string]int{}
	var now Table[int]
	for range 200 {
		before, past := now, maps.Clone(want)
		e := now.Edit()
		for range random.IntN(50) {
			key := fmt.Sprint(random.IntN(3000))
			if random.IntN(3) == 0 {
				e.Delete(key)
				delete(want, key)
			} else {
				value := random.IntN(5)
				e.Set(key, value)
				want[key] = value
			}
		}
		now = e.Table()
		if got := asMap(now); !maps.Equal(got, want) || now.Len() != len(want) {
			t.Fatalf("table has %d entries, want %d", now.Len(), len(want))
		}
		if !maps.Equal(asMap(before), past) {
			t.Fatal("an edit changed the table that it started from")
		}
		replayed := past
		for c := range now.Diff(before) {
			if c.HasNew {
				replayed[c.Key] = c.New
			} else {
				delete(replayed, c.Key)
			}
		}
		if !maps.Equal(replayed, want) {
			t.Fatal("the difference does not lead from the old table to the new one")
		}
	}
}

func TestSortedDependsOnKeysAlone(t *testing.T) {
	a := Of(Entry[int]{"b", 2}, Entry[int]{"a", 1}, Entry[int]{"c", 3})
	b := Of(Entry[int]{"c", 3}, Entry[int]{"b", 2}, Entry[int]{"a", 1})
	if !slices.Equal(a.Sorted(), b.Sorted()) || !a.Same(b) {
		t.Fatalf("%v is not %v", a.Sorted(), b.Sorted())
	}
}

func asMap(t Table[int]) map[string]int {
	m := map[string]int{}
	for _, e := range t.Sorted() {
		m[e.Key] = e.Value
	}
	return m
}
