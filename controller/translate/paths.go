package translate

import (
	"cmp"
	"fmt"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// match is one match of a rule, with what decides its precedence.
type match struct {
	route *route
	// path is its path key without the virtual host.
	path      string
	candidate model.Candidate
	// pattern is the length of a regular expression for the path, -1 for a path without one.
	pattern        int
	method         bool
	headers, query int
	// rule and index are its place in the route.
	rule, index int
	// regexes is the number of regular expressions among its conditions.
	regexes int
}

// newMatch returns nil for a match that cannot be said: one of a rule that the graph drops just because of it.
func newMatch(r *route, rule *graph.Rule, source *graph.Match) *match {
	m := &match{
		route: r, pattern: -1, method: source.Method != "",
		headers: len(source.Headers), query: len(source.Query), rule: rule.Index, index: source.Index,
	}
	m.candidate = model.Candidate{Owner: r.owner, Conditions: conditions(source)}
	for _, condition := range m.candidate.Conditions {
		if condition.Regex {
			m.regexes++
		}
	}
	switch source.PathType {
	case gatewayv1.PathMatchExact:
		m.path = model.ExactKey("", source.Path)
	case gatewayv1.PathMatchPathPrefix:
		m.path = model.PrefixKey("", source.Path)
	case gatewayv1.PathMatchRegularExpression:
		m.path, m.pattern = literalBeginning(source.Path), len(source.Path)
	default:
		return nil
	}
	return m
}

// conditions are in the order of their cost: regular expressions run only where everything else holds.
func conditions(source *graph.Match) []model.Condition {
	var cheap, costly []model.Condition
	if source.Method != "" {
		cheap = append(cheap, model.Condition{On: model.OnMethod, Value: source.Method})
	}
	add := func(on model.ConditionOn, values []graph.ValueMatch) {
		for _, value := range values {
			condition := model.Condition{On: on, Name: value.Name, Value: value.Value, Regex: value.Regex}
			if value.Regex {
				costly = append(costly, condition)
			} else {
				cheap = append(cheap, condition)
			}
		}
	}
	add(model.OnHeader, source.Headers)
	add(model.OnQuery, source.Query)
	if source.PathType == gatewayv1.PathMatchRegularExpression {
		costly = append(costly, model.Condition{On: model.OnPath, Value: source.Path, Regex: true})
	}
	return append(cheap, costly...)
}

// precedence compares two matches at one path key: the key itself has already put Exact before prefixes and longer
// prefixes before shorter ones. The specification leaves the place of regular expressions open; the rest is its order.
func precedence(a, b *match) int {
	return cmp.Or(
		-cmp.Compare(a.pattern, b.pattern),
		-compareBool(a.method, b.method),
		-cmp.Compare(a.headers, b.headers),
		-cmp.Compare(a.query, b.query),
		age(a, b),
	)
}

// age is the order that ends all ties: the older route, then the earlier rule, then the earlier match.
func age(a, b *match) int {
	return cmp.Or(cmp.Compare(a.route.rank, b.route.rank), cmp.Compare(a.rule, b.rule), cmp.Compare(a.index, b.index))
}

// paths are the matches at every path key.
type paths struct {
	entries map[string]*pathEntry
	touched []*pathEntry
	// refusals counts, for a route's refusal rule, the matches that it answers for.
	refusals map[string]int
	// refusing are the entries that leave something out.
	refusing map[*pathEntry]bool
}

type pathEntry struct {
	key string
	// matches are in order of precedence.
	matches []*match
	// leftOut are those that the last Config refuses.
	leftOut map[*match]bool
	touched bool
}

func newPaths() paths {
	return paths{entries: map[string]*pathEntry{}, refusals: map[string]int{}, refusing: map[*pathEntry]bool{}}
}

func (p *paths) insert(key string, m *match) *pathEntry {
	entry := p.entries[key]
	if entry == nil {
		entry = &pathEntry{key: key}
		p.entries[key] = entry
	}
	at, _ := slices.BinarySearchFunc(entry.matches, m, precedence)
	entry.matches = slices.Insert(entry.matches, at, m)
	p.touch(entry)
	return entry
}

// drop removes all of a route's matches.
func (p *paths) drop(entry *pathEntry, r *route) {
	entry.matches = slices.DeleteFunc(entry.matches, func(m *match) bool { return m.route == r })
	p.touch(entry)
}

func (p *paths) touch(entry *pathEntry) {
	if !entry.touched {
		entry.touched = true
		p.touched = append(p.touched, entry)
	}
}

// settle brings the touched entries in line with their matches.
func (p *paths) settle(changed *changes) {
	for _, entry := range p.touched {
		entry.touched = false
		candidates, leftOut := entry.candidates()
		p.refuse(entry, leftOut, changed)
		if len(candidates) == 0 {
			delete(p.entries, entry.key)
			set(&changed.paths, entry.key, nil)
			continue
		}
		set(&changed.paths, entry.key, &model.Path{Owner: candidates[0].Owner, Candidates: candidates})
	}
	p.touched = p.touched[:0]
}

// candidates are what can be reached: nothing comes behind a match without conditions.
func (e *pathEntry) candidates() ([]model.Candidate, map[*match]bool) {
	reachable := e.matches
	if last := slices.IndexFunc(reachable, (*match).unconditional); last >= 0 {
		reachable = reachable[:last+1]
	}
	leftOut := beyondBound(reachable)
	if len(leftOut) > 0 {
		return withRefusals(reachable, leftOut), leftOut
	}
	candidates := make([]model.Candidate, len(reachable))
	for i, m := range reachable {
		candidates[i] = m.candidate
	}
	return candidates, nil
}

func (m *match) unconditional() bool { return len(m.candidate.Conditions) == 0 }

func (m *match) place() string { return fmt.Sprintf("rules[%d].matches[%d]", m.rule, m.index) }
