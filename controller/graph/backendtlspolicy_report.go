package graph

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/conditions"
)

// maxAncestors is the API's limit for policies.
const maxAncestors = 16

// report says what came of a policy at each Gateway that reaches one of its targets through a route.
func (p *tlsPolicies) report(policy *tlsPolicy, services backends, routes *routes) *Reported {
	reached := make(map[types.NamespacedName]bool)
	for _, target := range policy.targets {
		for gateway := range routes.reachedBy(objectKey{kindService, target.service.Namespace, target.service.Name}) {
			reached[gateway] = true
		}
	}
	for _, other := range policy.others {
		for gateway := range routes.reachedBy(other) {
			reached[gateway] = true
		}
	}
	all := p.conditions(policy, services)
	return &Reported{
		APIVersion: gatewayv1.GroupVersion.String(), Kind: kindBackendTLSPolicy, Source: policy.source,
		Ancestors: ancestorsOf(reached, maxAncestors, func(types.NamespacedName) []metav1.Condition { return all }),
	}
}

func (p *tlsPolicies) conditions(policy *tlsPolicy, services backends) []metav1.Condition {
	generation := policy.source.Generation
	resolved := conditions.PolicyResolvedRefs(generation)
	if policy.refs.any() {
		resolved = conditions.PolicyRefsNotResolved(generation, policy.refs.reason(), policy.refs.text())
	}
	all := []metav1.Condition{p.accepted(policy, services), resolved}
	if len(policy.ignored) > 0 {
		all = append(all, conditions.Ignored(generation, sentences(policy.ignored)))
	}
	return all
}

func (p *tlsPolicies) accepted(policy *tlsPolicy, services backends) metav1.Condition {
	var wrong policyProblems
	wrong = append(wrong, policy.invalid...)
	wrong = append(wrong, policy.missing(services)...)
	wrong = append(wrong, p.conflicts(policy)...)
	if policy.tls == nil && policy.refs.any() {
		wrong.add(gatewayv1.BackendTLSPolicyReasonNoValidCACertificate, "no CA certificate can be had: %s",
			strings.TrimSuffix(policy.refs.text(), "."))
	}
	generation := policy.source.Generation
	if !wrong.any() {
		return conditions.PolicyAccepted(generation, "The policy is accepted.")
	}
	message := wrong.text()
	if policy.tls == nil {
		message += " What goes to the targets is answered with 503, never sent in plain text."
	}
	return conditions.PolicyNotAccepted(generation, wrong.reason(), message)
}

// missing are the targets that do not exist.
func (p *tlsPolicy) missing(services backends) policyProblems {
	var missing policyProblems
	for _, target := range p.targets {
		known, _ := services.Get(serviceKey(target.service.Namespace, target.service.Name))
		switch {
		case known == nil || known.source == nil:
			missing.add(gatewayv1.PolicyReasonTargetNotFound, "%s: Service %s does not exist", target.field, target.service)
		case target.section != "" && !hasTCPPort(known.source, target.section):
			missing.add(gatewayv1.PolicyReasonTargetNotFound, "%s.sectionName: Service %s has no TCP port of the name %q",
				target.field, target.service, target.section)
		}
	}
	return missing
}

// conflicts are the targets that another policy has: the older one, else the first by name.
func (p *tlsPolicies) conflicts(policy *tlsPolicy) policyProblems {
	var conflicts policyProblems
	for _, target := range policy.targets {
		winner := p.winners(target.service)[target.section]
		if winner == policy {
			continue
		}
		what := "Service " + target.service.String()
		if target.section != "" {
			what = fmt.Sprintf("port %q of %s", target.section, what)
		}
		conflicts.add(gatewayv1.PolicyReasonConflicted, "%s: BackendTLSPolicy %s targets %s too, and takes precedence",
			target.field, nameOf(winner.source), what)
	}
	return conflicts
}
