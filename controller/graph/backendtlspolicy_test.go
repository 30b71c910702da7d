package graph

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// policyOf is a BackendTLSPolicy; its spec is written as a flow mapping.
func policyOf(name, created, spec string) string {
	return fmt.Sprintf("---\napiVersion: gateway.networking.k8s.io/v1\nkind: BackendTLSPolicy\n"+
		"metadata: {name: %s, namespace: default, generation: 4, creationTimestamp: '%s'}\nspec: %s\n", name, created, spec)
}

const (
	old, young = "2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"
	toAll      = "targetRefs: [{group: '', kind: Service, name: s}]"
	toWeb      = "targetRefs: [{group: '', kind: Service, name: s, sectionName: web}]"
	withCA     = "validation: {hostname: s.com, caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]}"
	withSystem = "validation: {hostname: s.com, wellKnownCACertificates: System}"
	policyOK   = "Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs"
)

// policed is a Gateway, a Service s with ports web and api, and a route to both; default/ca and default/two hold CA certificates.
func policed() string {
	return gateway + `---
kind: Service
metadata: {name: s, namespace: default}
spec: {ports: [{name: web, port: 443, appProtocol: HTTPS}, {name: api, port: 444}]}
` + sliceOf("s-1", "IPv4", "{name: web, port: 8443}, {name: api, port: 8444}", "{addresses: [10.0.0.1]}") +
		routeTo("backendRefs: [{name: s, port: 443}, {name: s, port: 444}]") +
		configMapYAML("default", "ca", twoAuthorities()[0])[1:] + configMapYAML("default", "two", twoAuthorities()[1])[1:] +
		configMapYAML("default", "empty", "nothing")[1:]
}

func showReported(g *Graph) string {
	return names(g.Reported, func(r *Reported) string {
		texts := []string{r.Kind + "/" + r.Source.GetName()}
		for _, ancestor := range r.Ancestors {
			texts = append(texts, string(ancestor.Ref.Name)+":"+show(ancestor.Conditions))
		}
		return strings.Join(texts, " ")
	})
}

func (g *Graph) reportedMessages() string {
	var text strings.Builder
	for _, object := range g.Reported {
		for _, ancestor := range object.Ancestors {
			text.WriteString(allMessages(ancestor.Conditions))
		}
	}
	return text.String()
}

func showTLS(backend *Backend) string {
	switch {
	case backend.Untrusted && backend.TLS == nil:
		return "refused"
	case backend.TLS == nil:
		return "plain"
	}
	text := backend.TLS.Hostname + " by system"
	if backend.TLS.Authority != nil {
		text = backend.TLS.Hostname + " by " + backend.TLS.Authority.Source
	}
	for _, name := range backend.TLS.SubjectAltNames {
		text += " " + name.DNS + name.URI
	}
	return text
}

func TestBackendTLSPolicies(t *testing.T) {
	t.Parallel()
	validation := func(fields string) string { return "{" + toAll + ", validation: {" + fields + "}}" }
	const caRef = "caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]"
	invalid := "BackendTLSPolicy/p gw:Accepted=False/Invalid ResolvedRefs=True/ResolvedRefs"
	badRefs := func(accepted, reason string) string {
		return "BackendTLSPolicy/p gw:Accepted=" + accepted + " ResolvedRefs=False/" + reason
	}
	for _, test := range []struct {
		name, spec, want, web, api string
		messages                   []string
	}{
		{"the whole Service", "{" + toAll + ", " + withCA + "}", "BackendTLSPolicy/p gw:" + policyOK,
			"s.com by ConfigMap default/ca", "s.com by ConfigMap default/ca", nil},
		{"one port", "{" + toWeb + ", " + withCA + "}", "BackendTLSPolicy/p gw:" + policyOK, "s.com by ConfigMap default/ca", "plain", nil},
		{"the system's CA certificates", "{" + toAll + ", " + withSystem + "}", "BackendTLSPolicy/p gw:" + policyOK, "s.com by system", "s.com by system", nil},
		{"other names", validation("hostname: s.com, " + caRef + ", subjectAltNames: [{type: Hostname, hostname: '*.a.com'}, {type: URI, uri: 'spiffe://a/b'}]"),
			"BackendTLSPolicy/p gw:" + policyOK, "s.com by ConfigMap default/ca *.a.com spiffe://a/b", "s.com by ConfigMap default/ca *.a.com spiffe://a/b", nil},
		{"two ports of one Service", "{targetRefs: [{group: '', kind: Service, name: s, sectionName: web}, {group: '', kind: Service, name: s, sectionName: api}], " +
			withSystem + "}", "BackendTLSPolicy/p gw:" + policyOK, "s.com by system", "s.com by system", nil},
		{"options are ignored", "{" + toAll + ", " + withSystem + ", options: {example.com/min-version: '1.3'}}",
			"BackendTLSPolicy/p gw:" + policyOK + " limpet.dev/Ignored=True/NotBuilt", "s.com by system", "s.com by system", []string{"example.com/min-version"}},

		{"a ConfigMap that does not exist", validation("hostname: s.com, caCertificateRefs: [{group: '', kind: ConfigMap, name: gone}]"),
			badRefs("False/NoValidCACertificate", "InvalidCACertificateRef"), "refused", "refused",
			[]string{"spec.validation.caCertificateRefs[0]: ConfigMap default/gone does not exist", "503, never sent in plain text"}},
		{"a ConfigMap without certificates", validation("hostname: s.com, caCertificateRefs: [{group: '', kind: ConfigMap, name: empty}]"),
			badRefs("False/NoValidCACertificate", "InvalidCACertificateRef"), "refused", "refused", nil},
		{"another kind", validation("hostname: s.com, caCertificateRefs: [{group: invalid.io, kind: InvalidKind, name: x}]"),
			badRefs("False/NoValidCACertificate", "InvalidKind"), "refused", "refused", []string{`"invalid.io"`}},
		{"one of two references is valid", validation("hostname: s.com, caCertificateRefs: [{group: '', kind: ConfigMap, name: gone}, {group: '', kind: ConfigMap, name: ca}]"),
			badRefs("True/Accepted", "InvalidCACertificateRef"), "s.com by ConfigMap default/ca", "s.com by ConfigMap default/ca", nil},

		{"no CA certificates at all", validation("hostname: s.com"), invalid, "refused", "refused", []string{"caCertificateRefs or wellKnownCACertificates"}},
		{"both kinds of CA certificates", validation("hostname: s.com, " + caRef + ", wellKnownCACertificates: System"), invalid, "refused", "refused", nil},
		{"unknown well-known certificates", validation("hostname: s.com, wellKnownCACertificates: example.com/x"), invalid, "refused", "refused",
			[]string{`"example.com/x" is not known`}},
		{"no hostname", validation(caRef), invalid, "refused", "refused", []string{"spec.validation.hostname"}},
		{"an address for a hostname", validation("hostname: 10.0.0.1, " + caRef), invalid, "refused", "refused", []string{"IP address"}},
		{"a wildcard for a hostname", validation("hostname: '*.s.com', " + caRef), invalid, "refused", "refused", nil},
		{"9 references", validation("hostname: s.com, caCertificateRefs: [" + strings.Repeat("{group: '', kind: ConfigMap, name: ca}, ", 9) + "]"),
			invalid, "refused", "refused", nil},
		{"6 names", validation("hostname: s.com, " + caRef + ", subjectAltNames: [" + strings.Repeat("{type: Hostname, hostname: a.com}, ", 6) + "]"),
			invalid, "refused", "refused", nil},
		{"a name without a value", validation("hostname: s.com, " + caRef + ", subjectAltNames: [{type: Hostname}]"), invalid, "refused", "refused", nil},
		{"a name of another type", validation("hostname: s.com, " + caRef + ", subjectAltNames: [{type: Email, hostname: a.com}]"), invalid, "refused", "refused", nil},
		{"a hostname and a URI", validation("hostname: s.com, " + caRef + ", subjectAltNames: [{type: URI, hostname: a.com, uri: 'spiffe://a/b'}]"),
			invalid, "refused", "refused", nil},
		{"a relative URI", validation("hostname: s.com, " + caRef + ", subjectAltNames: [{type: URI, uri: /a}]"), invalid, "refused", "refused", nil},
		{"a URI with a newline", validation("hostname: s.com, " + caRef + `, subjectAltNames: [{type: URI, uri: "a://b\nc"}]`), invalid, "refused", "refused", nil},
		{"a target twice", "{targetRefs: [{group: '', kind: Service, name: s}, {group: '', kind: Service, name: s}], " + withCA + "}",
			invalid, "refused", "refused", []string{"spec.targetRefs[0] and spec.targetRefs[1]"}},
		{"a Service and its port", "{targetRefs: [{group: '', kind: Service, name: s}, {group: '', kind: Service, name: s, sectionName: web}], " + withCA + "}",
			invalid, "refused", "refused", []string{"sectionName"}},
		{"another kind beside", "{targetRefs: [{group: '', kind: Service, name: s}, {group: example.com, kind: Bucket, name: s}], " + withCA + "}",
			invalid, "refused", "refused", []string{`"Bucket"`}},

		{"a port that does not exist", "{targetRefs: [{group: '', kind: Service, name: s, sectionName: none}], " + withCA + "}",
			"BackendTLSPolicy/p gw:Accepted=False/TargetNotFound ResolvedRefs=True/ResolvedRefs", "plain", "plain", []string{`no TCP port of the name "none"`}},
		{"a Service that no route uses", "{targetRefs: [{group: '', kind: Service, name: bare}], " + withCA + "}", "", "plain", "plain", nil},
		{"an XBackend that no route uses", "{targetRefs: [{group: gateway.networking.x-k8s.io, kind: XBackend, name: s}], " + withCA + "}", "", "plain", "plain", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, policed()+policyOf("p", old, test.spec))
			if got := showReported(g); got != test.want {
				t.Errorf("got  %s\nwant %s\n%s", got, test.want, g.reportedMessages())
			}
			for _, message := range test.messages {
				if !strings.Contains(g.reportedMessages(), message) {
					t.Errorf("no message holds %q:\n%s", message, g.reportedMessages())
				}
			}
			for port, want := range map[int32]string{443: test.web, 444: test.api} {
				if got := showTLS(g.Backend(BackendKey{"Service", "default", "s", port})); got != want {
					t.Errorf("port %d: %s, want %s", port, got, want)
				}
			}
		})
	}
}

func TestTheOlderBackendTLSPolicyTakesPrecedence(t *testing.T) {
	t.Parallel()
	const conflicted = "Accepted=False/Conflicted ResolvedRefs=True/ResolvedRefs"
	two := "{" + toAll + ", validation: {hostname: two.com, caCertificateRefs: [{group: '', kind: ConfigMap, name: two}]}}"
	twoWeb := strings.Replace(two, "name: s}]", "name: s, sectionName: web}]", 1)
	one, oneWeb := "{"+toAll+", "+withCA+"}", "{"+toWeb+", "+withCA+"}"
	for _, test := range []struct{ name, policies, want, web, api string }{
		{"by age", policyOf("a", young, two) + policyOf("b", old, one), "BackendTLSPolicy/a gw:" + conflicted + " BackendTLSPolicy/b gw:" + policyOK, "s.com", "s.com"},
		{"by name", policyOf("a", old, two) + policyOf("b", old, one), "BackendTLSPolicy/a gw:" + policyOK + " BackendTLSPolicy/b gw:" + conflicted, "two.com", "two.com"},
		{"a port's goes before the Service's, which is no conflict", policyOf("a", old, one) + policyOf("b", young, twoWeb),
			"BackendTLSPolicy/a gw:" + policyOK + " BackendTLSPolicy/b gw:" + policyOK, "two.com", "s.com"},
		{"two of one port", policyOf("a", young, oneWeb) + policyOf("b", old, twoWeb),
			"BackendTLSPolicy/a gw:" + conflicted + " BackendTLSPolicy/b gw:" + policyOK, "two.com", "plain"},
		{"one that is not valid takes precedence too", policyOf("a", old, "{"+toAll+", validation: {hostname: s.com}}") + policyOf("b", young, two),
			"BackendTLSPolicy/a gw:Accepted=False/Invalid ResolvedRefs=True/ResolvedRefs BackendTLSPolicy/b gw:" + conflicted, "refused", "refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, policed()+test.policies)
			if got := showReported(g); got != test.want {
				t.Errorf("got  %s\nwant %s\n%s", got, test.want, g.reportedMessages())
			}
			for port, want := range map[int32]string{443: test.web, 444: test.api} {
				if got := showTLS(g.Backend(BackendKey{"Service", "default", "s", port})); !strings.HasPrefix(got, want) {
					t.Errorf("port %d: %s, want %s", port, got, want)
				}
			}
		})
	}
}

func TestABackendTLSPolicyHasAnAncestorForEachGatewayAndAtMost16(t *testing.T) {
	documents, refs := policed(), "{name: gw}"
	for i := range 20 {
		documents += gatewayWith(fmt.Sprintf("gw%02d", i), fmt.Sprintf("listeners: [{name: http, port: %d, protocol: HTTP}]", 100+i))
		refs += fmt.Sprintf(", {name: gw%02d}", i)
	}
	documents = strings.Replace(documents, "parentRefs: [{name: gw}]", "parentRefs: ["+refs+"]", 1)
	g := build(t, documents+"\n"+policyOf("p", old, "{"+toAll+", "+withCA+"}"))
	ancestors := g.Reported[0].Ancestors
	if len(ancestors) != 16 || ancestors[0].Ref.Name != "gw" || ancestors[15].Ref.Name != "gw14" {
		t.Errorf("%d ancestors", len(ancestors))
	}
	for _, ancestor := range ancestors {
		for _, c := range ancestor.Conditions {
			if c.ObservedGeneration != 4 {
				t.Errorf("%+v", c)
			}
		}
	}
}

func TestAPolicyDecidesWhetherARouteMayUseAPortOfTLS(t *testing.T) {
	snapshot := read(t, policed())
	builder := NewBuilder(Options{})
	check := func(when, want string, tls int) {
		t.Helper()
		route := builder.Build(snapshot).Routes[0]
		if got := show(route.Parents[0].Conditions); got != want || len(route.TLSBackends) != tls {
			t.Errorf("%s: %s, %v", when, got, route.TLSBackends)
		}
	}
	check("without a policy", "Accepted=True/Accepted ResolvedRefs=False/UnsupportedProtocol", 0)
	policies := read(t, policyOf("p", old, "{"+toAll+", "+withCA+"}")).Policies
	snapshot.Policies = policies
	check("with one", routeOK, 2)
	snapshot.Policies = cluster.Snapshot{}.Policies
	check("without it again", "Accepted=True/Accepted ResolvedRefs=False/UnsupportedProtocol", 0)
}

func TestAConfigMapIsFollowed(t *testing.T) {
	snapshot := read(t, policed()+policyOf("p", old, "{"+toAll+", "+withCA+"}"))
	builder := NewBuilder(Options{})
	first := builder.Build(snapshot)
	key := BackendKey{"Service", "default", "s", 443}
	route := first.Routes[0]

	snapshot.ConfigMaps = snapshot.ConfigMaps.Without("default", "ca")
	without := builder.Build(snapshot)
	if got := showTLS(without.Backend(key)); got != "refused" || without.Routes[0] != route {
		t.Error(got)
	}
	snapshot.ConfigMaps = snapshot.ConfigMaps.With(read(t, configMapYAML("default", "ca", twoAuthorities()[1])).ConfigMaps.All()[0])
	again := builder.Build(snapshot)
	if got := again.Backend(key).TLS.Authority.PEM; got != twoAuthorities()[1] {
		t.Error(got)
	}
	if got := showReported(again); got != "BackendTLSPolicy/p gw:"+policyOK {
		t.Error(got)
	}
	if showTLS(first.Backend(key)) != "s.com by ConfigMap default/ca" {
		t.Error("an earlier Graph changed")
	}
}
