package graph

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzBuild reads whole objects as YAML, with whatever errors. Nothing may panic, no condition may lack anything or be
// more than one line, and what is served holds no control character.
func FuzzBuild(f *testing.F) {
	for _, seed := range []string{
		gateway + shop + routeTo("backendRefs: [{name: shop, port: 80}]"),
		twoListeners + routeOf("{name: gw}", "  hostnames: [a.com, '*.b.com']"),
		pairOfAll,
		gateway + services + serviceGrant(fromDefault, toServices) + routeTo(`{matches: [{path: {type: RegularExpression, value: "/a+"},
    headers: [{name: a, value: b}], queryParams: [{name: c, value: d, type: RegularExpression}], method: GET}],
    filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: b}], remove: [c]}}],
    backendRefs: [{name: shop, port: 80, weight: 3}], sessionPersistence: {absoluteTimeout: 1h, cookie: {name: sid, path: /a}}}`),
		gateway + routeTo(`{filters: [{type: RequestRedirect, requestRedirect: {scheme: https, hostname: a.com, port: 443,
    path: {type: ReplaceFullPath, replaceFullPath: /a}}}], sessionPersistence: {type: Header, header: {name: x}}}`),
		withListeners("{name: s, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}") +
			"\n---\nkind: Secret\nmetadata: {name: cert, namespace: default}\ntype: kubernetes.io/tls\nstringData: {tls.crt: a, tls.key: b}\n",
		gateway + otherObject("gateway.networking.k8s.io/v1", "GRPCRoute", "{parentRefs: [{name: gw, port: 80}]}") +
			setOf("set", "{name: gw}", "{name: a, port: 80, protocol: HTTP}") +
			otherObject("gateway.networking.k8s.io/v1", "BackendTLSPolicy", "{targetRefs: [{kind: Service, name: shop}]}"),
	} {
		f.Add([]byte(seed), []byte(sliceOf("a", "IPv4", "{port: 1}", "{addresses: [10.0.0.1], targetRef: {kind: Pod, name: p}}")))
	}
	f.Fuzz(func(t *testing.T, first, more []byte) {
		builder := NewBuilder(Options{PortOffset: 8000})
		var all objects
		for _, text := range [][]byte{first, more} {
			for _, document := range strings.Split(string(text), "---\n") {
				// An object that was decoded in part is what matters here.
				_ = all.add(document)
			}
			g := builder.Build(all.snapshot())
			check(t, g)
			equal(t, g, NewBuilder(Options{PortOffset: 8000}).Build(all.snapshot()))
		}
	})
}

func check(t *testing.T, g *Graph) {
	t.Helper()
	for _, class := range g.Classes {
		checkConditions(t, class.Conditions)
	}
	for _, gateway := range g.Gateways {
		checkConditions(t, gateway.Conditions)
		for _, listener := range gateway.Listeners {
			checkConditions(t, listener.Conditions)
			if listener.Valid && (!gateway.Valid || listener.Bind == 0 || listener.Protocol.Terminates() && len(listener.Certificates) == 0) {
				t.Errorf("a listener is valid without reason: %+v", listener)
			}
		}
	}
	for _, route := range g.Routes {
		for _, parent := range route.Parents {
			checkConditions(t, parent.Conditions)
		}
		for _, rule := range route.Rules {
			checkRule(t, g, rule)
		}
	}
	for _, set := range g.ListenerSets {
		checkConditions(t, set.Conditions)
		for _, listener := range set.Listeners {
			checkConditions(t, listener.Conditions)
		}
	}
	for _, other := range g.Others {
		for _, parent := range other.Parents {
			checkConditions(t, parent.Conditions)
		}
	}
}

func checkConditions(t *testing.T, all []metav1.Condition) {
	t.Helper()
	for _, c := range all {
		if c.Type == "" || c.Reason == "" || c.Status == "" || c.Message == "" || len(all) > 8 || strings.ContainsFunc(c.Message, unicode.IsControl) {
			t.Errorf("%+v", c)
		}
	}
}

// checkRule looks at every text that a rule which is served can hold.
func checkRule(t *testing.T, g *Graph, rule *Rule) {
	t.Helper()
	if rule.Dropped && (rule.Session != nil || rule.Filters.Redirect != nil || rule.Filters.RequestHeaders != nil || len(rule.Backends) > 0) ||
		!rule.Dropped && len(rule.Matches) == 0 {
		t.Errorf("%+v", rule)
	}
	texts := []string{rule.Name}
	for _, match := range rule.Matches {
		texts = append(texts, match.Path, match.Method)
		for _, value := range slices.Concat(match.Headers, match.Query) {
			texts = append(texts, value.Name, value.Value)
		}
	}
	changes := []*HeaderChange{rule.Filters.RequestHeaders}
	for _, ref := range rule.Backends {
		changes = append(changes, ref.Filters.RequestHeaders)
		if !ref.Invalid && g.Backend(ref.Backend) == nil {
			t.Errorf("a valid reference leads nowhere: %+v", ref)
		}
	}
	for _, change := range changes {
		if change != nil {
			texts = append(texts, change.Remove...)
			for _, value := range slices.Concat(change.Set, change.Add) {
				texts = append(texts, value.Name, value.Value)
			}
		}
	}
	if redirect := rule.Filters.Redirect; redirect != nil {
		texts = append(texts, redirect.Scheme, redirect.Hostname)
		if redirect.Path != nil {
			texts = append(texts, valueOr(redirect.Path.ReplaceFullPath, ""), valueOr(redirect.Path.ReplacePrefixMatch, ""))
		}
	}
	if rule.Session != nil {
		texts = append(texts, rule.Session.Name, rule.Session.Path)
	}
	for _, text := range texts {
		if strings.ContainsFunc(text, unicode.IsControl) || len(text) > 4096 {
			t.Errorf("a rule that is not dropped holds %q", text)
		}
	}
}
