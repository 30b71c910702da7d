package translate

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/translate/translatetest"
)

// reference says what a request gets, from the graph and the text of the specification alone: no hash, no table, no
// parent, every match of every route compared with every other.
func (w *world) reference(gateway string, port uint16, request translatetest.Request) string {
	listener := w.listenerFor(gateway, port, request.Host)
	if listener == nil {
		return "404"
	}
	var best *claim
	for rank, route := range w.routes {
		for _, c := range claims(route, rank, listener, request) {
			if best == nil || c.before(best) {
				best = c
			}
		}
	}
	if best == nil {
		return "404"
	}
	return w.fate(best.rule)
}

// listenerFor is the most specific valid listener.
func (w *world) listenerFor(gateway string, port uint16, host string) *graph.Listener {
	var best *graph.Listener
	for _, g := range w.gateways {
		if g.Source.Name != gateway || !g.Valid {
			continue
		}
		for _, l := range g.Listeners {
			if l.Valid && l.Port == port && covers(l.Hostname, host) && (best == nil || moreSpecific(l.Hostname, best.Hostname)) {
				best = l
			}
		}
	}
	return best
}

// moreSpecific: "characters in a matching non-wildcard hostname", then "characters in a matching hostname".
func moreSpecific(a, b string) bool {
	if exact(a) != exact(b) {
		return exact(a)
	}
	return len(a) > len(b)
}

// claim is a match that takes the request.
type claim struct {
	hostname string
	rank     int
	rule     *graph.Rule
	match    *graph.Match
}

func claims(route *graph.Route, rank int, listener *graph.Listener, request translatetest.Request) []*claim {
	attached := false
	for _, parent := range route.Parents {
		attached = attached || slices.Contains(parent.Listeners, listener)
	}
	if !attached {
		return nil
	}
	hostnames := route.Hostnames
	if len(hostnames) == 0 {
		hostnames = []string{""}
	}
	var all []*claim
	for _, hostname := range hostnames {
		if !covers(hostname, request.Host) {
			continue
		}
		for _, rule := range route.Rules {
			for i := range rule.Matches {
				if satisfied(&rule.Matches[i], request) {
					all = append(all, &claim{hostname, rank, rule, &rule.Matches[i]})
				}
			}
		}
	}
	return all
}

func satisfied(m *graph.Match, request translatetest.Request) bool {
	path := false
	switch m.PathType {
	case gatewayv1.PathMatchExact:
		path = request.Path == m.Path
	case gatewayv1.PathMatchPathPrefix:
		path = request.Path == m.Path || strings.HasPrefix(request.Path, m.Path+"/")
	case gatewayv1.PathMatchRegularExpression:
		path = whole(m.Path, request.Path)
	}
	return path && (m.Method == "" || m.Method == request.Method) &&
		allHold(m.Headers, request.Headers) && allHold(m.Query, request.Query)
}

func allHold(wanted []graph.ValueMatch, values map[string]string) bool {
	for _, want := range wanted {
		value, found := values[want.Name]
		if !found || want.Regex && !whole(want.Value, value) || !want.Regex && want.Value != value {
			return false
		}
	}
	return true
}

var wholes sync.Map

func whole(expression, value string) bool {
	compiled, found := wholes.Load(expression)
	if !found {
		compiled, _ = wholes.LoadOrStore(expression, regexp.MustCompile("^(?:"+expression+")$"))
	}
	return compiled.(*regexp.Regexp).MatchString(value)
}

func (c *claim) before(other *claim) bool {
	if c.hostname != other.hostname {
		return moreSpecific(c.hostname, other.hostname)
	}
	a, b := c.match, other.match
	return cmp.Or(
		-cmp.Compare(pathRank(a), pathRank(b)),
		-cmp.Compare(patternLength(a), patternLength(b)),
		-cmp.Compare(len(a.Method), len(b.Method)),
		-cmp.Compare(len(a.Headers), len(b.Headers)),
		-cmp.Compare(len(a.Query), len(b.Query)),
		cmp.Compare(c.rank, other.rank),
		cmp.Compare(c.rule.Index, other.rule.Index),
		cmp.Compare(a.Index, b.Index),
	) < 0
}

// pathRank: Exact, then the longest prefix; a regular expression counts as its literal beginning.
func pathRank(m *graph.Match) int {
	switch m.PathType {
	case gatewayv1.PathMatchExact:
		return 1 << 20
	case gatewayv1.PathMatchRegularExpression:
		return len(literalBeginning(m.Path))
	default:
		return len(m.Path) + 1
	}
}

// patternLength puts regular expressions before a prefix of the same length, and longer ones first.
func patternLength(m *graph.Match) int {
	if m.PathType == gatewayv1.PathMatchRegularExpression {
		return len(m.Path)
	}
	return -1
}

// fate is what a rule does with a request, in the words of word.
func (w *world) fate(rule *graph.Rule) string {
	if rule.Dropped {
		return "500"
	}
	if rule.Filters.Redirect != nil {
		return "redirect"
	}
	total, weighty := int32(0), 0
	for _, ref := range rule.Backends {
		total += ref.Weight
		if ref.Weight > 0 {
			weighty++
		}
	}
	var words []string
	valid := false
	for _, ref := range rule.Backends {
		valid = valid || !ref.Invalid
		text := ref.Backend.Name
		switch {
		case ref.Weight == 0:
			continue
		case ref.Invalid:
			text = "500"
		case len(w.Backend(ref.Backend).Endpoints) == 0:
			text = "503"
		}
		if weighty > 1 {
			text += fmt.Sprintf(":%d", ref.Weight)
		}
		words = append(words, text)
	}
	if total == 0 || !valid {
		return "500"
	}
	return strings.Join(words, " ")
}
