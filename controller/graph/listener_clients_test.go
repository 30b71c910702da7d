package graph

import (
	"fmt"
	"strings"
	"testing"
)

// withClients is a Gateway with HTTPS on 443 and 8443 and HTTP on 80, and a frontend's TLS.
func withClients(frontend string) string {
	return class + gatewayWith("gw", "listeners:\n"+
		"  - {name: a, port: 443, hostname: a.com, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}\n"+
		"  - {name: also, port: 443, hostname: b.com, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}\n"+
		"  - {name: b, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}\n"+
		"  - {name: plain, port: 80, protocol: HTTP}\n  tls: {frontend: "+frontend+"}") + secretYAML("default", "cert") +
		configMapYAML("default", "ca", twoAuthorities()[0]) + configMapYAML("default", "two", twoAuthorities()[1]) +
		configMapYAML("default", "broken", "hello") + configMapYAML("certs", "ca", twoAuthorities()[1]) +
		configMapYAML("default", "leaf", goodPair().crt)
}

// validation demands what the ConfigMaps of those names have signed, or other references as they are.
func validation(refs ...string) string {
	var all []string
	for _, ref := range refs {
		if !strings.HasPrefix(ref, "{") {
			ref = fmt.Sprintf("{group: '', kind: ConfigMap, name: %s}", ref)
		}
		all = append(all, ref)
	}
	return "validation: {caCertificateRefs: [" + strings.Join(all, ", ") + "]}"
}

// demands says what each listener demands of clients, as "a=ConfigMap default/ca".
func demands(listeners []*Listener) string {
	return names(listeners, func(l *Listener) string {
		switch {
		case !l.Valid:
			return l.Name + "=not served"
		case l.Clients == nil:
			return l.Name
		case l.Clients.InsecureFallback:
			return l.Name + "~" + l.Clients.Authority.Source
		}
		return l.Name + "=" + l.Clients.Authority.Source
	})
}

func TestClientsAreAskedForCertificatesByPort(t *testing.T) {
	t.Parallel()
	const ca, two = "=ConfigMap default/ca", "=ConfigMap default/two"
	for _, test := range []struct{ name, frontend, want string }{
		{"nowhere", "{default: {}}", "a also b plain"},
		{"by default on all HTTPS ports", "{default: {" + validation("ca") + "}}", "a" + ca + " also" + ca + " b" + ca + " plain"},
		{"on one port", "{default: {}, perPort: [{port: 443, tls: {" + validation("ca") + "}}]}", "a" + ca + " also" + ca + " b plain"},
		{"on one port by another CA", "{default: {" + validation("ca") + "}, perPort: [{port: 8443, tls: {" + validation("two") + "}}]}",
			"a" + ca + " also" + ca + " b" + two + " plain"},
		{"on all ports but one", "{default: {" + validation("ca") + "}, perPort: [{port: 443, tls: {}}]}", "a also b" + ca + " plain"},
		{"an entry for a port without TLS changes nothing",
			"{default: {}, perPort: [{port: 80, tls: {" + validation("ca") + "}}]}", "a also b plain"},
		{"by several CAs", "{default: {" + validation("two", "ca") + "}, perPort: [{port: 443, tls: {}}]}",
			"a also b" + ca + ", ConfigMap default/two plain"},
		{"as a request only", "{default: {}, perPort: [{port: 8443, tls: {" +
			strings.Replace(validation("ca"), "validation: {", "validation: {mode: AllowInsecureFallback, ", 1) + "}}]}",
			"a also b~ConfigMap default/ca plain"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			node := build(t, withClients(test.frontend)).Gateways[0]
			if got := demands(node.Listeners); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if insecure := strings.Contains(test.want, "~"); strings.Contains(show(node.Conditions), "InsecureFrontendValidationMode=True/ConfigurationChanged") != insecure {
				t.Errorf("conditions: %s", show(node.Conditions))
			}
			for _, listener := range node.Listeners {
				expect(t, listener.Conditions, listenerOK)
			}
		})
	}
}

func TestAPortWhoseClientsCannotBeAskedIsNotServed(t *testing.T) {
	t.Parallel()
	const none = "Accepted=False/NoValidCACertificate Conflicted=False/NoConflicts ResolvedRefs=False/%s Programmed=False/Invalid"
	noCA := func(reason string) string { return fmt.Sprintf(none, reason) }
	for _, test := range []struct {
		name, refs, want string
		messages         []string
	}{
		{"a ConfigMap that does not exist", validation("gone"), noCA("InvalidCACertificateRef"),
			[]string{"spec.tls.frontend.perPort[0].tls.validation.caCertificateRefs[0]: ConfigMap default/gone does not exist"}},
		{"one that holds no certificate", validation("broken"), noCA("InvalidCACertificateRef"), []string{"default/broken has no certificate in PEM form"}},
		{"one whose certificate is no CA's", validation("leaf"), noCA("UnusableCertificate"), []string{"default/leaf", "basic constraints"}},
		{"another kind", validation("{group: '', kind: Secret, name: ca}"), noCA("InvalidCACertificateKind"), []string{`Secret "ca"`}},
		{"a bundle of the cluster", validation("{group: certificates.k8s.io, kind: ClusterTrustBundle, name: ca}"), noCA("InvalidCACertificateKind"),
			[]string{"ClusterTrustBundle"}},
		{"one of another namespace without grant", validation("{group: '', kind: ConfigMap, name: ca, namespace: certs}"), noCA("RefNotPermitted"),
			[]string{`no ReferenceGrant in namespace "certs"`}},
		{"none", validation(), noCA("InvalidCACertificateRef"), []string{"from 1 to 16 entries"}},
		{"an unknown mode", strings.Replace(validation("ca"), "validation: {", "validation: {mode: Sometimes, ", 1),
			"Accepted=False/UnsupportedValue Conflicted=False/NoConflicts ResolvedRefs=True/ResolvedRefs Programmed=False/Invalid", []string{`"Sometimes"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			node := build(t, withClients("{default: {}, perPort: [{port: 443, tls: {"+test.refs+"}}]}")).Gateways[0]
			if got, want := demands(node.Listeners), "a=not served also=not served b plain"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			expect(t, node.Listeners[0].Conditions, strings.TrimSuffix(test.want, ""), test.messages...)
			expect(t, node.Listeners[2].Conditions, listenerOK)
			if !node.Valid || !strings.Contains(show(node.Conditions), "Accepted=True/ListenersNotValid") {
				t.Errorf("valid %v: %s", node.Valid, show(node.Conditions))
			}
		})
	}
}

func TestOneValidCAOfSeveralSuffices(t *testing.T) {
	node := build(t, withClients("{default: {"+validation("gone", "ca")+"}}")).Gateways[0]
	if got, want := demands(node.Listeners[:1]), "a=ConfigMap default/ca"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	expect(t, node.Listeners[0].Conditions,
		"Accepted=True/Accepted Conflicted=False/NoConflicts ResolvedRefs=False/InvalidCACertificateRef", "caCertificateRefs[0]: ConfigMap default/gone")
	expect(t, node.Conditions, "Accepted=True/Accepted ResolvedRefs=False/ListenersNotResolved", `"a", "also", "b"`)
}

func TestAGrantOpensAConfigMapToAGateway(t *testing.T) {
	grant := strings.Replace(secretGrant, "kind: Secret", "kind: ConfigMap", 1)
	node := build(t, withClients("{default: {"+validation("{group: '', kind: ConfigMap, name: ca, namespace: certs}")+"}}")+grant).Gateways[0]
	if got, want := demands(node.Listeners[:1]), "a=ConfigMap certs/ca"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAConfigMapThatChangesIsReadAgain(t *testing.T) {
	documents := withClients("{default: {" + validation("ca") + "}}")
	snapshot := read(t, documents)
	builder := NewBuilder(Options{})
	before := builder.Build(snapshot).Gateways[0]
	changed := copyOf(snapshot.ConfigMaps, "default", "two")
	snapshot.ConfigMaps = snapshot.ConfigMaps.With(changed)
	if builder.Build(snapshot).Gateways[0] != before {
		t.Error("a ConfigMap that nothing refers to makes another Gateway")
	}
	changed = copyOf(snapshot.ConfigMaps, "default", "ca")
	changed.Data["ca.crt"] = twoAuthorities()[1]
	snapshot.ConfigMaps = snapshot.ConfigMaps.With(changed)
	if after := builder.Build(snapshot).Gateways[0]; after.Listeners[0].Clients.Authority.PEM != twoAuthorities()[1] {
		t.Errorf("still trusts\n%s", after.Listeners[0].Clients.Authority.PEM)
	}
	snapshot.ConfigMaps = snapshot.ConfigMaps.Without("default", "ca")
	if after := builder.Build(snapshot).Gateways[0]; after.Listeners[0].Valid {
		t.Error("a listener is served though its CA is gone")
	}
}

func TestTheClientCertificateForBackends(t *testing.T) {
	t.Parallel()
	weak := newPair(t, rsaKey(t, 1024))
	weakSecret := strings.NewReplacer("NAME", "weak", "CRT", strings.ReplaceAll(strings.TrimSpace(weak.crt), "\n", "\n    "),
		"KEY", strings.ReplaceAll(strings.TrimSpace(weak.key), "\n", "\n    ")).Replace("\n---\nkind: Secret\n" +
		"metadata: {name: NAME, namespace: default}\ntype: kubernetes.io/tls\nstringData:\n  tls.crt: |\n    CRT\n  tls.key: |\n    KEY\n")
	bad := "\n---\nkind: Secret\nmetadata: {name: bad, namespace: default}\ntype: kubernetes.io/tls\nstringData: {tls.crt: x, tls.key: y}\n"
	for _, test := range []struct{ name, ref, want, shown string }{
		{"one is shown", "{name: cert}", gatewayOK, "default/cert"},
		{"one of another namespace is shown by a grant", "{name: cert, namespace: certs}", gatewayOK, "certs/cert"},
		{"one that cannot be read is not", "{name: bad}", "Accepted=True/Accepted ResolvedRefs=False/InvalidClientCertificateRef", ""},
		{"one of another kind is not", "{kind: ConfigMap, name: cert}", "Accepted=True/Accepted ResolvedRefs=False/InvalidClientCertificateRef", ""},
		{"one of another group is not", "{group: example.com, name: cert}", "Accepted=True/Accepted ResolvedRefs=False/InvalidClientCertificateRef", ""},
		{"a weak one is not, for a reason of our own", "{name: weak}", "Accepted=True/Accepted ResolvedRefs=False/UnusableCertificate", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			node := build(t, class+gatewayWith("gw", httpListener+"\n  tls: {backend: {clientCertificateRef: "+test.ref+"}}")+
				secretYAML("default", "cert")+secretYAML("certs", "cert")+secretGrant+weakSecret+bad).Gateways[0]
			expect(t, node.Conditions, test.want)
			shown := ""
			if node.ClientCertificate != nil {
				shown = node.ClientCertificate.Secret.String()
			}
			if shown != test.shown || !node.Valid {
				t.Errorf("shown %q, want %q; valid %v", shown, test.shown, node.Valid)
			}
		})
	}
}
