package graph

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

const (
	kindBackendTLSPolicy = "BackendTLSPolicy"
	maxTargetRefs        = 16
)

// tlsPolicies are all BackendTLSPolicies.
type tlsPolicies struct {
	all map[types.NamespacedName]*tlsPolicy
	// byService leads to those that target a Service, the one that takes precedence first.
	byService map[types.NamespacedName][]*tlsPolicy
	// byConfigMap leads to those that refer to a ConfigMap, whether it exists or not.
	byConfigMap map[types.NamespacedName]map[types.NamespacedName]bool
	// byOther leads to those that target what cannot be a target.
	byOther     map[objectKey]map[types.NamespacedName]bool
	authorities *authorities
}

// tlsPolicy is what one BackendTLSPolicy says.
type tlsPolicy struct {
	source *gatewayv1.BackendTLSPolicy
	tlsValidation

	targets []tlsTarget
	// others are targets of kinds that are not served.
	others     []objectKey
	ignored    []string
	configMaps map[types.NamespacedName]*corev1.ConfigMap
}

// tlsTarget is a Service, or its port of the section's name.
type tlsTarget struct {
	field   string
	service types.NamespacedName
	section string
}

func newTLSPolicies() *tlsPolicies {
	return &tlsPolicies{
		all: make(map[types.NamespacedName]*tlsPolicy), byService: make(map[types.NamespacedName][]*tlsPolicy),
		byConfigMap: make(map[types.NamespacedName]map[types.NamespacedName]bool),
		byOther:     make(map[objectKey]map[types.NamespacedName]bool), authorities: newAuthorities(),
	}
}

// policyChanges are the policies that were read, and the Services that they target or targeted.
type policyChanges struct{ policies, services map[types.NamespacedName]bool }

// update reads the policies that changed and those whose ConfigMaps did.
func (p *tlsPolicies) update(last, now cluster.Snapshot) policyChanges {
	sources := make(map[types.NamespacedName]*gatewayv1.BackendTLSPolicy)
	for _, c := range diff(last.Policies, now.Policies) {
		sources[c.key()] = c.new
	}
	for _, c := range diff(last.ConfigMaps, now.ConfigMaps) {
		for name := range p.byConfigMap[c.key()] {
			if _, changed := sources[name]; !changed {
				sources[name] = p.all[name].source
			}
		}
	}
	changes := policyChanges{make(map[types.NamespacedName]bool), make(map[types.NamespacedName]bool)}
	for name, source := range sources {
		changes.policies[name] = true
		p.set(name, p.read(source, now), changes.services)
	}
	if len(sources) > 0 {
		p.forget()
	}
	return changes
}

func (p *tlsPolicies) set(name types.NamespacedName, next *tlsPolicy, touched map[types.NamespacedName]bool) {
	last := p.all[name]
	delete(p.all, name)
	for _, node := range []*tlsPolicy{last, next} {
		if node == nil {
			continue
		}
		for _, target := range node.targets {
			touched[target.service] = true
			p.place(target.service, node, node == next)
		}
		for _, other := range node.others {
			depend(p.byOther, other, name, node == next)
		}
		for configMap := range node.configMaps {
			depend(p.byConfigMap, configMap, name, node == next)
		}
	}
	if next != nil {
		p.all[name] = next
	}
}

// place puts a policy into its place among those of a Service, or takes it out.
func (p *tlsPolicies) place(service types.NamespacedName, policy *tlsPolicy, add bool) {
	rest := slices.DeleteFunc(slices.Clone(p.byService[service]), func(other *tlsPolicy) bool { return other == policy })
	if add {
		at, _ := slices.BinarySearchFunc(rest, policy, func(a, b *tlsPolicy) int { return older(a.source, b.source) })
		rest = slices.Insert(rest, at, policy)
	}
	if p.byService[service] = rest; len(rest) == 0 {
		delete(p.byService, service)
	}
}

// depend notes in an index, or no longer notes, that a name depends on a key.
func depend[K, N comparable](index map[K]map[N]bool, key K, name N, add bool) {
	switch names := index[key]; {
	case add && names == nil:
		index[key] = map[N]bool{name: true}
	case add:
		names[name] = true
	default:
		delete(names, name)
		if len(names) == 0 {
			delete(index, key)
		}
	}
}

func (p *tlsPolicies) forget() {
	used := make(map[types.NamespacedName]*corev1.ConfigMap)
	for _, policy := range p.all {
		maps.Copy(used, policy.configMaps)
	}
	p.authorities.keepOnly(used)
}

// read returns nil for a policy that is gone.
func (p *tlsPolicies) read(source *gatewayv1.BackendTLSPolicy, now cluster.Snapshot) *tlsPolicy {
	if source == nil {
		return nil
	}
	policy := &tlsPolicy{source: source, configMaps: make(map[types.NamespacedName]*corev1.ConfigMap)}
	reader := &authorityReader{authorities: p.authorities, configMaps: now.ConfigMaps, used: policy.configMaps}
	from := referrer{gatewayv1.GroupName, kindBackendTLSPolicy, source.Namespace}
	policy.tlsValidation = readTLSValidation("spec.validation", &source.Spec.Validation, from, reader)
	policy.readTargets()
	policy.readOptions()
	if policy.invalid.any() {
		policy.tls = nil
	}
	return policy
}

// readTargets takes Services, each or each of its sections once.
func (p *tlsPolicy) readTargets() {
	refs := p.source.Spec.TargetRefs
	if len(refs) == 0 || len(refs) > maxTargetRefs {
		p.refuse("spec.targetRefs must have from 1 to %d entries, not %d", maxTargetRefs, len(refs))
		refs = refs[:min(len(refs), maxTargetRefs)]
	}
	for i := range refs {
		field := indexed("spec.targetRefs", i)
		if refs[i].Group != "" || refs[i].Kind != kindService {
			p.others = append(p.others, objectKey{string(refs[i].Kind), p.source.Namespace, string(refs[i].Name)})
			p.refuse("%s: a %s in group %q cannot be a target, only a Service in the core group can",
				field, quoted(string(refs[i].Kind)), refs[i].Group)
			continue
		}
		p.addTarget(tlsTarget{
			field: field, service: types.NamespacedName{Namespace: p.source.Namespace, Name: string(refs[i].Name)},
			section: string(valueOr(refs[i].SectionName, "")),
		})
	}
}

func (p *tlsPolicy) addTarget(target tlsTarget) {
	for _, other := range p.targets {
		switch {
		case other.service != target.service:
		case other.section == target.section:
			p.refuse("%s and %s are the same target", other.field, target.field)
			return
		case other.section == "" || target.section == "":
			p.refuse("%s and %s: each must have a sectionName, for they are of one Service", other.field, target.field)
		}
	}
	p.targets = append(p.targets, target)
}

// readOptions reports what other implementations understand.
func (p *tlsPolicy) readOptions() {
	options := slices.Sorted(maps.Keys(p.source.Spec.Options))
	if len(options) > 16 {
		p.refuse("spec.options must not have more than 16 entries")
		return
	}
	for _, option := range options {
		p.ignored = append(p.ignored, fmt.Sprintf("spec.options: %s is not known", quoted(string(option))))
	}
}

// winners are the policies of a Service that take precedence, by section; "" is every port that no section names. A section's
// policy goes before that of the whole Service, and that is no conflict (GEP-713).
func (p *tlsPolicies) winners(service types.NamespacedName) map[string]*tlsPolicy {
	all := p.byService[service]
	if len(all) == 0 {
		return nil
	}
	winners := make(map[string]*tlsPolicy)
	for _, policy := range all {
		for _, target := range policy.targets {
			if target.service == service && winners[target.section] == nil {
				winners[target.section] = policy
			}
		}
	}
	return winners
}
