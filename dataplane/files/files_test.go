package files

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/internal/table"
)

// sample has two ports of two owners, two slots and a certificate list.
func sample() Set {
	return Set{
		Sections: []Section{
			{Name: "global", Text: "global\n    maxconn 100\n"},
			{Name: "frontend p1", Text: "# port\nfrontend p1\n    bind :1\n    bind :2\n", Owners: map[int]string{1: "A", 2: "A", 3: "B"}},
			{Name: "frontend p2", Text: "frontend p2\n    bind :3", Owners: map[int]string{0: "B", 1: "B"}},
			{Name: "backend s1", Text: "backend s1\n", Slot: "s1"},
			{Name: "backend s2", Text: "backend s2\n", Slot: "s2"},
		},
		Assets: table.Of(
			table.Entry[Asset]{Key: "certs/a.pem", Value: Asset{Owner: "CA", Text: "a", Secret: true}},
			table.Entry[Asset]{Key: "certs/b.pem", Value: Asset{Owner: "CB", Text: "b", Secret: true}},
			table.Entry[Asset]{Key: "lists/l.list", Value: Asset{Owner: "L", Text: "certs/a.pem\ncerts/b.pem [alpn h2] x.example\n"}},
			table.Entry[Asset]{Key: "lists/m.list", Value: Asset{Owner: "M", Text: "certs/a.pem\n"}},
		),
		Maps: map[string]table.Table[Entry]{
			"paths.map": table.Of(
				table.Entry[Entry]{Key: "v/b/\x01", Value: Entry{Owner: "R2", Value: "s2"}},
				table.Entry[Entry]{Key: "v/a/", Value: Entry{Owner: "R1", Value: "s1 x  y;#"}},
			),
			"empty.map": {},
		},
		Servers: servers(
			Server{Owner: "S", Slot: "s1", Name: "b", Address: "[::1]:2", ID: 2, Weight: 0, Options: "proto h2"},
			Server{Owner: "R", Slot: "s1", Name: "a", Address: "127.0.0.1:1", ID: 1, Weight: 5},
		),
	}
}

func servers(all ...Server) table.Table[Server] {
	edit := table.Table[Server]{}.Edit()
	for _, s := range all {
		edit.Set(ServerKey(s.Slot, s.Name), s)
	}
	return edit.Table()
}

func TestTheConfigurationIsSectionsWithTheirServers(t *testing.T) {
	t.Parallel()
	text, faults := sample().configText()
	want := `global
    maxconn 100
# port
frontend p1
    bind :1
    bind :2
frontend p2
    bind :3
backend s1
    server a 127.0.0.1:1 id 1 weight 5
    server b [::1]:2 id 2 weight 0 proto h2
backend s2
`
	if diff := cmp.Diff(want, text); diff != "" || len(faults) > 0 {
		t.Error(diff, faults)
	}
}

func TestALineLeadsToItsOwner(t *testing.T) {
	t.Parallel()
	set := sample()
	for _, c := range []struct {
		file string
		line int
		want string
	}{
		{ConfigFile, 1, ""},
		{ConfigFile, 3, ""},
		{ConfigFile, 5, "A"},
		{ConfigFile, 6, "B"},
		{ConfigFile, 8, "B"},
		{ConfigFile, 10, "R"},
		{ConfigFile, 11, "S"},
		{ConfigFile, 12, ""},
		{ConfigFile, 99, ""},
		{"certs/a.pem", 7, "CA"},
		{"maps/paths.map", 1, "R1"},
		{"maps/paths.map", 2, "R2"},
		{"maps/paths.map", 3, ""},
		{"elsewhere", 1, ""},
	} {
		if got := set.Owner(c.file, c.line); got != c.want {
			t.Errorf("%s:%d is %q's, want %q", c.file, c.line, got, c.want)
		}
	}
}

func TestEntriesThatCannotBeWrittenAreLeftOutAndNamed(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", MaxLine)
	for _, c := range []struct{ key, value, want string }{
		{"", "v", "empty"},
		{"#k", "v", "#"},
		{"a b", "v", "blank"},
		{"a\tb", "v", "blank"},
		{"a\nb", "v", "control"},
		{"a\x00", "v", "control"},
		{"a\x7f", "v", "control"},
		{"k", "", "empty"},
		{"k", " v", "blank"},
		{"k", "v ", "blank"},
		{"k", "v\nw", "control"},
		{"k", "v\x01", "control"},
		{"k", long, "bytes"},
		{long, "v", "bytes"},
	} {
		if _, err := MapLine(c.key, c.value); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("key %.20q value %.20q: %v, want an error about %q", c.key, c.value, err, c.want)
		} else if len(err.Error()) > 300 {
			t.Errorf("the error for key %.20q has %d bytes", c.key, len(err.Error()))
		}
	}
	for _, c := range []struct{ key, value string }{
		{"v/\x01", "s1"}, {"a#b", "#"}, {"a;\"'\\$", "x  y \\ ;"}, {"ü", "ü"}, {long[:MaxLine-2], "v"},
	} {
		if _, err := MapLine(c.key, c.value); err != nil {
			t.Errorf("key %.20q value %.20q: %v", c.key, c.value, err)
		}
	}
	text, faults := mapText("m.map", table.Of(
		table.Entry[Entry]{Key: "a b", Value: Entry{Owner: "bad", Value: "v"}},
		table.Entry[Entry]{Key: "k", Value: Entry{Owner: "good", Value: "v"}},
	))
	if text != "k v\n" || len(faults) != 1 || faults[0].Owner != "bad" {
		t.Errorf("text %q, faults %v", text, faults)
	}
}

func TestServersThatCannotBeWrittenAreErrors(t *testing.T) {
	t.Parallel()
	good := Server{Slot: "s1", Name: "a", Address: "127.0.0.1:1", ID: 1, Weight: 1, Options: "proto h2 ca-file @system-ca"}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for _, spoil := range []func(*Server){
		func(s *Server) { s.Slot = "s1/x" },
		func(s *Server) { s.Name = "a b" },
		func(s *Server) { s.Name = "" },
		func(s *Server) { s.Name = "a;b" },
		func(s *Server) { s.Address = "-example.com:80" },
		func(s *Server) { s.Address = "127.0.0.1" },
		func(s *Server) { s.Address = "127.0.0.1:0" },
		func(s *Server) { s.Address = "[fe80::1%eth0]:1" },
		func(s *Server) { s.ID = 0 },
		func(s *Server) { s.Weight = 257 },
		func(s *Server) { s.Weight = -1 },
		func(s *Server) { s.Options = "sni str(a)\n    server x" },
		func(s *Server) { s.Options = "sni 'a'" },
		func(s *Server) { s.Options = "a;b" },
		func(s *Server) { s.Options = "<<" },
	} {
		s := good
		spoil(&s)
		if s.Check() == nil {
			t.Errorf("%+v was taken", s)
		}
	}
}

func TestWithoutAnOwnerEverybodyElseStays(t *testing.T) {
	t.Parallel()
	only := func(out string) func(string) bool { return func(owner string) bool { return owner == out } }
	rest, _ := sample().Without(only("B"))
	if text, _ := rest.configText(); strings.Contains(text, "bind :2") || strings.Contains(text, "p2") || !strings.Contains(text, "bind :1") {
		t.Errorf("without B:\n%s", text)
	}
	if got := rest.Owner(ConfigFile, 5); got != "A" {
		t.Errorf("line 5 is now %q's, want A", got)
	}
	rest, _ = sample().Without(only("A"))
	if text, _ := rest.configText(); strings.Contains(text, "bind :1") || strings.Contains(text, "bind :2") || !strings.Contains(text, "bind :3") {
		t.Errorf("without A, whose is the first line of p1, nothing of p1 may stay:\n%s", text)
	}
	rest, further := sample().Without(only("CA"))
	list, _ := rest.Assets.Get("lists/l.list")
	if _, there := rest.Assets.Get("certs/a.pem"); there || list.Text != "certs/b.pem [alpn h2] x.example\n" {
		t.Errorf("without CA, the list is %q", list.Text)
	}
	if !slices.Equal(further, []string{"M"}) {
		t.Errorf("further owners are %v, want M, whose list is empty now", further)
	}
	if rest, _ := sample().Without(only("nobody")); !rest.Assets.Same(sample().Assets) || len(rest.Sections) != 5 {
		t.Error("without nobody, something is gone")
	}
}

func TestWordsAboutAListMeanTheCertificateInIt(t *testing.T) {
	t.Parallel()
	set := sample()
	set.Sections[1].Text = "frontend p1\n    bind :1 ssl crt-list lists/l.list\n    bind :2 ssl crt certs/b.pem\n"
	const first, second = 4, 5 // the lines of the two binds
	words := "'bind :1' in section 'frontend' : 'crt-list' : error processing line 1 in file 'lists/l.list' : " +
		"unable to load SSL certificate into SSL Context 'certs/a.pem': ee key too small. Again 'certs/a.pem'."
	for _, c := range []struct {
		words string
		line  int
		want  []string
	}{
		{words, first, []string{"certs/a.pem"}},
		{"bad line in file 'lists/l.list'", first, []string{"lists/l.list"}},
		{"unable to load 'certs/b.pem'", second, []string{"certs/b.pem"}},
		{"unknown keyword 'certs/a.pem'", second, nil}, // the line does not lead there
		{"unknown keyword 'certs/a.pem'", 0, nil},
	} {
		if got := set.Mentioned(c.words, c.line); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.words, got, c.want)
		}
	}
}

func TestWordsAboutAProxyMeanItsOwner(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"Proxy 'p1': unable to find required default_backend: 'p2'.": "A",
		"frontend 'p2': no":                   "B",
		"unknown keyword 'x' in section 'p1'": "",
		"backend 's1' : no":                   "",
		"no quotes":                           "",
	} {
		if got := sample().OwnerOfMentioned(words); got != want {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
}

func TestAGenerationComesBackFromDiskAsItWas(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir())
	place := placement.Placement{}.Update(map[string]model.Profile{"a": {}}, nil)
	number, faults, err := store.Write(sample(), place)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	if store.Current() != 0 {
		t.Error("the generation is current before it was switched to")
	}
	if err := store.Switch(number); err != nil || store.Current() != number {
		t.Fatal(err, store.Current())
	}
	set, back, err := open(t, store.dir).Load(number)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, sample(), set)
	if slot, _ := back.Slot("a"); slot != "s1" || back.Capacity != place.Capacity {
		t.Errorf("the placement came back as %+v", back)
	}
}

// compare ignores the owners of map entries, which are not stored.
func compare(t *testing.T, want, got Set) {
	t.Helper()
	if diff := cmp.Diff(want.Sections, got.Sections); diff != "" {
		t.Error(diff)
	}
	if !want.Assets.Same(got.Assets) || !want.Servers.Same(got.Servers) || len(want.Maps) != len(got.Maps) {
		t.Error("assets, servers or the names of maps differ")
	}
	for name := range want.Maps {
		if a, _ := mapText(name, want.Maps[name]); true {
			if b, _ := mapText(name, got.Maps[name]); a != b {
				t.Errorf("%s: %q, want %q", name, b, a)
			}
		}
	}
}

func TestFilesAreReadableByTheirOwnerAlone(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir())
	number := write(t, store, sample())
	err := filepath.WalkDir(store.Path(number), func(path string, entry os.DirEntry, err error) error {
		info, _ := entry.Info()
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[entry.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile(filepath.Join(store.Path(number), indexFile))
	if err != nil || strings.Contains(string(index), `"Text":"a"`) {
		t.Errorf("%v; the index holds a certificate: %s", err, index)
	}
}

func TestTheLastThreeGenerationsAreKept(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir())
	for range 6 {
		number := write(t, store, sample())
		if number == 2 {
			if err := store.Switch(number); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Prune(); err != nil {
			t.Fatal(err)
		}
	}
	if numbers, _ := store.Generations(); !slices.Equal(numbers, []int{2, 4, 5, 6}) {
		t.Errorf("kept %v, want the last three and the current one", numbers)
	}
	if number := write(t, open(t, store.dir), sample()); number != 7 {
		t.Errorf("another store goes on with %d, want 7", number)
	}
}

func TestRewriteChangesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir())
	was := sample()
	number := write(t, store, was)
	before, err := os.Stat(filepath.Join(store.Path(number), MapFolder, "empty.map"))
	if err != nil {
		t.Fatal(err)
	}
	is := sample()
	is.Servers = servers(Server{Slot: "s2", Name: "c", Address: "127.0.0.1:3", ID: 3, Weight: 1})
	is.Maps["paths.map"] = table.Of(table.Entry[Entry]{Key: "k", Value: Entry{Value: "v"}})
	is.Maps["empty.map"] = was.Maps["empty.map"]
	if err := store.Rewrite(number, was, is, placement.Placement{}); err != nil {
		t.Fatal(err)
	}
	back, _, err := open(t, store.dir).Load(number)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, is, back)
	if after, _ := os.Stat(filepath.Join(store.Path(number), MapFolder, "empty.map")); !os.SameFile(before, after) {
		t.Error("a map that did not change was written again")
	}
}

func TestAnAssetMayNotLeaveItsGeneration(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../x", "/etc/x", "a/../../x", "haproxy.cfg", "index.json", "generation.cfg", "maps/x.map", ""} {
		set := sample()
		set.Assets = table.Of(table.Entry[Asset]{Key: name, Value: Asset{Text: "x"}})
		store := open(t, t.TempDir())
		if _, _, err := store.Write(set, placement.Placement{}); err == nil {
			t.Errorf("%q was written", name)
		}
		if numbers, _ := store.Generations(); len(numbers) > 0 {
			t.Errorf("%q: generation %v is there", name, numbers)
		}
	}
}

func open(t testing.TB, dir string) *Store {
	t.Helper()
	store, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func write(t testing.TB, store *Store, set Set) int {
	t.Helper()
	number, _, err := store.Write(set, placement.Placement{})
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// FuzzMapLine shows that what may be written is one line, and is read back as it was.
func FuzzMapLine(f *testing.F) {
	f.Add("v/a/\x01", "s1 x  y;#")
	f.Add("#k", " v ")
	f.Add("a b", "v\nw x")
	f.Fuzz(func(t *testing.T, key, value string) {
		line, err := MapLine(key, value)
		if err != nil {
			return
		}
		back := parseMap(line)
		if entry, found := back.Get(key); !found || entry.Value != value || back.Len() != 1 || strings.Count(line, "\n") != 1 || len(line) > MaxLine+1 {
			t.Errorf("key %q and value %q became %q", key, value, line)
		}
	})
}

// FuzzServer shows that a server that may be written is one line and one word less than its command.
func FuzzServer(f *testing.F) {
	f.Add("s1", "a", "127.0.0.1:1", int32(1), 1, "proto h2")
	f.Add("s1\n", "a b", "x", int32(0), -1, "a;b")
	f.Fuzz(func(t *testing.T, slot, name, address string, id int32, weight int, options string) {
		s := Server{Slot: slot, Name: name, Address: address, ID: id, Weight: weight, Options: options}
		if s.Check() != nil {
			return
		}
		if words := strings.Fields(s.Line()); strings.Count(s.Line(), "\n") != 1 || words[0] != "server" || words[1] != name || words[2] != address ||
			strings.ContainsAny(s.Line(), ";\\\"'#$<{}`") {
			t.Errorf("%+v became %q", s, s.Line())
		}
	})
}
