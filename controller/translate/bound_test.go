package translate

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// regexes returns count matches on the path key "/", each with a regular expression of its own.
func regexes(name string, count int, options ...matchOption) []graph.Match {
	var all []graph.Match
	for i := range count {
		all = append(all, regex(fmt.Sprintf("/?%s%03d/.*", name, i), options...))
	}
	return all
}

func TestRegularExpressionsAreBounded(t *testing.T) {
	t.Parallel()

	runScenarios(t, map[string]scenario{
		"as many regular expressions as are allowed are all served": {
			world:     routed(to("regex", regexes("a", maxRegexes)...), to("root")),
			exchanges: []exchange{get("h/a000/x", "regex"), get("h/a063/x", "regex"), get("h/x", "root")},
		},
		"one too many is refused and so is what its route has of lower precedence at that path": {
			world: routed(to("regex", regexes("a", maxRegexes+1)...), to("root"), to("exact", exactly("/x"))),
			exchanges: []exchange{
				get("h/a000/x", "regex"), get("h/a063/x", "regex"), get("h/a064/x", "500"), get("h/y", "500"), get("h/x", "exact"),
			},
		},
		"a request that it may have meant does not fall through to a shorter path": {
			world: routed(
				to("regex", func() (all []graph.Match) {
					for i := range maxRegexes + 1 {
						all = append(all, regex(fmt.Sprintf("/admin/[xy]%03d.*", i)))
					}
					return all
				}()...),
				to("root")),
			exchanges: []exchange{get("h/admin/x000", "regex"), get("h/admin/x064", "500"), get("h/other", "root")},
		},
		"another route at the path is served as if the match were not there": {
			world: func() *world {
				w := oneGateway(on(""))
				w.route("other", "", to("other"), to("v2", prefix("/", header("version", "2"))))
				w.route("many", "", to("regex", regexes("a", maxRegexes+1)...), to("own"))
				return w
			},
			exchanges: []exchange{
				get("h/a000/x", "regex"), get("h/a064/x", "other"), get("h/x", "other"), get("h/a064/x", "v2", sends("version", "2")),
			},
		},
		"a younger route does not push out what an older one has, whatever its precedence": {
			world: func() *world {
				w := oneGateway(on(""))
				w.route("old", "", to("old", regexes("a", maxRegexes)...))
				w.route("new", "", to("new", regex("/?longer-than-all-those-of-the-older-route.*")))
				return w
			},
			exchanges: []exchange{get("h/a000/x", "old"), get("h/a063/x", "old"), get("h/longer-than-all-those-of-the-older-route", "500")},
		},
		"a younger route that still fits is served": {
			world: func() *world {
				w := oneGateway(on(""))
				w.route("old", "", to("old", regexes("a", maxRegexes-1)...), to("two", prefix("/", headerRegex("x", ".+"), headerRegex("y", ".+"))))
				w.route("new", "", to("new", regex("/?b.*")))
				return w
			},
			exchanges: []exchange{get("h/a062/x", "old"), get("h/b", "new"), get("h/", "500", sends("x", "1"), sends("y", "1"))},
		},
		"from the first match that does not fit, none of its route's with a regular expression does": {
			world: func() *world {
				w := oneGateway(on(""))
				w.route("old", "", to("old", regexes("a", maxRegexes-1)...))
				w.route("new", "", to("two", prefix("/", headerRegex("x", ".+"), headerRegex("y", ".+"))), to("one", prefix("/", headerRegex("z", ".+"))))
				w.route("newest", "", to("newest", prefix("/", headerRegex("n", ".+"))))
				return w
			},
			exchanges: []exchange{
				get("h/", "500", sends("x", "1"), sends("y", "1")), get("h/", "500", sends("z", "1")), get("h/", "newest", sends("n", "1")),
			},
		},
		"a refusal keeps to the conditions that can still be checked": {
			world: func() *world {
				w := oneGateway(on(""))
				w.route("old", "", to("old", regexes("a", maxRegexes)...))
				w.route("new", "", to("new", regex("/?b.*", header("version", "2"))))
				return w
			},
			exchanges: []exchange{get("h/b", "404"), get("h/b", "500", sends("version", "2")), get("h/a000/x", "old")},
		},
		"what no request reaches does not count": {
			world: func() *world {
				w := oneGateway(on(""))
				w.route("plain", "", to("method", prefix("/", method("PUT"))), to("plain"))
				w.route("never", "", to("never", prefix("/", headerRegex("x", "1"))))
				return w
			},
			exchanges: []exchange{get("h/", "plain"), get("h/", "never", sends("x", "1")), get("h/", "method", by("PUT"))},
		},
	})
}

func TestEveryMatchThatIsLeftOutIsTold(t *testing.T) {
	t.Parallel()

	w := oneGateway(on("a.ex.com"), on("b.ex.com"))
	w.route("old", "", to("old", regexes("a", maxRegexes)...))
	w.route("new", "", to("x", prefix("/x")), to("new", prefix("/y"), regex("/?b.*")))
	translator := testTranslator()
	config := w.config(translator)

	faults := translator.Faults()
	if len(faults) != 1 || faults[0].Owner != "HTTPRoute default/new" ||
		!strings.HasPrefix(faults[0].Message, `rules[1].matches[1] is left out: matches for paths that begin with "/" hold more than 64`) {
		t.Errorf("faults are %+v; want one about rules[1].matches[1] of default/new", faults)
	}
	refusal := refusals(config)
	if len(refusal) != 1 {
		t.Errorf("there are %d rules that refuse, want one", len(refusal))
	}

	w.routes = w.routes[1:]
	config = w.config(translator)
	if faults := translator.Faults(); len(faults) != 0 {
		t.Errorf("faults are %+v when there is room again, want none", faults)
	}
	if left := refusals(config); len(left) != 0 {
		t.Errorf("rules that refuse are left: %+v", left)
	}
	checkExchanges(t, config, []exchange{get("a.ex.com/b", "new"), get("b.ex.com/y", "new")})
}

func refusals(config model.Config) []*model.Rule {
	var all []*model.Rule
	for _, entry := range config.Rules.Sorted() {
		if reflect.DeepEqual(entry.Value.Split, []model.Share{{Weight: 1}}) {
			all = append(all, entry.Value)
		}
	}
	return all
}
