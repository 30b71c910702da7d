package graph

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/conditions"
)

// The CRD's limits.
const (
	maxHostnames = 16
	// A TLSRoute may have many more hostnames, and a route at layer 4 has one rule.
	maxServerNames = 1024
	maxRules       = 16
	maxMatches     = 128
	maxParentRefs  = 32
)

// routeRules is what the spec of a route says, whatever its parents are.
type routeRules struct {
	hostnames []string
	rules     []*Rule
	// refused is what is wrong with the route as a whole; all its rules are then dropped.
	refused routeProblems
	// dropped has an entry for each rule that is dropped for what it says itself.
	dropped routeProblems
	// unresolved, ignored, needs, tls and collisions are those of references.
	unresolved routeProblems
	ignored    []string
	needs      []objectKey
	tls        []BackendKey
	collisions []collision
}

// readRules reads the spec of a route, and takes over rules that are equal to those of the last time.
func readRules(in *routeInput, source *routeSource, last []*Rule) *routeRules {
	result := &routeRules{}
	result.readSpec(source)
	refs := in.references
	refs.kind, refs.namespace = source.kind, source.GetNamespace()
	sources := rulesOf(source)
	for i := range sources {
		draft := &ruleDraft{
			source: sources[i].HTTPRouteRule, grpc: sources[i].grpc, refs: &refs, sessions: in.sessions, field: indexed("spec.rules", i),
		}
		draft.read(i, result.refused.any())
		if layer4(source.kind) {
			refs.ignoreSessions(draft.node)
		} else {
			refs.giveSessions(draft.field, draft.node)
		}
		result.dropped = append(result.dropped, draft.problems...)
		result.rules = append(result.rules, takeOver(draft.node, i, last))
	}
	if source.spec.UseDefaultGateways != "" && source.spec.UseDefaultGateways != gatewayv1.GatewayDefaultScopeNone {
		refs.ignore("spec.useDefaultGateways: default Gateways are not built yet, name Gateways in parentRefs")
	}
	result.unresolved, result.ignored, result.needs = refs.unresolved, refs.ignored, refs.needs
	result.tls, result.collisions = refs.tls, refs.collisions
	return result
}

// rulesOf reads nothing of a route beyond the limits, which bound what a route can cost.
func rulesOf(source *routeSource) []ruleSource {
	if len(source.rules) > source.mostRules() || countMatches(source) > maxMatches {
		return nil
	}
	return source.rules
}

func countMatches(source *routeSource) int {
	count := 0
	for i := range source.rules {
		count += source.rules[i].matches()
	}
	return count
}

// demandSecure says whether a rule's cookie is dropped by browsers that do not speak TLS.
func (r *routeRules) demandSecure() bool {
	return slices.ContainsFunc(r.rules, func(rule *Rule) bool { return rule.demandsSecure() != nil })
}

// onPlain drops the rules whose cookies need TLS, because the route attaches to a listener that has none.
func (r *routeRules) onPlain(listener *Listener, last []*Rule) *routeRules {
	result := *r
	result.rules, result.dropped = nil, slices.Clone(r.dropped)
	for i, rule := range r.rules {
		if session := rule.demandsSecure(); session != nil {
			result.dropped.add(gatewayv1.RouteReasonUnsupportedValue, "spec.rules[%d].sessionPersistence, or that of an XBackend: the "+
				"cookie's name %q demands the attribute Secure, which cookies of listener %q (protocol HTTP) do not have",
				i, session.Name, listener.Name)
			rule = takeOver(rule.drop(), i, last)
		}
		result.rules = append(result.rules, rule)
	}
	return &result
}

// allDropped says that nothing of the route can be served.
func (r *routeRules) allDropped() bool {
	if len(r.rules) == 0 {
		return false // a GRPCRoute may have no rules
	}
	for _, rule := range r.rules {
		if !rule.Dropped {
			return false
		}
	}
	return true
}

// readSpec checks what concerns the route as a whole, as an API server would: it would refuse all of it.
func (r *routeRules) readSpec(source *routeSource) {
	if len(source.rules) == 0 && source.kind != KindGRPCRoute || len(source.rules) > source.mostRules() {
		r.refuse("spec.rules must have from 1 to %d entries, not %d", source.mostRules(), len(source.rules))
	}
	if count := countMatches(source); count > maxMatches {
		r.refuse("spec.rules must not have more than %d matches in all, not %d", maxMatches, count)
	}
	if len(source.hostnames) == 0 && source.kind == KindTLSRoute {
		r.refuse("spec.hostnames must have at least one entry")
	}
	r.readHostnames(source.hostnames, source.mostHostnames())
	r.checkRuleNames(source.rules)
	if problem := checkParentRefs(source.spec.ParentRefs); problem != "" {
		r.refuse("spec.parentRefs %s", problem)
	}
}

func (r *routeRules) refuse(format string, args ...any) {
	r.refused.add(gatewayv1.RouteReasonUnsupportedValue, format, args...)
}

// mostRules and mostHostnames are the CRDs' limits.
func (s *routeSource) mostRules() int {
	if layer4(s.kind) {
		return 1
	}
	return maxRules
}

func (s *routeSource) mostHostnames() int {
	if s.kind == KindTLSRoute {
		return maxServerNames
	}
	return maxHostnames
}

func (r *routeRules) readHostnames(hostnames []gatewayv1.Hostname, most int) {
	if len(hostnames) > most {
		r.refuse("spec.hostnames must not have more than %d entries", most)
		hostnames = hostnames[:most]
	}
	for i, hostname := range hostnames {
		if wrong := checkHostname(string(hostname)); wrong != "" {
			r.refuse("spec.hostnames[%d]: %q %s", i, hostname, wrong)
			continue
		}
		r.hostnames = append(r.hostnames, strings.ToLower(string(hostname)))
	}
}

func (r *routeRules) checkRuleNames(rules []ruleSource) {
	seen := make(map[gatewayv1.SectionName]bool)
	for i := range rules {
		if rules[i].Name == nil {
			continue
		}
		name := *rules[i].Name
		if wrong := checkSectionName(string(name)); wrong != "" {
			r.refuse("spec.rules[%d].name: %q %s", i, name, wrong)
		}
		if seen[name] {
			r.refuse("spec.rules[%d].name: another rule is named %q", i, name)
		}
		seen[name] = true
	}
}

// checkParentRefs is the experimental CRD's rule that references to one parent are told apart by sectionName or port.
func checkParentRefs(refs []gatewayv1.ParentReference) string {
	if len(refs) > maxParentRefs {
		return fmt.Sprintf("must not have more than %d entries", maxParentRefs)
	}
	for i := range refs {
		for j := range i {
			if !sameParent(&refs[i], &refs[j]) {
				continue
			}
			a, b := sectionOf(&refs[i]), sectionOf(&refs[j])
			if (a.name == "") != (b.name == "") || (a.port == 0) != (b.port == 0) || a == b {
				return fmt.Sprintf("[%d] and [%d] refer to the same parent: each must set sectionName or port, "+
					"the same fields as the other with other values", j, i)
			}
		}
	}
	return ""
}

type section struct {
	name gatewayv1.SectionName
	port gatewayv1.PortNumber
}

func sectionOf(ref *gatewayv1.ParentReference) section {
	return section{valueOr(ref.SectionName, ""), valueOr(ref.Port, 0)}
}

// sameParent compares as the CRD does: an absent namespace is not the route's own.
func sameParent(a, b *gatewayv1.ParentReference) bool {
	return valueOr(a.Group, gatewayv1.GroupName) == valueOr(b.Group, gatewayv1.GroupName) &&
		valueOr(a.Kind, "Gateway") == valueOr(b.Kind, "Gateway") &&
		a.Name == b.Name && valueOr(a.Namespace, "") == valueOr(b.Namespace, "")
}

// resolved is the condition about the route's references. It is set on routes that are not accepted too.
func (r *routeRules) resolved(generation int64) metav1.Condition {
	if r.unresolved.any() {
		return conditions.RouteRefsNotResolved(generation, r.unresolved.reason(), r.unresolved.text())
	}
	return conditions.RouteResolvedRefs(generation)
}
