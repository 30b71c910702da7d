package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/limpet-gateway/limpet/controller/model"
)

// maxRegexes is how many regular expressions the matches at one path key may hold together. A catastrophic one costs up
// to its LIMIT_MATCH for every request, and HAProxy's watchdog ends the process over a few hundred of them.
const maxRegexes = 64

// beyondBound returns the matches that do not fit into maxRegexes. The oldest routes have the first claim, so that one
// that comes later cannot push out what has worked so far; within a route the matches of higher precedence have it, and
// from the first that does not fit, none with a regular expression does.
func beyondBound(matches []*match) map[*match]bool {
	total := 0
	for _, m := range matches {
		total += m.regexes
	}
	if total <= maxRegexes {
		return nil
	}
	claims := slices.Clone(matches)
	slices.SortStableFunc(claims, func(a, b *match) int { return cmp.Compare(a.route.rank, b.route.rank) })
	leftOut, full, left := map[*match]bool{}, map[*route]bool{}, maxRegexes
	for _, m := range claims {
		switch {
		case m.regexes == 0:
		case full[m.route] || m.regexes > left:
			full[m.route], leftOut[m] = true, true
		default:
			left -= m.regexes
		}
	}
	return leftOut
}

// withRefusals returns the candidates where some matches are left out.
//
// Whether a request is one that such a match means cannot be told. To let it fall through to something lesser of the same
// route would give it to a backend that its author kept it from: whatever the route has of lower precedence at this path
// answers 500, and so do requests that nobody at this path takes, before a shorter path is asked. Other routes at this path
// are asked as if the match were not there: one route's excess is not theirs to pay for.
func withRefusals(matches []*match, leftOut map[*match]bool) []model.Candidate {
	var candidates []model.Candidate
	refusing := map[*route]bool{}
	for _, m := range matches {
		switch {
		case leftOut[m]:
			refusing[m.route] = true
			continue
		case refusing[m.route]:
			candidates = append(candidates, m.refusal(m.candidate.Conditions))
		default:
			candidates = append(candidates, m.candidate)
		}
		if m.unconditional() {
			return candidates
		}
	}
	return append(candidates, lastRefusals(matches, leftOut)...)
}

// lastRefusals stand at the end: they have what can be checked of the conditions of the matches that are left out.
func lastRefusals(matches []*match, leftOut map[*match]bool) []model.Candidate {
	var refusals []model.Candidate
	seen := map[string]bool{}
	for _, m := range matches {
		if !leftOut[m] {
			continue
		}
		conditions := slices.DeleteFunc(slices.Clone(m.candidate.Conditions), func(c model.Condition) bool { return c.Regex })
		if len(conditions) == 0 {
			return append(refusals, m.refusal(nil))
		}
		if text := conditionsText(m.route.owner, conditions); !seen[text] {
			seen[text] = true
			refusals = append(refusals, m.refusal(conditions))
		}
	}
	return refusals
}

func conditionsText(owner model.Owner, conditions []model.Condition) string {
	parts := []string{string(owner)}
	for _, c := range conditions {
		parts = append(parts, string(c.On), c.Name, c.Value)
	}
	return join(parts)
}

// refusal answers 500 where the conditions hold.
func (m *match) refusal(conditions []model.Condition) model.Candidate {
	return model.Candidate{Owner: m.route.owner, Conditions: conditions, Target: model.Target{Rule: m.route.refusalRule().ID}}
}

// refuse remembers what an entry leaves out, and sees to it that a route's refusal rule is there while it is needed.
func (p *paths) refuse(entry *pathEntry, leftOut map[*match]bool, changed *changes) {
	for m := range entry.leftOut {
		rule := m.route.refusalRule()
		if p.refusals[rule.ID]--; p.refusals[rule.ID] == 0 {
			delete(p.refusals, rule.ID)
			changed.rules[rule.ID] = nil
		}
	}
	for m := range leftOut {
		rule := m.route.refusalRule()
		p.refusals[rule.ID]++
		changed.rules[rule.ID] = rule
	}
	if entry.leftOut = leftOut; len(leftOut) > 0 {
		p.refusing[entry] = true
	} else {
		delete(p.refusing, entry)
	}
}

func (p *paths) faults() []Fault {
	var faults []Fault
	for entry := range p.refusing {
		for m := range entry.leftOut {
			faults = append(faults, Fault{Owner: m.route.owner, Message: fmt.Sprintf(
				"%s is left out: matches for paths that begin with %q hold more than %d regular expressions on one hostname, "+
					"and older routes come first. Requests that it may have meant get 500 unless another route takes them",
				m.place(), spoken(m.path), maxRegexes)})
		}
	}
	return faults
}

// spoken is a path key as people write the path.
func spoken(key string) string {
	path := strings.TrimSuffix(strings.TrimSuffix(key, model.ExactEnd), "/")
	if path == "" {
		return "/"
	}
	return path
}
