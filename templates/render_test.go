package templates

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/internal/table"
)

func newRenderer(t testing.TB) *Renderer {
	t.Helper()
	r, err := NewRenderer(Settings{AdminSocket: "/run/a", HealthSocket: "/run/h", Instance: "i", HardStopAfter: "1h", SignKeys: []SignKey{{"a", "AAAA"}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestARendererThatRemembersRendersWhatAFreshOneRenders edits a configuration at random.
func TestARendererThatRemembersRendersWhatAFreshOneRenders(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	var config model.Config
	var place placement.Placement
	remembering := newRenderer(t)
	for step := range 150 {
		before := config.Backends
		config = edited(config, random)
		place = placed(place, config.Backends, before)
		if slots := place.Slots(); step%7 == 0 && len(slots) > 0 {
			place, _ = place.Moved(map[string]string{slots[0].Value: "its servers are made anew"})
			place = place.Released(place.Leaving()...)
		}
		got, gotFaults, err := remembering.Render(config, place)
		if err != nil {
			t.Fatal(err)
		}
		want, wantFaults, err := newRenderer(t).Render(config, place)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(flat(want), flat(got)); diff != "" {
			t.Fatalf("step %d (-fresh +remembering):\n%s", step, diff)
		}
		if diff := cmp.Diff(wantFaults, gotFaults); diff != "" {
			t.Fatal(diff)
		}
	}
}

// placed keeps the placement in step with the backends.
func placed(place placement.Placement, now, before table.Table[*model.Backend]) placement.Placement {
	added, removed := map[string]model.Profile{}, []string(nil)
	for change := range now.Diff(before) {
		switch {
		case !change.HadOld:
			added[change.Key] = change.New.Profile()
		case !change.HasNew:
			removed = append(removed, change.Key)
		}
	}
	return place.Update(added, removed)
}

func edited(config model.Config, random *rand.Rand) model.Config {
	id := func(prefix string) string { return fmt.Sprintf("%s%d", prefix, random.IntN(8)) }
	backends, rules, paths := config.Backends.Edit(), config.Rules.Edit(), config.Paths.Edit()
	switch random.IntN(6) {
	case 0:
		config.Frame = model.Frame{Ports: []model.Port{{ID: id("p"), Address: netip.MustParseAddr("127.0.0.1"), Bind: 80, Public: 80}}}
	case 1, 2:
		name := id("b")
		b := &model.Backend{Name: name}
		for i := range random.IntN(4) {
			b.Endpoints = append(b.Endpoints, model.Endpoint{
				Name: fmt.Sprintf("e%d", i), ID: int32(i + 1), Draining: random.IntN(2) == 0,
				Address: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(random.IntN(1000))),
			})
		}
		switch random.IntN(4) {
		case 0:
			b.External = id("name") + ".example:443"
		case 1:
			b.TLS = &model.BackendTLS{ServerName: id("a"), SubjectAltNames: []model.SubjectAltName{{DNS: id("b")}}}
		}
		backends.Set(name, b)
	default:
		name := id("r")
		rule := &model.Rule{ID: name, Owner: "HTTPRoute a/b"}
		for i := range 1 + random.IntN(3) {
			share := model.Share{Weight: uint32(random.IntN(3))}
			if b := id("b"); random.IntN(3) > 0 && has(backends, b) {
				share.Backend = b
				share.Session = &model.Session{
					ID: fmt.Sprintf("s%s%d", name, i), Scope: name, Backend: b, Carrier: model.Cookie, Name: id("c"), Path: "/",
				}
			}
			if random.IntN(2) == 0 {
				share.Filters.Request = &model.HeaderChange{Add: []model.Header{{Name: "A", Value: id("v")}}}
			}
			rule.Split = append(rule.Split, share)
		}
		rules.Set(name, rule)
		path := &model.Path{Candidates: []model.Candidate{toRule(name)}}
		if random.IntN(2) == 0 {
			path.Candidates = append([]model.Candidate{toRule(name, model.Condition{On: model.OnMethod, Value: id("M")})}, path.Candidates...)
		}
		paths.Set(id("v/"), path)
		paths.Delete(id("v/"))
	}
	config.Backends, config.Rules, config.Paths = backends.Table(), rules.Table(), paths.Table()
	return config
}

func has(backends interface {
	Get(string) (*model.Backend, bool)
}, name string) bool {
	_, found := backends.Get(name)
	return found
}

// flat is a set in a form that cmp can compare and people can read.
func flat(set files.Set) map[string]string {
	all := map[string]string{}
	for i, s := range set.Sections {
		all[fmt.Sprintf("section %d", i)] = s.Text
	}
	for _, e := range set.Assets.Sorted() {
		all["asset "+e.Key] = e.Value.Text
	}
	for name, entries := range set.Maps {
		for _, e := range entries.Sorted() {
			all[name+" "+e.Key] = e.Value.Owner + e.Value.Value
		}
	}
	for _, e := range set.Servers.Sorted() {
		all["server "+e.Key] = fmt.Sprint(e.Value)
	}
	return all
}

func TestKeysAreInNoFileThatIsShown(t *testing.T) {
	r, err := NewRenderer(Settings{AdminSocket: "a", HealthSocket: "h", Instance: "i", HardStopAfter: "1h", SignKeys: []SignKey{{"a", "c2VjcmV0"}}})
	if err != nil {
		t.Fatal(err)
	}
	set, _, err := r.Render(model.Config{}, placement.Placement{})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range flat(set) {
		if strings.Contains(text, "c2VjcmV0") != (name == "asset "+KeysFile) {
			t.Errorf("the key is in %s, or is missing there", name)
		}
	}
	if keys, _ := set.Assets.Get(KeysFile); !keys.Secret {
		t.Error("the file with the keys is not secret")
	}
}
