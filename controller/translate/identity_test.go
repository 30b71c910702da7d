package translate

import (
	"slices"
	"testing"

	"github.com/limpet-gateway/limpet/controller/graph"
)

// idsOf returns the ID of the rule that each of a route's rules became; they must not be plain.
func idsOf(t *testing.T, rules ...*graph.Rule) []string {
	t.Helper()
	r := newRoute(nil, "r", "", rules...)
	var ids []string
	for _, id := range identities(r) {
		ids = append(ids, id.ruleID())
	}
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			t.Errorf("two rules have the ID %s", id)
		}
	}
	return ids
}

func TestARuleIsKnownByItsNameElseItsSessionsNameElseItsMatches(t *testing.T) {
	t.Parallel()

	type rule = *graph.Rule
	for name, c := range map[string]struct {
		before, after rule
		same          bool
	}{
		"a name outlasts matches, session and backends": {
			named(sticky(to("a", prefix("/a")), cookie("c")), "n"), named(sticky(to("b c:5", exactly("/b")), cookie("d")), "n"), true,
		},
		"another name is another rule":                 {named(to("a"), "n"), named(to("a"), "m"), false},
		"a cookie's given name outlasts matches":       {sticky(to("a", prefix("/a")), cookie("c")), sticky(to("b", prefix("/b")), cookie("c")), true},
		"another cookie's name is another rule":        {sticky(to("a"), cookie("c")), sticky(to("a"), cookie("d")), false},
		"a generated name leaves the matches to count": {sticky(to("a", prefix("/a")), cookie("")), sticky(to("b", prefix("/a")), cookie("")), true},
		"other matches are another rule":               {sticky(to("a", prefix("/a")), cookie("")), sticky(to("a", prefix("/b")), cookie("")), false},
		"the order of matches and conditions does not count": {
			to("a b", prefix("/a", header("x", "1"), header("y", "2")), exactly("/b")),
			to("a b", exactly("/b"), prefix("/a", header("y", "2"), header("x", "1"))), true,
		},
		"a header is not a query parameter":                     {to("a b", prefix("/", header("x", "1"))), to("a b", prefix("/", query("x", "1"))), false},
		"a value is not a regular expression":                   {to("a b", prefix("/", header("x", "1"))), to("a b", prefix("/", headerRegex("x", "1"))), false},
		"a prefix is not an exact path":                         {to("a b", prefix("/a")), to("a b", exactly("/a")), false},
		"a rule that gets a session keeps what its matches say": {to("a b", prefix("/a")), sticky(to("a b", prefix("/a")), cookie("")), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := idsOf(t, c.before)[0] == idsOf(t, c.after)[0]; got != c.same {
				t.Errorf("the same rule: %v, want %v", got, c.same)
			}
		})
	}
}

func TestRulesThatWouldBeKnownByOneNameStayApartWhateverTheirOrder(t *testing.T) {
	t.Parallel()

	rules := func() []*graph.Rule {
		return []*graph.Rule{
			sticky(to("a", prefix("/a")), cookie("c")), sticky(to("a", prefix("/b")), cookie("c")), to("a b", prefix("/c")),
			sticky(to("a", prefix("/d")), cookie("c")),
		}
	}
	forward := idsOf(t, rules()...)
	backward := rules()
	slices.Reverse(backward)
	reversed := idsOf(t, backward...)
	slices.Reverse(reversed)
	if diff := difference(forward, reversed); diff != "" {
		t.Error(diff)
	}
}

func TestTheFirstByMatchesKeepsTheBareNameOfRulesWithOneName(t *testing.T) {
	t.Parallel()

	alone := idsOf(t, sticky(to("a", prefix("/a")), cookie("c")))
	both := idsOf(t, sticky(to("a", prefix("/z")), cookie("c")), sticky(to("a", prefix("/a")), cookie("c")))
	if alone[0] != both[1] {
		t.Error("the rule whose matches come first lost its identity to one that was added")
	}
}

func TestRulesThatAreEqualStayApart(t *testing.T) {
	t.Parallel()

	idsOf(t, to("a b"), to("a b"), to("a b"), sticky(to("a"), cookie("c")), sticky(to("a"), cookie("c")), named(to("a b"), "n"), named(to("a b"), "n"))
}

func TestARouteOfAnotherNameOrNamespaceHasOtherRules(t *testing.T) {
	t.Parallel()

	a, b := newRoute(nil, "a", "", named(to("x y"), "n")), newRoute(nil, "b", "", named(to("x y"), "n"))
	c := newRoute(nil, "a", "", named(to("x y"), "n"))
	c.Source.SetNamespace("other")
	if identities(a)[0].ruleID() == identities(b)[0].ruleID() || identities(a)[0].scope() == identities(c)[0].scope() {
		t.Error("two routes share a rule")
	}
	again := newRoute(nil, "a", "", to("z", prefix("/first")), named(to("y x:3"), "n"))
	again.Source.SetUID("created-again")
	if identities(a)[0].ruleID() != identities(again)[1].ruleID() {
		t.Error("a route that was created again, with the rule elsewhere, lost it")
	}
}
