package graph

import (
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// newAuthority is a CA's certificate that signed itself, in PEM.
func newAuthority(t testing.TB, name string, edit func(*x509.Certificate)) string {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Unix(0, 0),
		NotAfter: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if edit != nil {
		edit(template)
	}
	key := ecdsaKey(t, elliptic.P256())
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return encode("CERTIFICATE", der)
}

// twoAuthorities are made once.
var twoAuthorities = sync.OnceValue(func() [2]string {
	return [2]string{newAuthority(&testing.T{}, "one", nil), newAuthority(&testing.T{}, "two", nil)}
})

// configMapYAML is a ConfigMap with a value for ca.crt.
func configMapYAML(namespace, name, text string) string {
	return fmt.Sprintf("\n---\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata:\n  ca.crt: |\n    %s\n",
		name, namespace, strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    "))
}

func bundleOf(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "ca", Namespace: "default"}, Data: map[string]string{"ca.crt": text}}
}

func TestABundleIsNormalised(t *testing.T) {
	t.Parallel()
	one, two := twoAuthorities()[0], twoAuthorities()[1]
	other := pair{crt: one, key: goodPair().key}
	for _, test := range []struct{ name, text, want string }{
		{"one stays as it is", one, one},
		{"CRLF becomes LF", strings.ReplaceAll(one, "\n", "\r\n"), one},
		{"several", one + two, one + two},
		{"comments go", "# one\n" + one + "\n\n# two\n" + two + "end", one + two},
		{"a key goes", other.key + other.crt, one},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := readBundle(bundleOf(test.text))
			if err != nil || strings.Join(got, "") != test.want {
				t.Errorf("got %v\n%s", err, got)
			}
		})
	}
}

func TestABadBundleIsRefused(t *testing.T) {
	t.Parallel()
	one := twoAuthorities()[0]
	noSigning := func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature }
	for _, test := range []struct{ name, text, want string }{
		{"nothing", "", "no value for ca.crt"},
		{"garbage", "hello", "no certificate in PEM form"},
		{"a key alone", goodPair().key, "no certificate in PEM form"},
		{"one that is broken inside", one + encode("CERTIFICATE", []byte("hello")), "certificate 2 of ca.crt, one that cannot be read"},
		{"one that is cut off", one + one[:100], "has 2 certificates in ca.crt, and only 1 of them"},
		{"one that is no CA's", goodPair().crt, "basic constraints"},
		{"one that may not sign", newAuthority(t, "x", noSigning), "key usage"},
		{"too much", one + strings.Repeat("#", maxBundle), "more than 1024 KiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if _, err := readBundle(bundleOf(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// authorityWorld is a reader that finds ConfigMap default/ca, default/two, default/bad and certs/ca.
func authorityWorld(remembered *authorities, grants grants) *authorityReader {
	named := func(namespace, name, text string) *corev1.ConfigMap {
		held := bundleOf(text)
		held.Namespace, held.Name = namespace, name
		return held
	}
	return &authorityReader{
		authorities: remembered, grants: grants, used: make(map[types.NamespacedName]*corev1.ConfigMap),
		configMaps: cluster.NewObjects(named("default", "ca", twoAuthorities()[0]), named("default", "two", twoAuthorities()[1]),
			named("default", "bad", "hello"), named("default", "leaf", goodPair().crt), named("certs", "ca", twoAuthorities()[1])),
	}
}

func authorityRef(kind, name, namespace string) gatewayv1.ObjectReference {
	ref := gatewayv1.ObjectReference{Kind: gatewayv1.Kind(kind), Name: gatewayv1.ObjectName(name)}
	if namespace != "" {
		ref.Namespace = (*gatewayv1.Namespace)(&namespace)
	}
	return ref
}

func TestAuthoritiesAreFollowed(t *testing.T) {
	t.Parallel()
	ofGateway := referrer{gatewayv1.GroupName, "Gateway", "default"}
	opened := grants{"certs": {&gatewayv1beta1.ReferenceGrant{Spec: gatewayv1.ReferenceGrantSpec{
		From: []gatewayv1.ReferenceGrantFrom{{Group: gatewayv1.GroupName, Kind: "Gateway", Namespace: "default"}},
		To:   []gatewayv1.ReferenceGrantTo{{Kind: "ConfigMap"}},
	}}}}
	one, two := authorityRef("ConfigMap", "ca", ""), authorityRef("ConfigMap", "two", "")
	foreign := authorityRef("ConfigMap", "ca", "certs")
	group := one
	group.Group = "example.com"
	for _, test := range []struct {
		name   string
		refs   []gatewayv1.ObjectReference
		grants grants
		source string
		wrong  string
	}{
		{"one", []gatewayv1.ObjectReference{one}, nil, "ConfigMap default/ca", ""},
		{"two, in the order of their names", []gatewayv1.ObjectReference{two, one}, nil, "ConfigMap default/ca, ConfigMap default/two", ""},
		{"one twice", []gatewayv1.ObjectReference{one, one}, nil, "ConfigMap default/ca", ""},
		{"one that is missing", []gatewayv1.ObjectReference{authorityRef("ConfigMap", "gone", "")}, nil, "", "InvalidCACertificateRef"},
		{"one that is broken", []gatewayv1.ObjectReference{authorityRef("ConfigMap", "bad", "")}, nil, "", "InvalidCACertificateRef"},
		{"one that is no CA's", []gatewayv1.ObjectReference{authorityRef("ConfigMap", "leaf", "")}, nil, "", "UnusableCertificate"},
		{"one of two", []gatewayv1.ObjectReference{authorityRef("ConfigMap", "bad", ""), one}, nil, "ConfigMap default/ca", "InvalidCACertificateRef"},
		{"another kind", []gatewayv1.ObjectReference{authorityRef("Secret", "ca", "")}, nil, "", "InvalidCACertificateKind"},
		{"another group", []gatewayv1.ObjectReference{group}, nil, "", "InvalidCACertificateKind"},
		{"no grant", []gatewayv1.ObjectReference{foreign}, nil, "", "RefNotPermitted"},
		{"no grant, and nothing there", []gatewayv1.ObjectReference{authorityRef("ConfigMap", "gone", "certs")}, nil, "", "RefNotPermitted"},
		{"a grant", []gatewayv1.ObjectReference{foreign}, opened, "ConfigMap certs/ca", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			authority, wrong := authorityWorld(newAuthorities(), test.grants).read(ofGateway, test.refs)
			source := ""
			if authority != nil {
				source = authority.Source
			}
			if got := names(wrong, func(p problem[authorityReason]) string { return string(p.reason) }); got != test.wrong || source != test.source {
				t.Errorf("got %q from %q, want %q from %q: %v", got, source, test.wrong, test.source, wrong)
			}
		})
	}
}

func TestAnAuthorityHoldsEachCertificateOnceAndKeepsItsPointer(t *testing.T) {
	remembered := newAuthorities()
	reader := authorityWorld(remembered, nil)
	both := reader.authority([]string{"b", "a"}, []string{twoAuthorities()[0], twoAuthorities()[1], twoAuthorities()[0]})
	if strings.Count(both.PEM, "BEGIN CERTIFICATE") != 2 || both.Source != "a, b" {
		t.Errorf("%s of %s", both.PEM, both.Source)
	}
	ofGateway := referrer{gatewayv1.GroupName, "Gateway", "default"}
	refs := []gatewayv1.ObjectReference{authorityRef("ConfigMap", "ca", ""), authorityRef("ConfigMap", "two", "")}
	first, _ := reader.read(ofGateway, refs)
	remembered.keepOnly(reader.used)
	if again, _ := authorityWorld(remembered, nil).read(ofGateway, refs); again != first {
		t.Error("ConfigMaps that were written anew and say the same make another Authority")
	}
	remembered.keepOnly(nil)
	if len(remembered.bundles)+len(remembered.made) != 0 {
		t.Errorf("still remembers %v", remembered)
	}
}
