package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/limpet-gateway/limpet/controller/model"
)

// spareProfile is how many slots of a profile in use are free after a reload, at least: the next rule with the same
// profile needs none then.
const spareProfile = 2

// Profile says what is special about a slot.
func (p Placement) Profile(slot string) model.Profile { return p.profiles[number(slot)] }

// SlotNames are all slots, in order.
func (p Placement) SlotNames() []string {
	names := make([]string, p.Capacity)
	for i := range names {
		names[i] = name(i + 1)
	}
	return names
}

// Backends are all backends of a configuration with their profiles, as Update takes them.
func Backends(config model.Config) map[string]model.Profile {
	all := map[string]model.Profile{}
	for _, e := range config.Backends.Sorted() {
		all[e.Key] = e.Value.Profile()
	}
	return all
}

// MoreThan says of which profiles there are more slots than in another placement, in plain words.
func (p Placement) MoreThan(was Placement) []string {
	counts, before := map[model.Profile]int{}, map[model.Profile]int{}
	for _, profile := range p.profiles {
		counts[profile]++
	}
	for _, profile := range was.profiles {
		before[profile]++
	}
	var words []string
	for profile, count := range counts {
		if count > before[profile] {
			words = append(words, fmt.Sprintf("%d slots instead of %d for backends with %s", count, before[profile], describe(profile)))
		}
	}
	slices.Sort(words)
	return words
}

func describe(profile model.Profile) string {
	if profile.TCP {
		return "TCP"
	}
	text := fmt.Sprintf("%d retries", profile.Attempts)
	if profile.Codes != "" {
		text += " on " + profile.Codes
	}
	if profile.Timeouts {
		text += " after timeouts"
	}
	return text
}

// takeIdle makes a slot for a profile, of one whose profile nobody uses if there is any: a reload is needed in any case.
func (p *Placement) takeIdle(profile model.Profile) int {
	n := p.idle()
	if i, found := slices.BinarySearch(p.free, n); found {
		p.free = slices.Delete(p.free, i, i+1)
	}
	if p.profiles == nil {
		p.profiles = map[int]model.Profile{}
	}
	p.profiles[n] = profile
	p.Capacity = max(p.Capacity, n)
	return n
}

// idle is a free slot whose profile no slot in use has, else a new one.
func (p *Placement) idle() int {
	inUse := p.inUse()
	for _, n := range p.free {
		if profile, special := p.profiles[n]; special && inUse[profile] == 0 {
			return n
		}
	}
	return max(p.Capacity, p.next) + 1
}

// inUse counts the slots of each profile that are not free.
func (p *Placement) inUse() map[model.Profile]int {
	counts := map[model.Profile]int{}
	for n, profile := range p.profiles {
		if _, free := slices.BinarySearch(p.free, n); !free {
			counts[profile]++
		}
	}
	return counts
}

// grownProfiles adds slots to the profiles of which less than a quarter is free.
func (p Placement) grownProfiles() Placement {
	totals, used := map[model.Profile]int{}, p.inUse()
	for _, profile := range p.profiles {
		totals[profile]++
	}
	grown := false
	for _, profile := range slices.SortedFunc(maps.Keys(used), compare) {
		total := totals[profile]
		if (total-used[profile])*spare >= total {
			continue
		}
		if !grown {
			p, grown = p.copied(), true
		}
		for range used[profile] + max(spareProfile, used[profile]/2) - total {
			p.free = append(p.free, p.takeIdle(profile))
			slices.Sort(p.free)
		}
	}
	return p
}

func compare(a, b model.Profile) int {
	return cmp.Or(cmp.Compare(a.Attempts, b.Attempts), cmp.Compare(describe(a), describe(b)))
}
