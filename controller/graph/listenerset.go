package graph

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/conditions"
)

// setProblems are what a ListenerSet's conditions report.
type setProblems = problems[gatewayv1.ListenerSetConditionReason]

// setDraft is a ListenerSet with what is wrong with it, until its conditions are written.
type setDraft struct {
	node      *ListenerSet
	listeners []*listenerDraft
	// refused makes all of it not Accepted.
	refused setProblems
}

// parentGateway is the Gateway that a ListenerSet belongs to; false if it belongs to something else.
func parentGateway(source *gatewayv1.ListenerSet) (types.NamespacedName, bool) {
	ref := source.Spec.ParentRef
	return types.NamespacedName{
		Namespace: string(valueOr(ref.Namespace, gatewayv1.Namespace(source.Namespace))), Name: string(ref.Name),
	}, valueOr(ref.Group, gatewayv1.GroupName) == gatewayv1.GroupName && valueOr(ref.Kind, kindGateway) == kindGateway
}

// readSets reads the ListenerSets of a Gateway, oldest first. The listeners of those that are allowed are merged into its
// own, after which come those of older sets (GEP-1713).
func (b *gatewayBuild) readSets(d *gatewayDraft) {
	before := d.listeners
	for _, source := range b.sets[d.node.Key()] {
		set := &setDraft{node: &ListenerSet{Source: source, Gateway: d.node}}
		d.sets = append(d.sets, set)
		if why := b.notAllowed(d.node.Source, source.Namespace); why != "" {
			set.refused.add(gatewayv1.ListenerSetReasonNotAllowed, "%s", why)
			continue
		}
		d.node.Sets = append(d.node.Sets, set.node)
		b.readEntries(d, set)
		refuseTaken(before, set.listeners)
		refuseConflicts(set.listeners)
		before = append(before[:len(before):len(before)], set.listeners...)
	}
	findOverlaps(before)
}

// notAllowed says why a Gateway does not take ListenerSets of a namespace; "" if it does. Its owner must have asked for them.
func (b *gatewayBuild) notAllowed(gateway *gatewayv1.Gateway, namespace string) string {
	const field = "spec.allowedListeners.namespaces"
	name := nameOf(gateway)
	allowed := gateway.Spec.AllowedListeners
	if allowed == nil || allowed.Namespaces == nil {
		return fmt.Sprintf("Gateway %s takes no ListenerSets: its %s must allow them", name, field)
	}
	from := valueOr(allowed.Namespaces.From, gatewayv1.NamespacesFromNone)
	permitted := allowedNamespaces{from: from}
	if from == gatewayv1.NamespacesFromSelector {
		selector, err := metav1.LabelSelectorAsSelector(allowed.Namespaces.Selector)
		if err != nil {
			return fmt.Sprintf("Gateway %s takes no ListenerSets: its %s.selector is not valid: %s", name, field, err)
		}
		permitted.selector = selector
	}
	if permitted.permits(gateway.Namespace, namespace, func() labels.Set { return b.labelsOf(namespace) }) {
		return ""
	}
	return fmt.Sprintf("Gateway %s takes no ListenerSets of namespace %q: its %s must allow them", name, namespace, field)
}

// labelsOf notes that the labels of a namespace matter.
func (b *gatewayBuild) labelsOf(namespace string) labels.Set {
	b.usedNamespaces[namespace] = true
	return b.namespaces.labels(namespace)
}

func (b *gatewayBuild) readEntries(d *gatewayDraft, set *setDraft) {
	entries := set.node.Source.Spec.Listeners
	if len(entries) == 0 || len(entries) > 64 {
		set.refused.add(gatewayv1.ListenerSetReasonInvalid, "spec.listeners must have from 1 to 64 entries, not %d", len(entries))
		return
	}
	seen := make(map[string]bool)
	for i := range entries {
		source := gatewayv1.Listener(entries[i])
		draft := b.newListener(d, set, &source)
		set.listeners = append(set.listeners, draft)
		set.node.Listeners = append(set.node.Listeners, draft.node)
		if seen[draft.node.Name] {
			set.refused.add(gatewayv1.ListenerSetReasonInvalid, "spec.listeners[%d]: another listener is named %q", i, draft.node.Name)
		}
		seen[draft.node.Name] = true
	}
}

// finishSet decides what is served of a set and writes the conditions.
func (d *gatewayDraft) finishSet(set *setDraft) {
	generation := set.node.Source.Generation
	wrong := set.wrong(d)
	set.node.Accepted = !wrong.any()
	for _, listener := range set.listeners {
		switch {
		case !listener.served() || !wrong.any():
			d.finishListener(listener)
		default:
			why := problem[gatewayv1.ListenerConditionReason]{gatewayv1.ListenerReasonInvalid, "the ListenerSet is not accepted: " + wrong.text()}
			listener.node.Conditions = listener.conditions(generation, &why)
		}
	}
	set.node.Valid = set.node.Accepted && d.node.Valid
	set.node.Conditions = set.conditions(d, wrong)
}

// wrong is why a set is not accepted.
func (s *setDraft) wrong(d *gatewayDraft) setProblems {
	served := servedOf(s.listeners)
	var wrong setProblems
	switch {
	case s.refused.any():
		return s.refused
	case !d.accepts():
		wrong.add(gatewayv1.ListenerSetReasonParentNotAccepted, "Gateway %s is not accepted: see its conditions", d.node.Key())
	case served == 0:
		wrong.add(gatewayv1.ListenerSetReasonListenersNotValid, "%s", strings.TrimSuffix(listenersNotValid(s.listeners), "."))
	}
	return wrong
}

func (s *setDraft) conditions(d *gatewayDraft, wrong setProblems) []metav1.Condition {
	generation := s.node.Source.Generation
	switch {
	case wrong.any():
		reason := wrong.reason()
		if reason == gatewayv1.ListenerSetReasonParentNotAccepted {
			reason = conditions.ListenerSetReasonParentNotProgrammed
		}
		return conditionList(conditions.ListenerSetNotAccepted(generation, wrong.reason(), wrong.text()),
			conditions.ListenerSetNotProgrammed(generation, reason, wrong.text()))
	case servedOf(s.listeners) < len(s.listeners):
		return s.programmed(d, conditions.ListenerSetSomeListenersNotValid(generation, listenersNotValid(s.listeners)))
	}
	return s.programmed(d, conditions.ListenerSetAccepted(generation))
}

// programmed adds why an accepted set is not programmed, if that is known already.
func (s *setDraft) programmed(d *gatewayDraft, accepted metav1.Condition) []metav1.Condition {
	if d.node.Valid {
		return conditionList(accepted)
	}
	return conditionList(accepted, conditions.ListenerSetNotProgrammed(s.node.Source.Generation,
		conditions.ListenerSetReasonParentNotProgrammed, "Gateway "+d.node.Key().String()+" is not programmed: see its conditions."))
}
