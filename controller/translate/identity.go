package translate

import (
	"cmp"
	"slices"
	"strconv"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/graph"
)

// identity is what a rule is known by, in parts: its route's namespace and name, and the rule's name, else the name that
// its session was given, else its matches. It is neither the rule's place nor the route's UID, and backends and weights
// are no part of it: so sessions outlast a reordered rule, a route that is created again, and a canary's next step.
type identity []string

// with returns a longer identity and leaves id as it is.
func (id identity) with(parts ...string) identity { return append(slices.Clone(id), parts...) }

func (id identity) ruleID() string { return "r" + digest(id.with("rule")...) }

// scope is what tokens are bound to: one that was made for another rule is worth nothing here.
func (id identity) scope() string { return digest(id.with("scope")...) }

// identities returns those of a route's rules, each unlike all others.
//
// Rules that would be known by the same name (a cookie's, say) are told apart by their matches. Which of them keeps the bare
// name is settled by the matches too: that is the only order that moving a rule does not change.
func identities(source *graph.Route) []identity {
	matches := make([]string, len(source.Rules))
	order := make([]int, len(source.Rules))
	for i, rule := range source.Rules {
		matches[i], order[i] = matchesIdentity(rule), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(matches[a], matches[b]) })

	ids := make([]identity, len(source.Rules))
	seen := map[string]int{}
	unique := func(id identity) bool {
		seen[join(id)]++
		return seen[join(id)] == 1
	}
	for _, i := range order {
		id := namedBy(source, source.Rules[i], matches[i])
		if !unique(id) {
			id = id.with("matches", matches[i])
			if again := seen[join(id)]; !unique(id) {
				id = id.with("again", strconv.Itoa(again)) // never asked: the first one takes every request
			}
		}
		ids[i] = id
	}
	return ids
}

func routeIdentity(source *graph.Route) identity {
	key := source.Key()
	return identity{source.Kind, key.Namespace, key.Name}
}

func namedBy(source *graph.Route, rule *graph.Rule, matches string) identity {
	route := routeIdentity(source)
	switch {
	case rule.Name != "":
		return route.with("name", rule.Name)
	case rule.Session != nil && rule.Session.Name != "":
		return route.with("session", string(rule.Session.Type), rule.Session.Name)
	default:
		return route.with("matches", matches)
	}
}

// matchesIdentity says what a rule matches, whatever the order in which it is written.
func matchesIdentity(rule *graph.Rule) string {
	var all []string
	for i := range rule.Matches {
		m := &rule.Matches[i]
		parts := []string{pathType(m.PathType), m.Path, m.Method}
		parts = append(parts, valuesIdentity("header", m.Headers)...)
		parts = append(parts, valuesIdentity("query", m.Query)...)
		all = append(all, join(parts))
	}
	slices.Sort(all)
	return join(all)
}

func valuesIdentity(kind string, values []graph.ValueMatch) []string {
	var all []string
	for _, value := range values {
		all = append(all, join([]string{kind, value.Name, value.Value, strconv.FormatBool(value.Regex)}))
	}
	slices.Sort(all)
	return all
}

// pathType is the specification's default where there is none.
func pathType(t gatewayv1.PathMatchType) string {
	return string(cmp.Or(t, gatewayv1.PathMatchPathPrefix))
}
