// Package placement says which slot of HAProxy's configuration serves which backend, and which names the configuration
// holds literally.
//
// HAProxy 3.0 cannot add a backend section at run time, so sections are generic slots, declared ahead, and a backend is
// placed in one when it first appears. What is tried again only a section can say, so that slots have retry profiles. A
// Placement is stored beside the files and is an input of rendering: after a restart every backend is where it was. It must
// never move a backend that is in use without being asked to, and never give a slot away while servers of another backend
// may still be in it.
package placement

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/internal/table"
)

// Sizes of the pool: it never has fewer slots than minimum, and a reload leaves at least spare of them free.
const (
	minimum = 64
	spare   = 4 // a quarter
)

// Placement maps backends to slots. It is a value: every method that changes something gives a new one.
type Placement struct {
	// Capacity is the number of slots in the running configuration: s1 to sN.
	Capacity int
	// Cookies and Headers are session names that the configuration holds literally, where reading them is cheapest.
	Cookies, Headers []string

	slots    table.Table[string]   // backend to slot
	leaving  map[string]string     // slots whose servers may not be gone yet, to the backend that had them
	free     []int                 // slots that were given back, or that have a profile and wait, ascending
	next     int                   // slots without a profile up to here were used at some time
	profiles map[int]model.Profile // of the slots that are not for everybody
}

// Slot returns the slot of a backend.
func (p Placement) Slot(backend string) (string, bool) { return p.slots.Get(backend) }

// Keeps tells whether every backend that both have is where it was.
func (p Placement) Keeps(was Placement) bool {
	for change := range p.slots.Diff(was.slots) {
		if change.HadOld && change.HasNew && change.Old != change.New {
			return false
		}
	}
	return true
}

// Slots returns all backends with their slots, by backend.
func (p Placement) Slots() []table.Entry[string] { return p.slots.Sorted() }

// Used returns the number of slots that a new backend cannot have.
func (p Placement) Used() int { return p.slots.Len() + len(p.leaving) }

// Full says that a background reload should add slots: less than a quarter of them is free.
func (p Placement) Full() bool {
	grown := p.Grown()
	return grown.Capacity > p.Capacity || !maps.Equal(grown.profiles, p.profiles)
}

// WithSlotsOf is the placement without the slots that it has got since.
func (p Placement) WithSlotsOf(before Placement) Placement {
	p = p.copied()
	p.Capacity, p.profiles = before.Capacity, maps.Clone(before.profiles)
	p.free = slices.DeleteFunc(p.free, func(n int) bool { return n > p.Capacity })
	return p
}

// Grown returns the placement with the capacity that it should have after a reload. It is never less than the minimum, so
// that the first route of an installation without any needs no reload.
func (p Placement) Grown() Placement {
	total, free := p.pool()
	used := total - free
	if need := max(minimum, used+used/2); (free*spare < total || total < minimum) && need > total {
		p.Capacity += (need+minimum-1)/minimum*minimum - total
	}
	return p.grownProfiles()
}

// pool counts the slots without a profile, and the free ones among them.
func (p Placement) pool() (total, free int) {
	waiting := 0
	for _, n := range p.free {
		if _, special := p.profiles[n]; special {
			waiting++
		}
	}
	total = p.Capacity - len(p.profiles)
	return total, total - (p.Used() - (len(p.profiles) - waiting))
}

// Update places the backends that were added, in slots of their profiles; one that comes back while its slot still drains gets
// that slot again. The slots of those that were removed are leaving: nobody gets them until Released. The capacity grows when
// there is no slot left, which makes the difference one that needs a reload.
func (p Placement) Update(added map[string]model.Profile, removed []string) Placement {
	if len(added) == 0 && len(removed) == 0 {
		return p
	}
	edit := p.slots.Edit()
	p = p.copied()
	for _, backend := range removed {
		if slot, placed := edit.Get(backend); placed {
			edit.Delete(backend)
			p.leave(slot, backend)
		}
	}
	before := len(p.profiles)
	for _, backend := range slices.Sorted(maps.Keys(added)) {
		if _, placed := edit.Get(backend); !placed {
			edit.Set(backend, p.take(backend, added[backend]))
		}
	}
	p.slots = edit.Table()
	if len(p.profiles) > before || p.next > p.Capacity {
		p = p.Grown()
	}
	return p
}

// copied is the placement with what changes in place of its own.
func (p Placement) copied() Placement {
	p.leaving, p.free, p.profiles = maps.Clone(p.leaving), slices.Clone(p.free), maps.Clone(p.profiles)
	return p
}

// take finds a slot for a backend, or makes one.
func (p *Placement) take(backend string, profile model.Profile) string {
	for _, slot := range slices.Sorted(maps.Keys(p.leaving)) {
		if p.leaving[slot] == backend && p.Profile(slot) == profile {
			delete(p.leaving, slot)
			return slot
		}
	}
	if slot, found := p.takeFree(profile); found {
		return slot
	}
	if profile == (model.Profile{}) {
		p.next = p.following()
		return name(p.next)
	}
	return name(p.takeIdle(profile))
}

// takeFree finds a slot that a reload is not needed for.
func (p *Placement) takeFree(profile model.Profile) (string, bool) {
	for i, n := range p.free {
		if p.profiles[n] == profile {
			p.free = slices.Delete(p.free, i, i+1)
			return name(n), true
		}
	}
	if n := p.following(); profile == (model.Profile{}) && n <= p.Capacity {
		p.next = n
		return name(n), true
	}
	return "", false
}

// following is the first slot without a profile that was never used.
func (p *Placement) following() int {
	n := p.next + 1
	for ; p.profiles[n] != (model.Profile{}); n++ {
	}
	return n
}

// Moved gives the backends of some slots free ones, where their servers can be made anew while those in the old ones finish;
// the old ones are leaving. It says no, and changes nothing, when there are not enough.
func (p Placement) Moved(slots map[string]string) (Placement, bool) {
	var backends []string
	for _, e := range p.slots.Sorted() {
		if _, moves := slots[e.Value]; moves {
			backends = append(backends, e.Key)
		}
	}
	was := p
	edit := p.slots.Edit()
	p = p.copied()
	for _, backend := range backends {
		slot, _ := edit.Get(backend)
		other, found := p.takeFree(p.Profile(slot))
		if !found {
			return was, false
		}
		edit.Set(backend, other)
		p.leave(slot, "") // nobody's: should the backend go and come back, its old servers are not taken for it
	}
	p.slots = edit.Table()
	return p, len(backends) > 0
}

func (p *Placement) leave(slot, backend string) {
	if p.leaving == nil {
		p.leaving = map[string]string{}
	}
	p.leaving[slot] = backend
}

// Leaving returns the slots that were given back and wait for Released, in order.
func (p Placement) Leaving() []string {
	return slices.SortedFunc(maps.Keys(p.leaving), func(a, b string) int { return number(a) - number(b) })
}

// Released says that no server is left in these slots: new backends may have them.
func (p Placement) Released(slots ...string) Placement {
	p = p.copied()
	for _, slot := range slots {
		if _, is := p.leaving[slot]; is {
			delete(p.leaving, slot)
			p.free = append(p.free, number(slot))
		}
	}
	slices.Sort(p.free)
	return p
}

// Withheld keeps a slot from new backends until Released, because servers of nobody that is known are in it. A slot
// that has a backend stays that backend's.
func (p Placement) Withheld(slot string) Placement {
	n := number(slot)
	if n < 1 || n > p.Capacity || p.taken(slot) {
		return p
	}
	p = p.copied()
	for p.profiles[n] == (model.Profile{}) && p.next < n {
		p.next = p.following()
		p.free = append(p.free, p.next)
	}
	slices.Sort(p.free)
	p.free = slices.DeleteFunc(p.free, func(f int) bool { return f == n })
	p.leave(slot, "")
	return p
}

func (p Placement) taken(slot string) bool {
	if _, leaving := p.leaving[slot]; leaving {
		return true
	}
	for c := range p.slots.Diff(table.Table[string]{}) {
		if c.New == slot {
			return true
		}
	}
	return false
}

func name(slot int) string { return fmt.Sprintf("s%d", slot) }

// number is a slot's; 0 for what is no slot's name.
func number(slot string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(slot, "s"))
	if err != nil || name(n) != slot {
		return 0
	}
	return n
}
