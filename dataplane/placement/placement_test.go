package placement

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/limpet-gateway/limpet/controller/model"
)

func TestABackendKeepsItsSlotWhileOthersComeAndGo(t *testing.T) {
	t.Parallel()
	p := Placement{}.Update(plain("b", "a"), nil)
	a, _ := p.Slot("a")
	for i := range 200 {
		name := fmt.Sprintf("other-%d", i)
		p = p.Update(plain(name), nil)
		if i%3 == 0 {
			p = p.Update(nil, []string{name})
			p = p.Released(p.Leaving()...)
		}
		if now, _ := p.Slot("a"); now != a {
			t.Fatalf("a moved from %s to %s", a, now)
		}
	}
}

func TestASlotIsNotGivenAwayBeforeItIsReleased(t *testing.T) {
	t.Parallel()
	p := Placement{}.Update(plain("a"), nil)
	slot, _ := p.Slot("a")
	p = p.Update(plain("b"), []string{"a"})
	if got, _ := p.Slot("b"); got == slot {
		t.Fatalf("b got %s, in which a's servers may still be", slot)
	}
	p = p.Released(slot).Update(plain("c"), nil)
	if got, _ := p.Slot("c"); got != slot {
		t.Errorf("c got %s, want the released %s", got, slot)
	}
}

func TestABackendThatComesBackGetsItsDrainingSlotAgain(t *testing.T) {
	t.Parallel()
	p := Placement{}.Update(plain("a", "b"), nil)
	slot, _ := p.Slot("b")
	p = p.Update(nil, []string{"b"}).Update(plain("x", "b"), nil)
	if got, _ := p.Slot("b"); got != slot || len(p.Leaving()) != 0 {
		t.Errorf("b is in %s, want %s; leaving: %v", got, slot, p.Leaving())
	}
}

func TestCapacityGrowsOnlyWhenNothingIsFree(t *testing.T) {
	t.Parallel()
	p := Placement{}.Update(plain(names(1)...), nil).Update(plain(names(48)...), nil)
	if p.Capacity != 64 || p.Full() {
		t.Errorf("48 backends: capacity %d, full %v; want 64, false", p.Capacity, p.Full())
	}
	p = p.Update(plain("one more"), nil)
	if capacity := (Placement{}).Grown().Capacity; capacity != 64 {
		t.Errorf("without a backend there are %d slots, want 64", capacity)
	}
	if p.Capacity != 64 || !p.Full() || p.Grown().Capacity != 128 {
		t.Errorf("49 backends: capacity %d, full %v, grown %d; want 64, true, 128", p.Capacity, p.Full(), p.Grown().Capacity)
	}
	if p = p.Update(plain(names(65)...), nil); p.Capacity != 128 {
		t.Errorf("66 backends: capacity %d, want 128", p.Capacity)
	}
}

func TestAWithheldSlotIsNobodys(t *testing.T) {
	t.Parallel()
	p := Placement{}.Update(plain("a"), nil).Withheld("s3").Withheld("s1").Withheld("s999").Withheld("nonsense")
	if got := p.Leaving(); !slices.Equal(got, []string{"s3"}) {
		t.Errorf("leaving %v, want s3 only", got)
	}
	p = p.Update(plain("b", "c"), nil)
	for backend, want := range map[string]string{"a": "s1", "b": "s2", "c": "s4"} {
		if got, _ := p.Slot(backend); got != want {
			t.Errorf("%s is in %s, want %s", backend, got, want)
		}
	}
}

func TestUpdateLeavesItsArgumentsAlone(t *testing.T) {
	t.Parallel()
	added := plain("b", "a")
	before := Placement{}.Update(plain("x", "y"), nil).Update(nil, []string{"x"})
	_ = before.Update(added, []string{"y"})
	_ = before.Released("s1")
	if !maps.Equal(added, plain("b", "a")) || !slices.Equal(before.Leaving(), []string{"s1"}) {
		t.Errorf("added is now %v, leaving %v", added, before.Leaving())
	}
}

func TestAPlacementSurvivesBeingStored(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	p := Placement{Cookies: []string{"C"}, Headers: []string{"H"}}
	for range 300 {
		name := fmt.Sprint(random.IntN(100))
		switch random.IntN(3) {
		case 0:
			p = p.Update(nil, []string{name})
		case 1:
			p = p.Released(p.Leaving()...)
		default:
			p = p.Update(plain(name), nil)
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var back Placement
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		again, _ := json.Marshal(back)
		if string(again) != string(text) || back.Used() != p.Used() {
			t.Fatalf("stored %s, came back as %s", text, again)
		}
		if a, b := p.Update(plain("new"), nil), back.Update(plain("new"), nil); a.Used() != b.Used() || a.Capacity != b.Capacity {
			t.Fatal("the stored placement does not go on like the other")
		}
	}
}

func TestAStoredPlacementThatContradictsItselfIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"capacity":64,"slots":{"a":"s1","b":"s1"}}`,
		`{"capacity":64,"slots":{"a":"s65"}}`,
		`{"capacity":64,"slots":{"a":"x"}}`,
		`{"capacity":64,"slots":{"a":"s1"},"leaving":{"s1":"b"}}`,
	} {
		var p Placement
		if err := json.Unmarshal([]byte(text), &p); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("backend-%03d", i)
	}
	return all
}

func TestABackendMovesToAFreeSlotAndLeavesItsOldOneToNobody(t *testing.T) {
	t.Parallel()
	was := Placement{Capacity: 3}.Update(plain("a", "b"), nil)
	is, moved := was.Moved(map[string]string{"s1": "why"})
	slot, _ := is.Slot("a")
	if !moved || slot != "s3" || is.Keeps(was) || !was.Keeps(was) || len(is.Leaving()) != 1 {
		t.Errorf("a is in %s, %v are leaving", slot, is.Leaving())
	}
	if _, moved := is.Moved(map[string]string{"s2": "why"}); moved {
		t.Error("a backend moved where no slot is free")
	}
	// It comes back while its old servers drain: they are not its own.
	back := is.Update(nil, []string{"a"}).Update(plain("a"), nil)
	if slot, _ := back.Slot("a"); slot != "s3" {
		t.Errorf("it comes back to %s", slot)
	}
}

// plain are backends without a profile.
func plain(names ...string) map[string]model.Profile {
	all := map[string]model.Profile{}
	for _, name := range names {
		all[name] = model.Profile{}
	}
	return all
}

func TestBackendsGetSlotsOfTheirProfiles(t *testing.T) {
	t.Parallel()
	often, rarely := model.Profile{Retry: model.Retry{Set: true, Attempts: 5, Codes: "500 503"}}, model.Profile{Retry: model.Retry{Set: true, Attempts: 1}}
	p := Placement{}.Update(plain("a"), nil).Grown()
	capacity := p.Capacity
	p = p.Update(map[string]model.Profile{"b": often, "c": {}}, nil)
	b, _ := p.Slot("b")
	if p.Profile(b) != often || p.Capacity != capacity+3 || len(p.SlotNames()) != p.Capacity || p.Profile("s1") != (model.Profile{}) {
		t.Fatalf("b is in %s of %v, capacity %d", b, p.Profile(b), p.Capacity)
	}
	if got := p.MoreThan(Placement{}); len(got) != 1 || got[0] != "3 slots instead of 0 for backends with 5 retries on 500 503" {
		t.Errorf("%q", got)
	}
	// The next ones need no reload, until a quarter is used up.
	same := p.Update(map[string]model.Profile{"d": often}, nil)
	if d, _ := same.Slot("d"); same.Profile(d) != often || same.Capacity != p.Capacity || same.Full() {
		t.Errorf("d is in %s, capacity %d, full %v", d, same.Capacity, same.Full())
	}
	same = same.Update(map[string]model.Profile{"e": often}, nil)
	if !same.Full() || same.Grown().Capacity <= same.Capacity || len(same.Grown().MoreThan(same)) != 1 {
		t.Errorf("with three, capacity %d and then %d", same.Capacity, same.Grown().Capacity)
	}
	// A profile that nobody has any more gives its slots to another one.
	gone := p.Update(nil, []string{"b"})
	gone = gone.Released(gone.Leaving()...).Update(map[string]model.Profile{"f": rarely}, nil)
	if f, _ := gone.Slot("f"); gone.Profile(f) != rarely || gone.Capacity != p.Capacity {
		t.Errorf("f is in %s, capacity %d instead of %d", f, gone.Capacity, p.Capacity)
	}
	if p.Profile(b) != often {
		t.Error("the placement before changed")
	}
	// A backend whose profile changes goes elsewhere.
	other := p.Update(map[string]model.Profile{"b": rarely}, []string{"b"})
	if slot, _ := other.Slot("b"); slot == b || other.Profile(slot) != rarely || other.Keeps(p) {
		t.Errorf("b is in %s", slot)
	}
	// Slots without a profile go around those with one.
	full := p.Update(plain(names(capacity)...), nil)
	seen := map[string]bool{}
	for _, e := range full.Slots() {
		if seen[e.Value] || full.Profile(e.Value) != (model.Profile{}) != (e.Key == "b") {
			t.Errorf("%s is in %s", e.Key, e.Value)
		}
		seen[e.Value] = true
	}
	stored, err := json.Marshal(same)
	var back Placement
	if err == nil {
		err = json.Unmarshal(stored, &back)
	}
	d, _ := back.Slot("d")
	if err != nil || back.Profile(d) != often || back.Capacity != same.Capacity || !slices.Equal(back.free, same.free) || back.next != same.next {
		t.Errorf("%v: it is not what was stored: %s", err, stored)
	}
	if full.WithSlotsOf(p).Capacity != p.Capacity {
		t.Error("slots stay")
	}
}
