package placement

import (
	"encoding/json"
	"fmt"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/internal/table"
)

// stored is a Placement on disk. Free slots are those that no backend has. One without profiles is of an older Limpet.
type stored struct {
	Capacity int               `json:"capacity"`
	Cookies  []string          `json:"cookies,omitempty"`
	Headers  []string          `json:"headers,omitempty"`
	Slots    map[string]string `json:"slots,omitempty"`
	Leaving  map[string]string `json:"leaving,omitempty"`
	// Profiles are those of the slots that are not for everybody.
	Profiles map[string]model.Profile `json:"profiles,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (p Placement) MarshalJSON() ([]byte, error) {
	s := stored{Capacity: p.Capacity, Cookies: p.Cookies, Headers: p.Headers, Slots: map[string]string{}, Leaving: p.leaving}
	for _, e := range p.slots.Sorted() {
		s.Slots[e.Key] = e.Value
	}
	for n, profile := range p.profiles {
		if s.Profiles == nil {
			s.Profiles = map[string]model.Profile{}
		}
		s.Profiles[name(n)] = profile
	}
	return json.Marshal(s)
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Placement) UnmarshalJSON(text []byte) error {
	var s stored
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	fresh := Placement{Capacity: s.Capacity, Cookies: s.Cookies, Headers: s.Headers, leaving: s.Leaving}
	if err := fresh.setProfiles(s); err != nil {
		return err
	}
	edit := table.Table[string]{}.Edit()
	taken := map[int]string{}
	take := func(slot, backend string) error {
		n := number(slot)
		if other, twice := taken[n]; twice || n < 1 || n > s.Capacity {
			return fmt.Errorf("placement: slot %q of %q is not one of %d, or also that of %q", slot, backend, s.Capacity, other)
		}
		taken[n] = backend
		if _, special := fresh.profiles[n]; !special {
			fresh.next = max(fresh.next, n)
		}
		return nil
	}
	for backend, slot := range s.Slots {
		if err := take(slot, backend); err != nil {
			return err
		}
		edit.Set(backend, slot)
	}
	for slot, backend := range s.Leaving {
		if err := take(slot, backend); err != nil {
			return err
		}
	}
	for n := 1; n <= s.Capacity; n++ {
		_, special := fresh.profiles[n]
		if _, is := taken[n]; !is && (special || n < fresh.next) {
			fresh.free = append(fresh.free, n)
		}
	}
	fresh.slots = edit.Table()
	*p = fresh
	return nil
}

func (p *Placement) setProfiles(s stored) error {
	for slot, profile := range s.Profiles {
		n := number(slot)
		if n < 1 || n > s.Capacity || profile == (model.Profile{}) {
			return fmt.Errorf("placement: slot %q with a profile is not one of %d, or its profile is everybody's", slot, s.Capacity)
		}
		if p.profiles == nil {
			p.profiles = map[int]model.Profile{}
		}
		p.profiles[n] = profile
	}
	return nil
}
