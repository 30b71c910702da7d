// Package placement says which slot of HAProxy's configuration serves which backend, and which names the configuration
// holds literally.
//
// HAProxy 3.0 cannot add a backend section at run time, so sections are generic slots, declared ahead, and a backend is
// placed in one when it first appears. A Placement is stored beside the files and is an input of rendering: after a
// restart every backend is where it was. It must never move a backend that is in use.
package placement

import (
	"fmt"
	"slices"

	"github.com/limpet-gateway/limpet/internal/table"
)

// Sizes of the pool: it never has fewer slots than minimum, and a reload leaves at least spare of them free.
const (
	minimum = 64
	spare   = 4 // a quarter
)

// Placement maps backends to slots. It is a value: Update gives a new one.
type Placement struct {
	// Capacity is the number of slots in the running configuration: s1 to sN.
	Capacity int
	// Cookies and Headers are session names that the configuration holds literally, where reading them is cheapest.
	Cookies, Headers []string

	slots table.Table[string] // backend to slot
	free  []int               // slots that were given back, ascending
	next  int                 // slots from here on were never used
}

// Slot returns the slot of a backend.
func (p Placement) Slot(backend string) (string, bool) { return p.slots.Get(backend) }

// Slots returns all backends with their slots, by backend.
func (p Placement) Slots() []table.Entry[string] { return p.slots.Sorted() }

// Used returns the number of slots in use.
func (p Placement) Used() int { return p.slots.Len() }

// Full says that a background reload should add slots: less than a quarter of them is free.
func (p Placement) Full() bool { return (p.Capacity-p.Used())*spare < p.Capacity }

// Grown returns the placement with the capacity that it should have after a reload.
func (p Placement) Grown() Placement {
	need := max(minimum, p.Used()+p.Used()/2)
	if p.Full() && need > p.Capacity {
		p.Capacity = (need + minimum - 1) / minimum * minimum
	}
	return p
}

// Update places the backends that were added and gives back the slots of those that were removed. The capacity grows
// when they do not fit, which makes the difference one that needs a reload.
//
// A slot that is given back here must not be used again before its servers are deleted: the caller updates once to
// remove, applies, and only then may a new backend take the slot.
func (p Placement) Update(added, removed []string) Placement {
	edit := p.slots.Edit()
	free := slices.Clone(p.free)
	slices.Sort(added)
	for _, backend := range added {
		if _, placed := edit.Get(backend); placed {
			continue
		}
		slot := 0
		if len(free) > 0 {
			slot, free = free[0], free[1:]
		} else {
			p.next++
			slot = p.next
		}
		edit.Set(backend, name(slot))
	}
	for _, backend := range removed {
		if slot, placed := edit.Get(backend); placed {
			edit.Delete(backend)
			free = append(free, number(slot))
		}
	}
	slices.Sort(free)
	p.free = free
	p.slots = edit.Table()
	if p.next > p.Capacity {
		p = p.Grown()
	}
	return p
}

func name(slot int) string { return fmt.Sprintf("s%d", slot) }

func number(slot string) int {
	n := 0
	_, _ = fmt.Sscanf(slot, "s%d", &n)
	return n
}
