package dataplane

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/internal/certtest"
	"github.com/limpet-gateway/limpet/internal/table"
)

// maps builds map files from lines "file key value".
func mapsOf(lines ...string) map[string]table.Table[files.Entry] {
	all := map[string]table.Table[files.Entry]{}
	for _, name := range []string{"hosts.map", "paths.map", "candidates.map", "sni.map"} {
		all[name] = table.Table[files.Entry]{}
	}
	for _, line := range lines {
		words := strings.SplitN(line, " ", 3)
		edit := all[words[0]].Edit()
		edit.Set(words[1], files.Entry{Owner: "O", Value: words[2]})
		all[words[0]] = edit.Table()
	}
	return all
}

func serversOf(all ...files.Server) table.Table[files.Server] {
	edit := table.Table[files.Server]{}.Edit()
	for _, s := range all {
		edit.Set(files.ServerKey(s.Slot, s.Name), s)
	}
	return edit.Table()
}

func (s Step) brief() string {
	switch s.Action {
	case AddServer, ChangeServer, RemoveServer:
		return fmt.Sprintf("%s server %s/%s", map[Action]string{AddServer: "add", ChangeServer: "change", RemoveServer: "remove"}[s.Action], s.Server.Slot, s.Server.Name)
	case ReplaceMap:
		return fmt.Sprintf("replace %s by %d", s.Map, s.Content.Len())
	}
	return fmt.Sprintf("%s %s %s %s", map[Action]string{AddEntry: "add", SetEntry: "set", RemoveEntry: "remove"}[s.Action], s.Map, s.Key, s.Value)
}

func TestWhatIsLedToComesFirstAndGoesLast(t *testing.T) {
	t.Parallel()
	a := files.Server{Slot: "s1", Name: "a", Address: "127.0.0.1:1", ID: 1, Weight: 1}
	b, c := a, a
	b.Slot, c.Name = "s2", "c"
	changed := a
	changed.Weight = 0
	running := files.Set{
		Maps:    mapsOf("hosts.map h v", "paths.map v/ g1", "candidates.map g1 x", "hosts.map old v2", "paths.map v2/ s1"),
		Servers: serversOf(a, c),
	}
	wanted := files.Set{
		Maps:    mapsOf("hosts.map h v", "paths.map v/ g2", "candidates.map g2 y", "hosts.map new v3", "paths.map v3/ s2", "sni.map n t"),
		Servers: serversOf(changed, b),
	}
	plan := Diff(running, wanted)
	var got []string
	for _, step := range plan.Steps {
		got = append(got, step.brief())
	}
	want := []string{
		"change server s1/a", "add server s2/a",
		"add sni.map n t", "add candidates.map g2 y", "set paths.map v/ g2", "add paths.map v3/ s2", "add hosts.map new v3",
		"remove hosts.map old ", "remove paths.map v2/ ", "remove candidates.map g1 ",
		"remove server s1/c",
	}
	if len(plan.Reload) > 0 || !slices.Equal(got, want) {
		t.Errorf("%v\ngot\n%s\nwant\n%s", plan.Reload, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if plan := Diff(wanted, wanted); len(plan.Steps)+len(plan.Reload) > 0 {
		t.Errorf("nothing differs, but: %+v", plan)
	}
}

func TestLargeDifferencesReplaceTheMap(t *testing.T) {
	t.Parallel()
	many := func(prefix string, n int) (lines []string) {
		for i := range n {
			lines = append(lines, fmt.Sprintf("paths.map %s%d s1", prefix, i))
		}
		return lines
	}
	running := files.Set{Maps: mapsOf(append(many("old", bulk+1), "paths.map stays s1", "paths.map changes s1")...)}
	wanted := files.Set{Maps: mapsOf(append(many("new", bulk), "paths.map stays s1", "paths.map changes s2")...)}
	var got []string
	for _, step := range Diff(running, wanted).Steps {
		got = append(got, step.brief())
	}
	want := []string{fmt.Sprintf("replace paths.map by %d", 2*bulk+3), fmt.Sprintf("replace paths.map by %d", bulk+2)}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatOnlyAReloadDoesIsSaidInPlainWords(t *testing.T) {
	t.Parallel()
	authority := certtest.NewCA("1").PEM
	base := func() files.Set {
		return files.Set{
			Sections: []files.Section{
				{Name: "global", Text: "global\n"},
				{Name: "frontend p1", Text: "frontend p1\n  bind :1 ssl no-ca-names ca-file 'cas/x.pem'\n", Owners: map[int]string{0: "Gateway a"}},
				{Name: "backend s1", Text: "backend s1\n", Slot: "s1"},
			},
			Assets: table.Of(
				table.Entry[files.Asset]{Key: "cas/x.pem", Value: files.Asset{Owner: "ConfigMap x", Text: authority}},
				table.Entry[files.Asset]{Key: "certs/c.pem", Value: files.Asset{Owner: "Secret c", Text: "1", Secret: true}},
				table.Entry[files.Asset]{Key: "lists/l.list", Value: files.Asset{Owner: "Gateway a", Text: "certs/c.pem\ncerts/e.pem\ncerts/f.pem\n"}},
			),
			Maps:    mapsOf(),
			Servers: serversOf(files.Server{Slot: "s1", Name: "a", Address: "127.0.0.1:1", ID: 1, Weight: 1}),
		}
	}
	asset := func(name, owner, text string, secret bool) func(*files.Set) {
		return func(s *files.Set) {
			edit := s.Assets.Edit()
			edit.Set(name, files.Asset{Owner: owner, Text: text, Secret: secret})
			s.Assets = edit.Table()
		}
	}
	for want, change := range map[string]func(*files.Set){
		"global changed":                    func(s *files.Set) { s.Sections[0].Text += "    maxconn 1\n" },
		"frontend p1 of Gateway a removed":  func(s *files.Set) { s.Sections = []files.Section{s.Sections[0], s.Sections[2]} },
		"2 slots instead of 1":              func(s *files.Set) { s.Sections = append(s.Sections, files.Section{Name: "backend s2", Slot: "s2"}) },
		"the order of the sections changed": func(s *files.Set) { s.Sections[1], s.Sections[2] = s.Sections[2], s.Sections[1] },
		"certificate certs/c.pem of Secret c changed, and is longer than a command":               asset("certs/c.pem", "Secret c", strings.Repeat("2", 20_000), true),
		"file lists/l.list of Gateway a: its first certificate changed":                           asset("lists/l.list", "Gateway a", "certs/d.pem\ncerts/c.pem\n", false),
		"file lists/l.list of Gateway a: its order changed":                                       asset("lists/l.list", "Gateway a", "certs/c.pem\ncerts/f.pem\ncerts/e.pem\n", false),
		"file lists/l.list of Gateway a: it names a certificate twice":                            asset("lists/l.list", "Gateway a", "certs/c.pem\ncerts/c.pem x\n", false),
		"CA bundle cas/x.pem of ConfigMap x lost a CA, whose clients would resume their sessions": asset("cas/x.pem", "ConfigMap x", certtest.NewCA("2").PEM, false),
		"file lists/m.list of Gateway a added":                                                    asset("lists/m.list", "Gateway a", "certs/c.pem\n", false),
		"the keys added":                                                                          asset("keys.cfg", "", "x", true),
		"file x.lua added":                                                                        asset("x.lua", "", "x", false),
		"map more.map added":                                                                      func(s *files.Set) { s.Maps["more.map"] = table.Table[files.Entry]{} },
		"map sni.map removed":                                                                     func(s *files.Set) { delete(s.Maps, "sni.map") },
		"server s1/a changed what only a new one takes": func(s *files.Set) {
			s.Servers = serversOf(files.Server{Slot: "s1", Name: "a", Address: "127.0.0.1:1", ID: 2, Weight: 1})
		},
	} {
		wanted := base()
		change(&wanted)
		if plan := Diff(base(), wanted); !slices.Equal(plan.needs(), []string{want}) || len(plan.Steps) > 0 {
			t.Errorf("%q and %d steps, want %q", plan.needs(), len(plan.Steps), want)
		}
	}
	other := base()
	other.Sections[1].Owners = map[int]string{0: "Gateway b"}
	asset("certs/c.pem", "Secret d", "1", true)(&other)
	if plan := Diff(base(), other); len(plan.Reload) > 0 {
		t.Errorf("another owner alone: %q", plan.Reload)
	}
	forgetful, swapped := base(), base()
	forgetful.Sections[0].Text += "  tune.ssl.cachesize 0\n"
	swapped.Sections[0].Text = forgetful.Sections[0].Text
	asset("cas/x.pem", "ConfigMap x", certtest.NewCA("2").PEM, false)(&swapped)
	if plan := Diff(forgetful, swapped); len(plan.needs()) > 0 || len(plan.Steps) != 1 {
		t.Errorf("another CA where no session is resumed: %q", plan.needs())
	}
	many := base()
	for i := range 30 {
		many.Sections = append(many.Sections, files.Section{Name: fmt.Sprintf("frontend x%d", i), Text: "x"})
	}
	if plan := Diff(base(), many); len(plan.Reload) != 11 || plan.Reload[10] != "and 20 more" {
		t.Errorf("many reasons: %q", plan.Reload)
	}
}

func TestLeavingOutCostsNobodyElse(t *testing.T) {
	t.Parallel()
	set := func(port, value string) files.Set {
		return files.Set{
			Sections: []files.Section{
				{Name: "frontend p1", Text: "frontend p1\n    bind " + port + "\n", Owners: map[int]string{0: "X", 1: "X"}},
				{Name: "frontend p2", Text: "frontend p2\n", Owners: map[int]string{0: "Y"}},
			},
			Maps: map[string]table.Table[files.Entry]{"hosts.map": table.Of(
				table.Entry[files.Entry]{Key: "x", Value: files.Entry{Owner: "X", Value: value}},
				table.Entry[files.Entry]{Key: "y", Value: files.Entry{Owner: "Y", Value: "1"}},
				table.Entry[files.Entry]{Key: "y y", Value: files.Entry{Owner: "Y", Value: "1"}},
			)},
			Servers: serversOf(files.Server{Owner: "X", Slot: "s1", Name: "x", Address: "127.0.0.1:1", ID: 1},
				files.Server{Owner: "Y", Slot: "s1", Name: "y y", Address: "127.0.0.1:1", ID: 1}),
		}
	}
	var l leaveOuts
	l.update(set(":1", "1"))
	if got := l.set(); got.Maps["hosts.map"].Len() != 2 || got.Servers.Len() != 1 || len(l.words()) != 1 || !strings.Contains(l.words()["Y"], "(and 1 more)") {
		t.Errorf("bad entries: %d, %d servers, %v", got.Maps["hosts.map"].Len(), got.Servers.Len(), l.words())
	}
	l.refuse("X", "words", false)
	l.update(set(":1", "1"))
	if got := l.set(); len(got.Sections) != 1 || got.Maps["hosts.map"].Len() != 1 || got.Servers.Len() != 0 || l.words()["X"] != "words" {
		t.Errorf("without X: %+v", got)
	}
	first, second := l.set(), l.set()
	if !sameSlice(first.Sections, second.Sections) {
		t.Error("the sections are cut again each time")
	}
	for name, changed := range map[string]files.Set{"section": set(":2", "1"), "entry": set(":1", "2")} {
		l.refuse("X", "words", false)
		l.update(changed)
		if l.isRefused("X") || len(l.set().Sections) != 2 || l.set().Servers.Len() != 1 {
			t.Errorf("X changed its %s, and is left out still", name)
		}
	}
}

func TestWhoWasLeftOutBecauseOfAnotherComesBackWithIt(t *testing.T) {
	t.Parallel()
	set := func(text string) files.Set {
		return files.Set{
			Sections: []files.Section{{Name: "frontend p1", Text: "frontend p1\n", Owners: map[int]string{0: "L"}}},
			Assets: table.Of(
				table.Entry[files.Asset]{Key: "a.pem", Value: files.Asset{Owner: "C", Text: text, Secret: true}},
				table.Entry[files.Asset]{Key: "a.list", Value: files.Asset{Owner: "L", Text: "a.pem\n"}},
			),
		}
	}
	var l leaveOuts
	l.update(set("bad"))
	l.refuse("C", strings.Repeat("words", 1000), false)
	if got := l.set(); len(got.Sections) != 0 || got.Assets.Len() != 0 || len(l.words()) != 2 || !strings.Contains(l.words()["L"], "without C") {
		t.Errorf("%+v %v", got, l.words())
	}
	if len(l.words()["C"]) > 1100 {
		t.Errorf("the words have %d bytes", len(l.words()["C"]))
	}
	l.update(set("good"))
	if got := l.set(); len(got.Sections) != 1 || got.Assets.Len() != 2 || len(l.words()) != 0 {
		t.Errorf("%+v %v", got, l.words())
	}
}
