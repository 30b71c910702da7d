package spec

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const root = "../.."

// TestEverySentenceIsAccountedFor is the test that a gap fails.
func TestEverySentenceIsAccountedFor(t *testing.T) {
	t.Parallel()
	module, _, err := Source(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	sentences, err := Extract(module)
	if err != nil {
		t.Fatal(err)
	}
	coverage, err := LoadCoverage(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range coverage.Check(sentences, NewTests(os.DirFS(root))) {
		t.Error(wrong)
	}
}

// TestTheSourcesAreWhatTheyWere fails when the specification's files move or lose what the extractor looks for, before
// somebody deletes the entries that are "not a sentence any more".
func TestTheSourcesAreWhatTheyWere(t *testing.T) {
	t.Parallel()
	module, version, err := Source(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	first, err := Extract(module)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Extract(module)
	if err != nil || !slices.Equal(first, again) {
		t.Errorf("a second time the sentences are others: %v", err)
	}
	count := map[string]int{}
	for _, s := range first {
		count[s.File]++
		if s.Where == "" || strings.ContainsAny(s.Text, "\n\t") || strings.Contains(s.Text, "+kubebuilder") || strings.Contains(s.Text, "<gateway:") {
			t.Errorf("%+v", s)
		}
	}
	for file, least := range map[string]int{
		"apis/v1/httproute_types.go": 100, "apis/v1/gateway_types.go": 100, "apis/v1/shared_types.go": 50,
		"apis/v1/grpcroute_types.go": 50, "apis/v1/listenerset_types.go": 40, "apis/v1/backendtlspolicy_types.go": 25,
		"apisx/v1alpha1/xbackend_types.go": 15, "apis/v1/policy_types.go": 20,
		"apis/v1/object_reference_types.go": 5, "apis/v1/referencegrant_types.go": 3, "geps/gep-1619/index.md": 50,
		"geps/gep-4894/index.md": 30, "geps/gep-1731/index.md": 30, "geps/gep-1742/index.md": 5, "geps/gep-1767/index.md": 15,
	} {
		if count[file] < least {
			t.Errorf("%s has %d sentences in %s, want at least %d", file, count[file], version, least)
		}
	}
	for _, file := range []string{"apis/v1/udproute_types.go", "apisx/v1alpha1/xmesh_types.go"} {
		if count[file] > 0 {
			t.Errorf("%s, to whose types nothing leads, is read", file)
		}
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"One. Two":  {"One.", "Two"},
		"One\ntwo.": {"One two."},
		"It is `*.`. It `must` be. (See 1.2) \"Quoted.\" And more": {
			"It is `*.`.", "It `must` be.", "(See 1.2) \"Quoted.\"", "And more",
		},
		"Kinds, i.e. Secret, e.g. this. That.":              {"Kinds, i.e. Secret, e.g. this.", "That."},
		"See https://example.com/a.b?C=d for v1.7.0 of it.": {"See https://example.com/a.b?C=d for v1.7.0 of it."},
		"": nil,
	} {
		if got := split(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// sourceFile is a module whose file holds the comment and the declaration.
func sourceFile(comment string) fstest.MapFS {
	module := fstest.MapFS{
		apis + "/policy_types.go": {Data: []byte("package v1\n\ntype RouteConditionType string\ntype RouteConditionReason string\n" +
			"type PolicyConditionType string\ntype PolicyConditionReason string\ntype ReferenceGrant struct{}\n")},
		apis + "/more_types.go": {Data: []byte("package v1\n\n// It must be reached.\ntype Reached string\n\nconst (\n" +
			"\t// A constant should be reached.\n\tOne Reached = \"1\"\n)\n\n// It must not be reached.\ntype Unreached string\n")},
	}
	for _, name := range rootFiles {
		module[name] = &fstest.MapFile{Data: []byte("package v1\n")}
	}
	module[rootFiles[0]].Data = []byte("package v1\n\n" + comment)
	for _, name := range proposals {
		module[name] = &fstest.MapFile{Data: []byte("# Title\n")}
	}
	return module
}

func TestComments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		source string
		want   []string
	}{
		"a type, its field and what it leads to": {
			"// T must be.\ntype T struct {\n\t// F should be, they say.\n\tF *Reached\n}\n",
			[]string{"T: T must be.", "T.F: F should be, they say.", "Reached: It must be reached.", "One: A constant should be reached."},
		},
		"sentences that oblige nobody": {"// T is. It may be. Mustard is no must-have… it is.\ntype T string\n", []string{"T: Mustard is no must-have… it is."}},
		"markers and spans for generators": {
			"// T MUST.\n// +kubebuilder:validation:XValidation:message=\"must not\"\n// <gateway:experimental:validation:Must>\n" +
				"// <gateway:util:excludeFromCRD>\n// U MUST.\n// </gateway:util:excludeFromCRD>\n// V MUST.\ntype T string\n",
			[]string{"T: T MUST.", "T: U MUST.", "T: V MUST."},
		},
		"a list that belongs to its sentence": {
			"// It must have:\n//\n// * one\n//   thing\n// * two\n//\n// And more must be.\ntype T string\n",
			[]string{"T: It must have: • one thing • two", "T: And more must be."},
		},
		"a list whose items are sentences": {
			"// Rules must be kept:\n//\n// * A must.\n// * B is.\ntype T string\n", []string{"T: Rules must be kept:", "T: A must."},
		},
		"a sentence that leans on the one before": {
			"// A thing is unknown. In this case, it must go.\n//\n// B must be. In this case, C must go.\ntype T string\n",
			[]string{"T: A thing is unknown. In this case, it must go.", "T: B must be.", "T: In this case, C must go."},
		},
		"code": {"// ```\n// it must: not\n// ```\n// It must.\ntype T string\n", []string{"T: It must."}},
		"a comment that belongs to no field": {
			"type T struct {\n\t// It must be one.\n\n\t// F is.\n\tF string\n}\n", []string{"T: It must be one."},
		},
		"words in capitals": {"// It is REQUIRED, not required. It is RECOMMENDED. It is recommended.\ntype T string\n",
			[]string{"T: It is REQUIRED, not required.", "T: It is RECOMMENDED."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, sourceFile(test.source), test.want)
		})
	}
}

func check(t *testing.T, module fstest.MapFS, want []string) {
	t.Helper()
	sentences, err := Extract(module)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range sentences {
		got = append(got, s.Where+": "+s.Text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestImportedTypes has a type of one package that is made of one of the other, and each has one of the same name.
func TestImportedTypes(t *testing.T) {
	t.Parallel()
	module := sourceFile("type T string\n")
	module[apisx+"/xbackend_types.go"].Data = []byte("package v1alpha1\n\n// X must be.\ntype X struct {\n\tF v1.Reached\n\tG metav1.Unreached\n\tH Other\n}\n")
	module[apisx+"/shared_types.go"] = &fstest.MapFile{Data: []byte("package v1alpha1\n\n// It must not be reached.\ntype Reached string\n\n" +
		"// Other must be.\ntype Other string\n")}
	check(t, module, []string{"X: X must be.", "Reached: It must be reached.", "One: A constant should be reached.", "Other: Other must be."})
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	module := sourceFile("type T string\n")
	module[proposals[0]].Data = []byte("---\ntitle: must\n---\n\n# One\n\nIt [must](link) be.\nIt is.\n\n## Two\n\n- [x] It should.\n\n" +
		"| what | MUST |\n|---|---|\n| Case: it is so. | A MUST. B is. C MUST. |\n\n" +
		"```yaml\nmust: not\n```\n\n```golang\n// U must.\ntype U string\n```\n\n```go\n// T must.\ntype T struct {\n    // F must.\n    //\n    // +optional\n    F string\n}\n```\n\n# Three\n\nIt must.\n")
	check(t, module, []string{
		"One: It must be.", "Two: It should.", "Two, what: MUST", "Two, Case: A MUST.", "Two, Case: C MUST.",
		"Two, U: U must.", "Two, T: T must.", "Two, T.F: F must.", "Three: It must.",
	})
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newSentence("f.go", "T.F", "It must.")
	other := newSentence("f.go", "T.F", "It must too.")
	tests := NewTests(fstest.MapFS{
		"a/b/c_test.go":            {Data: []byte("package b\n\nfunc TestOne(t *testing.T) { t.Run(\"a case\", nil); t.Run(`b/c`, nil) }\n")},
		"a/b/testdata/gold/in.txt": {},
	})
	entry := func(change func(*Entry)) []SourceCoverage {
		e := Entry{ID: s.ID, Text: s.Text, Tests: []string{"a/b.TestOne"}}
		change(&e)
		return []SourceCoverage{{File: "f.go", Places: []Place{{Where: "T.F", Entries: []Entry{e}}}}}
	}
	decision := func(d Decision) map[string]Decision { return map[string]Decision{"d": d} }
	decided := entry(func(e *Entry) { e.Tests, e.Decision = nil, "d" })
	for name, test := range map[string]struct {
		coverage  Coverage
		sentences []Sentence
		want      string
	}{
		"a test":             {Coverage{Sources: entry(func(*Entry) {})}, []Sentence{s}, ""},
		"a case":             {Coverage{Sources: entry(func(e *Entry) { e.Tests = []string{"a/b.TestOne/a case", "a/b.TestOne/b/c", "a/b.TestOne/gold"} })}, []Sentence{s}, ""},
		"a decision":         {Coverage{Sources: decided, Decisions: decision(Decision{Kind: NoDuty, Why: "w"})}, []Sentence{s}, ""},
		"a missing entry":    {Coverage{}, []Sentence{s}, "has no entry"},
		"a changed sentence": {Coverage{Sources: entry(func(e *Entry) { e.Text = "It may." })}, []Sentence{s}, "the sentence is"},
		"a sentence that went": {
			Coverage{Sources: entry(func(e *Entry) { e.ID, e.Text = other.ID, other.Text })}, nil, "no such sentence",
		},
		"another file":               {Coverage{Sources: []SourceCoverage{{File: "g.go", Places: entry(func(*Entry) {})[0].Places}}}, []Sentence{s}, "the sentence is"},
		"neither test nor decision":  {Coverage{Sources: entry(func(e *Entry) { e.Tests = nil })}, []Sentence{s}, "either tests or a decision"},
		"both":                       {Coverage{Sources: entry(func(e *Entry) { e.Decision = "d" }), Decisions: decision(Decision{Kind: NoDuty, Why: "w"})}, []Sentence{s}, "either tests or a decision"},
		"no such test":               {Coverage{Sources: entry(func(e *Entry) { e.Tests = []string{"a/b.TestTwo"} })}, []Sentence{s}, "has no test TestTwo"},
		"no such case":               {Coverage{Sources: entry(func(e *Entry) { e.Tests = []string{"a/b.TestOne/another"} })}, []Sentence{s}, `has no case "another"`},
		"no such package":            {Coverage{Sources: entry(func(e *Entry) { e.Tests = []string{"a/c.TestOne"} })}, []Sentence{s}, "there are no tests"},
		"no name":                    {Coverage{Sources: entry(func(e *Entry) { e.Tests = []string{"by hand"} })}, []Sentence{s}, "is not of the form"},
		"no such decision":           {Coverage{Sources: decided}, []Sentence{s}, `there is no decision "d"`},
		"no such kind":               {Coverage{Sources: decided, Decisions: decision(Decision{Kind: "later", Why: "w"})}, []Sentence{s}, `its kind "later"`},
		"no reason":                  {Coverage{Sources: decided, Decisions: decision(Decision{Kind: NoDuty})}, []Sentence{s}, "gives no reason"},
		"deferred in silence":        {Coverage{Sources: decided, Decisions: decision(Decision{Kind: Deferred, Why: "w"})}, []Sentence{s}, "names the condition"},
		"a condition without a test": {Coverage{Sources: decided, Decisions: decision(Decision{Kind: Deferred, Why: "w", Condition: "A=False"})}, []Sentence{s}, "names the tests"},
		"nothing can ask for it":     {Coverage{Sources: decided, Decisions: decision(Decision{Kind: Deferred, Why: "w", Condition: "none"})}, []Sentence{s}, ""},
		"a decision without a sentence": {
			Coverage{Sources: entry(func(*Entry) {}), Decisions: decision(Decision{Kind: NoDuty, Why: "w"})}, []Sentence{s}, "no sentence refers to it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := test.coverage.Check(test.sentences, tests)
			if test.want == "" && len(got) > 0 || test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
