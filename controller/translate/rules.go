package translate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// fill makes a route's matches, rules and backends from its source.
func (r *route) fill() {
	r.rules = map[string]*model.Rule{}
	ids := identities(r.source)
	for i, rule := range r.source.Rules {
		r.useBackends(rule)
		for j := range rule.Matches {
			if m := newMatch(r, rule, &rule.Matches[j]); m != nil {
				m.candidate.Target = r.target(rule, ids[i], &rule.Matches[j])
				r.matches = append(r.matches, m)
			}
		}
	}
}

// useBackends notes every valid backendRef, also one that has no weight: its endpoints are there when it gets some.
func (r *route) useBackends(rule *graph.Rule) {
	if rule.Dropped || rule.Filters.Redirect != nil {
		return
	}
	for _, ref := range rule.Backends {
		if !ref.Invalid {
			r.useBackend(r.variant(rule, ref.Backend))
		}
	}
}

func (r *route) useBackend(variant backendVariant) {
	if !slices.Contains(r.backends, variant) {
		r.backends = append(r.backends, variant)
	}
}

// variant is how a rule speaks to a backend. It has no part in a session's identity: a retry stanza moves nobody.
func (r *route) variant(rule *graph.Rule, key graph.BackendKey) backendVariant {
	return backendVariant{key: key, http2: r.source.Kind == "GRPCRoute", retry: retry(rule.Retry)}
}

func retry(source *graph.Retry) model.Retry {
	if source == nil {
		return model.Retry{}
	}
	codes := make([]string, len(source.Codes))
	for i, code := range source.Codes {
		codes[i] = strconv.Itoa(code)
	}
	return model.Retry{Set: true, Attempts: source.Attempts, Codes: strings.Join(codes, " ")}
}

// target is the rule, which is made for the first match, and the backend where it has nothing more to say.
func (r *route) target(rule *graph.Rule, id identity, m *graph.Match) model.Target {
	if replacesPrefix(rule) {
		id = id.with("prefix", m.Path) // what is replaced differs from match to match
	}
	key := id.ruleID()
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
	made := &model.Rule{ID: key, Owner: r.owner, Display: displayRule(r.source, rule)}
	switch {
	case rule.Dropped:
		made.Split = noBackend()
	case rule.Filters.Redirect != nil:
		made.Filters.Redirect = redirect(rule.Filters.Redirect, m)
	default:
		made.Filters.Request = headerChange(rule.Filters.RequestHeaders)
		made.Split = r.split(rule, id)
	}
	return made
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
	return &model.Rule{ID: id.ruleID(), Owner: r.owner, Split: noBackend()}
}

// noBackend answers every request with 500.
func noBackend() []model.Share { return []model.Share{{Weight: 1}} }

// split gives every backendRef its share. Without a valid one everything gets 500. Without any weight everything gets 500
// too: "if weight is set to 0, no traffic should be forwarded for this entry". The shares stay beside it, so that the next
// weight finds their endpoints in place.
func (r *route) split(rule *graph.Rule, id identity) []model.Share {
	var shares []model.Share
	valid, total := false, 0
	for i := range rule.Backends {
		ref := &rule.Backends[i]
		total += int(ref.Weight)
		share := model.Share{Weight: uint32(max(ref.Weight, 0))}
		if !ref.Invalid {
			valid = true
			share.Backend = r.variant(rule, ref.Backend).name()
			share.Filters.Request = headerChange(ref.Filters.RequestHeaders)
			share.Session = session(rule, id, ref.Backend)
		}
		shares = append(shares, share)
	}
	switch {
	case !valid:
		return noBackend()
	case total <= 0:
		return append(shares, noBackend()...)
	default:
		return shares
	}
}

func headerChange(source *graph.HeaderChange) *model.HeaderChange {
	if source == nil || len(source.Set)+len(source.Add)+len(source.Remove) == 0 {
		return nil
	}
	return &model.HeaderChange{Set: headers(source.Set), Add: headers(source.Add), Remove: slices.Clone(source.Remove)}
}

func headers(source []graph.HeaderValue) []model.Header {
	var all []model.Header
	for _, header := range source {
		all = append(all, model.Header{Name: header.Name, Value: header.Value})
	}
	return all
}

func replacesPrefix(rule *graph.Rule) bool {
	return !rule.Dropped && rule.Filters.Redirect != nil && rule.Filters.Redirect.Path != nil &&
		rule.Filters.Redirect.Path.Type == gatewayv1.PrefixMatchHTTPPathModifier
}

// redirect follows HTTPRequestRedirectFilter: the port is the one given, else the scheme's own, else the listener's.
func redirect(source *graph.Redirect, m *graph.Match) *model.Redirect {
	made := &model.Redirect{
		Status: source.Status, Scheme: source.Scheme, Host: source.Hostname, Port: source.Port,
		KeepPort: source.Port == 0 && source.Scheme == "",
	}
	if source.Path == nil {
		return made
	}
	switch source.Path.Type {
	case gatewayv1.FullPathHTTPPathModifier:
		made.ReplaceFull, made.Path = true, value(source.Path.ReplaceFullPath)
	case gatewayv1.PrefixMatchHTTPPathModifier:
		made.ReplacePrefix, made.Path, made.Prefix = true, value(source.Path.ReplacePrefixMatch), m.Path
	}
	return made
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
