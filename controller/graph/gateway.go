package graph

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/conditions"
)

// gatewayBuild is what Gateways are read against.
type gatewayBuild struct {
	options Options
	// ports are those of the pod that all Gateways share, if they do.
	ports        *cluster.PortTable
	classes      classes
	parameters   parameterReader
	grants       grants
	secrets      cluster.Objects[*corev1.Secret]
	certificates certificates
	authorities  authorityReader
	namespaces   namespaces
	// sets are the ListenerSets by their Gateway, oldest first.
	sets map[types.NamespacedName][]*gatewayv1.ListenerSet
	// usedNamespaces are those whose labels matter.
	usedNamespaces map[string]bool
	// usedSecrets are those that were looked up, nil for one that does not exist.
	usedSecrets map[types.NamespacedName]*corev1.Secret
}

// gatewayProblems are what a Gateway's conditions report.
type gatewayProblems = problems[gatewayv1.GatewayConditionReason]

// gatewayDraft is a Gateway with what is wrong with it, until its conditions are written.
type gatewayDraft struct {
	node      *Gateway
	listeners []*listenerDraft
	// sets are all ListenerSets that refer to it.
	sets []*setDraft
	// refused makes it not Accepted, refs says which of its own references are not resolved, unusable which addresses it
	// does not get, ignored which of its fields are not honoured.
	refused, refs, unusable gatewayProblems
	ignored                 []string
	// clients says what is demanded of clients, clientsOf on which port it is something else.
	clients   clientsDraft
	clientsOf map[gatewayv1.PortNumber]clientsDraft
}

// build reads all Gateways of our classes, oldest first, with their ListenerSets.
func (b *gatewayBuild) build(sources []*gatewayv1.Gateway) ([]*Gateway, []*ListenerSet) {
	drafts := make([]*gatewayDraft, len(sources))
	for i, source := range sources {
		drafts[i] = b.newGateway(source)
	}
	if b.options.Pod == nil {
		claimAddresses(drafts)
	}
	nodes := make([]*Gateway, len(drafts))
	var sets []*ListenerSet
	for i, draft := range drafts {
		draft.finish()
		nodes[i] = draft.node
		for _, set := range draft.sets {
			sets = append(sets, set.node)
		}
	}
	return nodes, sets
}

func (b *gatewayBuild) newGateway(source *gatewayv1.Gateway) *gatewayDraft {
	draft := &gatewayDraft{node: &Gateway{Source: source}}
	draft.readClass(b.classes.byName[string(source.Spec.GatewayClassName)])
	b.readParameters(draft)
	b.readAddresses(draft)
	b.readFrontendTLS(draft)
	b.readListeners(draft)
	b.readSets(draft)
	b.readBackendTLS(draft)
	draft.readIgnored()
	return draft
}

func (d *gatewayDraft) readClass(class *GatewayClass) {
	if !class.Accepted {
		d.refused.add(gatewayv1.GatewayReasonInvalidParameters,
			"spec.gatewayClassName: GatewayClass %q is not accepted, see its conditions", class.Source.Name)
	}
}

// readParameters takes the Gateway's own parameters, and where they say nothing those of its class.
func (b *gatewayBuild) readParameters(d *gatewayDraft) {
	var class Parameters
	if own := b.classes.byName[string(d.node.Source.Spec.GatewayClassName)].parameters; own != nil {
		class = own.gateway
	}
	d.node.Parameters = class
	infrastructure := d.node.Source.Spec.Infrastructure
	if infrastructure == nil || infrastructure.ParametersRef == nil {
		return
	}
	const field = "spec.infrastructure.parametersRef"
	ref := infrastructure.ParametersRef
	own, wrong := b.parameters.find(ref.Group, ref.Kind, types.NamespacedName{Namespace: d.node.Source.Namespace, Name: ref.Name})
	if wrong != "" {
		d.refused.add(gatewayv1.GatewayReasonInvalidParameters, "%s %s", field, wrong)
		return
	}
	d.node.Parameters = own.gateway.over(class)
	if wrong := d.node.Parameters.TLS.unspoken(); wrong != "" {
		d.refused.add(gatewayv1.GatewayReasonInvalidParameters, "%s: spec.tls together with that of the GatewayClass %s", field, wrong)
	}
	if own.haproxy != (HAProxyParameters{}) {
		d.ignored = append(d.ignored, fmt.Sprintf("spec.haproxy of %s %s: one HAProxy serves all Gateways, so it is taken "+
			"from the parametersRef of a GatewayClass alone", kindParameters, nameOf(own.source)))
	}
}

func (b *gatewayBuild) readListeners(d *gatewayDraft) {
	listeners := d.node.Source.Spec.Listeners
	if len(listeners) == 0 || len(listeners) > 64 {
		d.refused.add(gatewayv1.GatewayReasonInvalid, "spec.listeners must have from 1 to 64 entries, not %d", len(listeners))
		return
	}
	seen := make(map[string]bool)
	for i := range listeners {
		draft := b.newListener(d, nil, &listeners[i])
		d.listeners = append(d.listeners, draft)
		d.node.Listeners = append(d.node.Listeners, draft.node)
		if seen[draft.node.Name] {
			d.refused.add(gatewayv1.GatewayReasonInvalid, "spec.listeners[%d]: another listener is named %q", i, draft.node.Name)
		}
		seen[draft.node.Name] = true
	}
	refuseConflicts(d.listeners)
}

// readBackendTLS reads the certificate that is shown to backends.
func (b *gatewayBuild) readBackendTLS(d *gatewayDraft) {
	tls := d.node.Source.Spec.TLS
	if tls == nil || tls.Backend == nil || tls.Backend.ClientCertificateRef == nil {
		return
	}
	const field = "spec.tls.backend.clientCertificateRef"
	certificate, wrong := b.certificate(referrer{gatewayv1.GroupName, kindGateway, d.node.Source.Namespace}, tls.Backend.ClientCertificateRef)
	if wrong == nil {
		d.node.ClientCertificate = certificate
		return
	}
	reason := gatewayv1.GatewayConditionReason(wrong.reason)
	if wrong.reason == gatewayv1.ListenerReasonInvalidCertificateRef {
		reason = gatewayv1.GatewayReasonInvalidClientCertificateRef
	}
	d.refs.add(reason, "%s: %s; backends are shown no certificate", field, wrong.message)
}

// readIgnored notes fields that can be left out without hurting anybody.
func (d *gatewayDraft) readIgnored() {
	spec := &d.node.Source.Spec
	if spec.DefaultScope != "" && spec.DefaultScope != gatewayv1.GatewayDefaultScopeNone {
		d.ignored = append(d.ignored, "spec.defaultScope: default Gateways are not built yet, routes must name the Gateway")
	}
}

// accepts says whether anything of the Gateway can be served. That is for its own listeners to say: its ListenerSets change
// nothing about its conditions (GEP-1713).
func (d *gatewayDraft) accepts() bool { return !d.refused.any() && servedOf(d.listeners) > 0 }

// finish decides what is served and writes the conditions.
func (d *gatewayDraft) finish() {
	d.node.Accepted = d.accepts()
	d.node.Valid = d.node.Accepted && !d.unusable.any() && d.placed()
	for _, listener := range d.listeners {
		d.finishListener(listener)
	}
	d.node.Conditions = d.conditions(servedOf(d.listeners))
	for _, set := range d.sets {
		d.finishSet(set)
	}
}

func (d *gatewayDraft) finishListener(listener *listenerDraft) {
	generation := listener.node.Generation()
	listener.node.Accepted = !listener.refused.any()
	var why problem[gatewayv1.ListenerConditionReason]
	switch {
	case !listener.served():
		why = listener.whyUnserved()
	case d.refused.any():
		why = problem[gatewayv1.ListenerConditionReason]{gatewayv1.ListenerReasonInvalid,
			"the Gateway is not accepted: " + d.refused.text()}
	case d.unusable.any():
		// The listener is right, and is served as soon as the address is free.
		why = problem[gatewayv1.ListenerConditionReason]{gatewayv1.ListenerReasonPending, d.unusable.text()}
	case !listener.placed():
		why = problem[gatewayv1.ListenerConditionReason]{gatewayv1.ListenerReasonPending, listener.whyUnplaced()}
	default:
		listener.node.Valid = true
		listener.node.Conditions = listener.conditions(generation, nil)
		return
	}
	listener.node.Conditions = listener.conditions(generation, &why)
}

func (d *gatewayDraft) conditions(served int) []metav1.Condition {
	generation := d.node.Source.Generation
	all := []metav1.Condition{d.accepted(generation, served), d.resolved(generation)}
	switch {
	case d.refused.any():
		all = append(all, conditions.GatewayNotProgrammed(generation, gatewayv1.GatewayReasonInvalid,
			"the Gateway is not accepted: "+d.refused.text()))
	case d.unusable.any():
		all = append(all, conditions.GatewayNotProgrammed(generation, gatewayv1.GatewayReasonAddressNotUsable, d.unusable.text()))
	case served == 0:
		all = append(all, conditions.GatewayNotProgrammed(generation, gatewayv1.GatewayReasonInvalid, "no listener is valid."))
	case !d.placed():
		all = append(all, conditions.GatewayNotProgrammed(generation, gatewayv1.GatewayReasonPending, d.whyUnplaced()))
	}
	if fallback := d.insecureFields(); len(fallback) > 0 {
		all = append(all, conditions.GatewayInsecureFrontendValidation(generation, strings.Join(fallback, ", ")+
			": AllowInsecureFallback also serves clients without a certificate and with one that is not valid."))
	}
	if len(d.ignored) > 0 {
		all = append(all, conditions.Ignored(generation, sentences(d.ignored)))
	}
	return all
}

func (d *gatewayDraft) accepted(generation int64, served int) metav1.Condition {
	switch {
	case d.refused.any():
		return conditions.GatewayNotAccepted(generation, d.refused.reason(), d.refused.text())
	case served == 0:
		return conditions.GatewayNotAccepted(generation, gatewayv1.GatewayReasonListenersNotValid, listenersNotValid(d.listeners))
	case served < len(d.listeners):
		return conditions.GatewaySomeListenersNotValid(generation, listenersNotValid(d.listeners))
	}
	return conditions.GatewayAccepted(generation)
}

// listenersNotValid says which listeners are conflicted or not valid for another reason, and which are accepted.
func listenersNotValid(drafts []*listenerDraft) string {
	var bad, good []string
	for _, listener := range drafts {
		if listener.served() {
			good = append(good, fmt.Sprintf("%q", listener.node.Name))
			continue
		}
		reason := gatewayv1.ListenerReasonInvalidCertificateRef
		if listener.refused.any() {
			reason = listener.refused.reason()
		} else if listener.refs.any() {
			reason = listener.refs.reason()
		}
		bad = append(bad, fmt.Sprintf("%q (%s)", listener.node.Name, reason))
	}
	message := "listeners that are not valid: " + strings.Join(bad, ", ")
	if len(good) > 0 {
		message += "; accepted: " + strings.Join(good, ", ")
	}
	return message + "."
}

func (d *gatewayDraft) resolved(generation int64) metav1.Condition {
	if d.refs.any() {
		return conditions.GatewayRefsNotResolved(generation, d.refs.reason(), d.refs.text())
	}
	var names []string
	for _, listener := range d.listeners {
		if listener.refs.any() {
			names = append(names, fmt.Sprintf("%q", listener.node.Name))
		}
	}
	if len(names) > 0 {
		return conditions.GatewayRefsNotResolved(generation, gatewayv1.GatewayReasonListenersNotResolved,
			"listeners whose references are not all resolved: "+strings.Join(names, ", ")+".")
	}
	return conditions.GatewayResolvedRefs(generation)
}
