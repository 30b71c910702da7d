package spec

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Coverage is what shows each sentence, as people wrote it down in docs/spec/coverage.yaml.
type Coverage struct {
	// Decisions are the reasons for which sentences need no test, or cannot have one, by a name of their own.
	Decisions map[string]Decision `json:"decisions"`
	// Sources are the sentences by file.
	Sources []SourceCoverage `json:"sources"`
}

// Kind says what a decision means for the reader.
type Kind string

// The kinds of decisions.
const (
	// NoDuty is for sentences that describe, or permit, or oblige nobody whom Limpet could help.
	NoDuty Kind = "no duty"
	// OthersDuty is for sentences that oblige users, clients, back ends or the API itself.
	OthersDuty Kind = "others' duty"
	// Deferred is for what is not built yet: a condition says so, and a test shows the condition.
	Deferred Kind = "deferred"
	// Otherwise is for what Limpet does otherwise, on purpose.
	Otherwise Kind = "decided otherwise"
	// Missing is for what Limpet should do and does not: a known fault.
	Missing Kind = "missing"
)

// Decision is why a sentence has no test that shows it.
type Decision struct {
	Kind Kind `json:"kind"`
	// Why in a sentence or two.
	Why string `json:"why"`
	// Condition tells the user that something is not built yet. Deferred only; "none" where no object can ask for it.
	Condition string `json:"condition,omitempty"`
	// Tests show the condition, or what is done instead.
	Tests []string `json:"tests,omitempty"`
}

// SourceCoverage is the part of one file.
type SourceCoverage struct {
	File   string  `json:"file"`
	Places []Place `json:"places"`
}

// Place is the part of one field, type or heading.
type Place struct {
	Where   string  `json:"where"`
	Entries []Entry `json:"entries"`
}

// Entry is one sentence with either its tests or the name of a decision.
type Entry struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	// Tests are "package.TestName", or "package.TestName/case".
	Tests []string `json:"tests,omitempty"`
	// Decision is a name in Coverage.Decisions.
	Decision string `json:"decision,omitempty"`
	// Note says what is special here.
	Note string `json:"note,omitempty"`
}

// CoverageFile is where the coverage lies within the module.
const CoverageFile = "docs/spec/coverage.yaml"

// LoadCoverage reads it; unknown fields are an error.
func LoadCoverage(root fs.FS) (*Coverage, error) {
	text, err := fs.ReadFile(root, CoverageFile)
	if err != nil {
		return nil, err
	}
	coverage := &Coverage{}
	if err := yaml.UnmarshalStrict(text, coverage); err != nil {
		return nil, fmt.Errorf("%s: %w", CoverageFile, err)
	}
	return coverage, nil
}

// entries are all entries by the ID of their sentence.
func (c *Coverage) entries() map[string]Entry {
	all := map[string]Entry{}
	for _, source := range c.Sources {
		for _, place := range source.Places {
			for _, entry := range place.Entries {
				all[entry.ID] = entry
			}
		}
	}
	return all
}

// Check says in words what is wrong with the coverage of the sentences, given who knows which tests exist.
func (c *Coverage) Check(sentences []Sentence, tests *Tests) []string {
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }

	known := map[string]Sentence{}
	for _, s := range sentences {
		known[s.ID] = s
	}
	seen, used := map[string]bool{}, map[string]bool{}
	for _, source := range c.Sources {
		for _, place := range source.Places {
			for _, entry := range place.Entries {
				at := fmt.Sprintf("%s %s", entry.ID, place.Where)
				sentence, found := known[entry.ID]
				switch {
				case !found:
					complain("%s: the specification has no such sentence (any more): %q", at, entry.Text)
				case sentence.Text != entry.Text || sentence.File != source.File || sentence.Where != place.Where:
					complain("%s: the sentence is %q in %s, %s", at, sentence.Text, sentence.File, sentence.Where)
				}
				if seen[entry.ID] {
					complain("%s: the sentence has another entry", at)
				}
				seen[entry.ID] = true
				used[entry.Decision] = true
				wrong = append(wrong, c.checkEntry(at, entry, tests)...)
			}
		}
	}
	for _, s := range sentences {
		if !seen[s.ID] {
			complain("%s %s: %s has no entry for %q", s.ID, s.Where, CoverageFile, s.Text)
		}
	}
	for name, decision := range c.Decisions {
		wrong = append(wrong, checkDecision(name, decision, tests)...)
		if !used[name] {
			complain("decision %q: no sentence refers to it", name)
		}
	}
	slices.Sort(wrong)
	return wrong
}

func (c *Coverage) checkEntry(at string, entry Entry, tests *Tests) []string {
	var wrong []string
	if (len(entry.Tests) == 0) == (entry.Decision == "") {
		wrong = append(wrong, at+": there must be either tests or a decision")
	}
	if _, found := c.Decisions[entry.Decision]; !found && entry.Decision != "" {
		wrong = append(wrong, fmt.Sprintf("%s: there is no decision %q", at, entry.Decision))
	}
	return append(wrong, checkTests(at, entry.Tests, tests)...)
}

func checkDecision(name string, decision Decision, tests *Tests) []string {
	var wrong []string
	at := fmt.Sprintf("decision %q", name)
	if !slices.Contains(kinds, decision.Kind) {
		wrong = append(wrong, fmt.Sprintf("%s: its kind %q is none of %q", at, decision.Kind, kinds))
	}
	if strings.TrimSpace(decision.Why) == "" {
		wrong = append(wrong, at+": it gives no reason")
	}
	switch deferred := decision.Kind == Deferred; {
	case deferred != (decision.Condition != ""):
		wrong = append(wrong, at+": what is deferred, and nothing else, names the condition that says so")
	case deferred && decision.Condition != "none" && len(decision.Tests) == 0:
		wrong = append(wrong, at+": what is deferred names the tests that show its condition")
	}
	return append(wrong, checkTests(at, decision.Tests, tests)...)
}

func checkTests(at string, names []string, tests *Tests) []string {
	var wrong []string
	for _, name := range names {
		if err := tests.Find(name); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", at, err))
		}
	}
	return wrong
}

var kinds = []Kind{NoDuty, OthersDuty, Deferred, Otherwise, Missing}

// Missing are the sentences that have no entry, as YAML to fill in and put in their place.
func (c *Coverage) Missing(sentences []Sentence) (string, error) {
	have := c.entries()
	var sources []SourceCoverage
	for _, s := range sentences {
		if _, done := have[s.ID]; done {
			continue
		}
		if n := len(sources); n == 0 || sources[n-1].File != s.File {
			sources = append(sources, SourceCoverage{File: s.File})
		}
		source := &sources[len(sources)-1]
		if n := len(source.Places); n == 0 || source.Places[n-1].Where != s.Where {
			source.Places = append(source.Places, Place{Where: s.Where})
		}
		place := &source.Places[len(source.Places)-1]
		place.Entries = append(place.Entries, Entry{ID: s.ID, Text: s.Text})
	}
	text, err := yaml.Marshal(sources)
	return string(text), err
}
