package translate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// fill makes a route's rules and backends from its source, for one way to the backends, and returns its matches.
func (r *route) fill(from way) []*match {
	r.way = from
	if r.source.Kind == graph.KindGRPCRoute {
		r.useBackend(unavailable)
	}
	var matches []*match
	ids := identities(r.source)
	for i, rule := range r.source.Rules {
		r.useBackends(rule)
		for j := range rule.Matches {
			if m := newMatch(r, rule, &rule.Matches[j]); m != nil {
				m.candidate.Target = r.target(rule, ids[i], &rule.Matches[j])
				matches = append(matches, m)
			}
		}
	}
	return matches
}

// useBackends notes every valid backendRef, also one that has no weight: its endpoints are there when it gets some.
func (r *route) useBackends(rule *graph.Rule) {
	if rule.Dropped {
		return
	}
	r.useMirrors(&rule.Filters)
	for i := range rule.Backends {
		ref := &rule.Backends[i]
		if ref.Invalid || rule.Filters.Redirect != nil {
			continue
		}
		r.useMirrors(&ref.Filters)
		if ref.Filters.Redirect == nil {
			r.useBackend(r.variant(ref.Backend, retry(rule)))
		}
	}
}

func (r *route) useMirrors(filters *graph.Filters) {
	for _, mirror := range filters.Mirrors {
		r.useBackend(r.mirrorVariant(mirror.Backend))
	}
}

func (r *route) useBackend(variant backendVariant) {
	if !slices.Contains(r.backends, variant) {
		r.backends = append(r.backends, variant)
	}
}

// variant is how the route speaks to a backend. It has no part in a session's identity: a retry stanza moves nobody.
func (r *route) variant(key graph.BackendKey, tries model.Retry) backendVariant {
	variant := backendVariant{
		key: key, http2: r.source.Kind == graph.KindGRPCRoute, tcp: r.source.Layer4(), passthrough: r.way.passthrough, retry: tries,
	}
	if slices.Contains(r.source.TLSBackends, key) {
		variant.gateway = r.way.gateway
	}
	return variant
}

// mirrorVariant is without the rule's retries: no client waits for a mirror.
func (r *route) mirrorVariant(key graph.BackendKey) backendVariant {
	return r.variant(key, model.Retry{})
}

// retry is a rule's profile of attempts. "If a BackendRequest timeout is configured on the route, any retry attempts which reach
// the configured BackendRequest timeout duration without a response SHOULD be canceled if possible and the Gateway SHOULD schedule
// the next retry attempt": GEP-1731.
func retry(rule *graph.Rule) model.Retry {
	source := rule.Retry
	if source == nil {
		return model.Retry{}
	}
	codes := make([]string, len(source.Codes))
	for i, code := range source.Codes {
		codes[i] = strconv.Itoa(code)
	}
	limited := rule.BackendTimeout > 0 && rule.BackendTimeout != graph.Unlimited
	return model.Retry{
		Set: true, Attempts: source.Attempts, Codes: strings.Join(codes, " "), Timeouts: limited && source.Attempts > 0,
	}
}

// target is the rule, which is made for the first match, and the backend where it has nothing more to say. What sets rules
// apart here has no part in a session's identity: one holds for all matches of a rule, and at all Gateways that lead to it.
func (r *route) target(rule *graph.Rule, id identity, m *graph.Match) model.Target {
	own := r.way.with(id)
	if replacesPrefix(rule) {
		own = own.with("prefix", m.Path) // what is replaced differs from match to match
	}
	key := own.ruleID()
	if r.rules[key] == nil {
		r.rules[key] = r.rule(key, rule, id, m)
	}
	target := model.Target{Rule: key}
	if made := r.rules[key]; made.Plain() {
		target.Backend = made.Split[0].Backend
	}
	return target
}

func (r *route) rule(key string, rule *graph.Rule, id identity, m *graph.Match) *model.Rule {
	made := &model.Rule{
		ID: key, Owner: r.owner, Display: displayRule(r.source, rule),
		RequestTimeout: timeout(rule.RequestTimeout), BackendTimeout: timeout(rule.BackendTimeout),
	}
	if rule.Dropped {
		made.Split = r.noBackend()
		return made
	}
	made.Filters = r.filters(&rule.Filters, m)
	if rule.Filters.Redirect == nil {
		made.Split = r.split(rule, id, m)
	}
	for i := range made.Split {
		if session := made.Split[i].Session; session != nil {
			session.ID = "s" + digest("session", key, session.Backend)
		}
	}
	return made
}

func timeout(d time.Duration) time.Duration {
	if d == graph.Unlimited {
		return model.Unlimited
	}
	return d
}

// displayRule is how people know a rule: by its route, its place in the spec, and its name if it has one.
func displayRule(route *graph.Route, rule *graph.Rule) string {
	display := fmt.Sprintf("%s %s rule %d", route.Kind, route.Key(), rule.Index)
	if rule.Name != "" {
		display += " (" + rule.Name + ")"
	}
	return display
}

// refusalRule answers for the route's matches that are left out.
func (r *route) refusalRule() *model.Rule {
	id := routeIdentity(r.source).with("left out")
	return &model.Rule{ID: id.ruleID(), Owner: r.owner, Split: r.noBackend()}
}

// noBackend answers every request with 500, or what stands for it.
func (r *route) noBackend() []model.Share { return []model.Share{{Weight: 1, Backend: r.nobody()}} }

// nobody answers for backendRefs that are not valid: with 500, and calls of gRPC with 503, which clients read as the status
// UNAVAILABLE that the specification demands.
func (r *route) nobody() string {
	if r.source.Kind != graph.KindGRPCRoute {
		return ""
	}
	return unavailable.name()
}

// split gives every backendRef its share. Without a valid one everything gets 500. Without any weight everything gets 500
// too: "if weight is set to 0, no traffic should be forwarded for this entry". The shares stay beside it, so that the next
// weight finds their endpoints in place.
func (r *route) split(rule *graph.Rule, id identity, m *graph.Match) []model.Share {
	var shares []model.Share
	valid, total := false, 0
	for i := range rule.Backends {
		ref := &rule.Backends[i]
		total += int(ref.Weight)
		share := model.Share{Weight: uint32(max(ref.Weight, 0)), Backend: r.nobody()}
		if !ref.Invalid {
			valid = true
			share.Filters = r.filters(&ref.Filters, m)
		}
		switch {
		case ref.Invalid:
		case ref.Filters.Redirect != nil:
			share.Backend = ""
		default:
			share.Backend = r.variant(ref.Backend, retry(rule)).name()
			share.Session = shareSession(rule, id, ref)
		}
		shares = append(shares, share)
	}
	switch {
	case !valid:
		return r.noBackend()
	case total <= 0:
		return append(shares, r.noBackend()...)
	default:
		return shares
	}
}
