package graph

import (
	"reflect"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

const (
	maxMatchesOfRule = 64
	maxFilters       = 16
	maxBackendRefs   = 16
	maxWeight        = 1_000_000
)

// ruleDraft is a rule with what is wrong with it.
type ruleDraft struct {
	source *gatewayv1.HTTPRouteRule
	// grpc is set for a rule of a GRPCRoute, whose matches are there.
	grpc *gatewayv1.GRPCRouteRule
	node *Rule
	refs *references
	// sessions has the fields of sessionPersistence that only older versions of the API had.
	sessions map[*gatewayv1.SessionPersistence]*cluster.OldSession
	// field is where the rule stands in the spec.
	field    string
	problems routeProblems
	regexes  int
}

// refuse says that a field of the rule cannot be honoured. A rule is taken whole or not at all.
func (d *ruleDraft) refuse(field, format string, args ...any) {
	d.problems.add(gatewayv1.RouteReasonUnsupportedValue, d.field+"."+field+": "+format, args...)
}

func (d *ruleDraft) read(index int, routeRefused bool) {
	d.node = &Rule{Index: index, Name: string(valueOr(d.source.Name, ""))}
	d.readMatches()
	d.node.Filters = d.readFilters("filters", d.source.Filters)
	d.readBackendRefs()
	d.readFilterLimits()
	d.readTimeouts()
	d.readRetry()
	d.readSession()
	if d.problems.any() || routeRefused {
		d.node = d.node.drop()
	}
}

// drop leaves a rule its matches, so that no broader rule answers for it.
func (r *Rule) drop() *Rule {
	return &Rule{Index: r.Index, Name: r.Name, Matches: r.Matches, Dropped: true}
}

// takeOver returns last time's rule if nothing about it changed.
func takeOver(node *Rule, index int, last []*Rule) *Rule {
	if index < len(last) && reflect.DeepEqual(node, last[index]) {
		return last[index]
	}
	return node
}

func (d *ruleDraft) readBackendRefs() {
	refs := d.source.BackendRefs
	if len(refs) == 0 && layer4(d.refs.kind) {
		d.refuse("backendRefs", "must have at least one entry")
	}
	if len(refs) > maxBackendRefs {
		d.refuse("backendRefs", "must not have more than %d entries", maxBackendRefs)
		return
	}
	for i := range refs {
		d.node.Backends = append(d.node.Backends, d.readBackendRef(&refs[i], indexed("backendRefs", i)))
	}
}

func (d *ruleDraft) readBackendRef(source *gatewayv1.HTTPBackendRef, field string) BackendRef {
	ref := BackendRef{Weight: valueOr(source.Weight, 1)}
	if ref.Weight < 0 || ref.Weight > maxWeight {
		d.refuse(field+".weight", "%d must be from 0 to %d", ref.Weight, maxWeight)
	}
	key, found := d.refs.backend(d.field+"."+field, &source.BackendObjectReference)
	ref.Backend, ref.Invalid = key, !found
	ref.Filters = d.readFilters(field+".filters", source.Filters)
	return ref
}
