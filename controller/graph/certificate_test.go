package graph

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pair is a self-signed certificate and its key in PEM.
type pair struct{ crt, key string }

func newPair(t testing.TB, key crypto.Signer) pair {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a.example.com"}, DNSNames: []string{"a.example.com"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{encode("CERTIFICATE", der), encode("PRIVATE KEY", pkcs8)}
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func ecdsaKey(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func rsaKey(t testing.TB, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// goodPair is made once; it expired in 2020, which does not matter.
var goodPair = sync.OnceValue(func() pair {
	var t testing.T
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return newPair(&t, key)
})

func secret(crt, key string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "cert", Namespace: "default"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"tls.crt": []byte(crt), "tls.key": []byte(key)},
	}
}

// secretYAML is a manifest of a good Secret.
func secretYAML(namespace, name string) string {
	good := goodPair()
	return fmt.Sprintf("\n---\nkind: Secret\nmetadata: {name: %s, namespace: %s}\ntype: kubernetes.io/tls\ndata: {tls.crt: %s, tls.key: %s}\n",
		name, namespace, base64.StdEncoding.EncodeToString([]byte(good.crt)), base64.StdEncoding.EncodeToString([]byte(good.key)))
}

func TestACertificateIsNormalised(t *testing.T) {
	t.Parallel()
	good := goodPair()
	ec := ecdsaKey(t, elliptic.P384())
	sec1, err := x509.MarshalECPrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	ecPair := newPair(t, ec)
	rsa2048 := rsaKey(t, 2048)
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parameters := encode("EC PARAMETERS", []byte{6, 5, 43, 129, 4, 0, 34})
	for _, test := range []struct{ name, crt, key, wantCrt, wantKey string }{
		{"a plain pair stays as it is", good.crt, good.key, good.crt, good.key},
		{"CRLF becomes LF", strings.ReplaceAll(good.crt, "\n", "\r\n"), strings.ReplaceAll(good.key, "\n", "\r\n"), good.crt, good.key},
		{"comments and blank lines go", "# subject: a\n\n" + good.crt + "\n\nissuer: b\n", "Bag Attributes\n" + good.key + "\n\n",
			good.crt, good.key},
		{"a chain stays in its order", good.crt + "\n" + ecPair.crt, good.key, good.crt + ecPair.crt, good.key},
		{"EC PARAMETERS go", ecPair.crt, parameters + encode("EC PRIVATE KEY", sec1), ecPair.crt, encode("EC PRIVATE KEY", sec1)},
		{"a key beside the certificates goes", good.key + good.crt, good.key, good.crt, good.key},
		{"RSA with 2048 bits is taken", newPair(t, rsa2048).crt, encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsa2048)),
			"", encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsa2048))},
		{"Ed25519 is taken", newPair(t, edKey).crt, newPair(t, edKey).key, newPair(t, edKey).crt, newPair(t, edKey).key},
	} {
		t.Run(test.name, func(t *testing.T) {
			certificate, err := newCertificate(secret(test.crt, test.key))
			if err != nil {
				t.Fatal(err)
			}
			if test.wantCrt != "" && certificate.Chain != test.wantCrt || certificate.Key != test.wantKey {
				t.Errorf("got\n%s\n%s", certificate.Chain, certificate.Key)
			}
			if certificate.NotAfter.Year() != 2020 {
				t.Error(certificate.NotAfter)
			}
		})
	}
}

func TestABadCertificateIsRefusedWithoutShowingItsKey(t *testing.T) {
	t.Parallel()
	good, other := goodPair(), newPair(t, ecdsaKey(t, elliptic.P256()))
	weak := newPair(t, rsaKey(t, 1024))
	p224 := newPair(t, ecdsaKey(t, elliptic.P224()))
	block, _ := pem.Decode([]byte(good.key))
	broken := encode("PRIVATE KEY", append([]byte{0x30, 0x77}, block.Bytes[2:40]...))
	encrypted := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: block.Bytes,
		Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-128-CBC,00"}}))
	for _, test := range []struct{ name, crt, key, want string }{
		{"no certificate", "", good.key, "no value for tls.crt"},
		{"no key", good.crt, "", "no value for tls.key"},
		{"garbage for a certificate", "hello", good.key, "tls.crt holds no certificate"},
		{"garbage for a key", good.crt, "hello", "tls.key holds no private key"},
		{"a certificate that is broken inside", encode("CERTIFICATE", []byte("hello")), good.key, "cannot be read"},
		{"a key that is broken inside", good.crt, broken, "cannot be read"},
		{"another certificate's key", good.crt, other.key, "does not belong to the first certificate"},
		{"a key of another type", good.crt, newPair(t, rsaKey(t, 2048)).key, "does not belong to the first certificate"},
		{"a chain in the wrong order", other.crt + good.crt, good.key, "does not belong to the first certificate"},
		{"an encrypted key", good.crt, encode("ENCRYPTED PRIVATE KEY", block.Bytes), "encrypted"},
		{"an encrypted key of the old kind", good.crt, encrypted, "encrypted"},
		{"certificate and key exchanged", good.key, good.crt, "tls.crt holds no certificate"},
		{"RSA with 1024 bits", weak.crt, weak.key, "1024 bits"},
		{"the curve P-224", p224.crt, p224.key, "P-224"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := newCertificate(secret(test.crt, test.key))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			for _, line := range strings.Split(good.key+other.key+weak.key+broken, "\n") {
				if len(line) > 0 && !strings.HasPrefix(line, "-----") && strings.Contains(err.Error(), line) {
					t.Errorf("the message holds a piece of the key: %v", err)
				}
			}
		})
	}
}

func TestASecretNeedsTheTypeForTLS(t *testing.T) {
	opaque := secret(goodPair().crt, goodPair().key)
	opaque.Type = corev1.SecretTypeOpaque
	if _, err := newCertificate(opaque); err == nil || !strings.Contains(err.Error(), "kubernetes.io/tls") {
		t.Error(err)
	}
}

func TestStringDataOfASecretWinsOverData(t *testing.T) {
	s := secret("x", goodPair().key)
	s.StringData = map[string]string{"tls.crt": goodPair().crt}
	if _, err := newCertificate(s); err != nil {
		t.Error(err)
	}
}

func TestSHA1IsRefusedButInWhatSignedItself(t *testing.T) {
	sha1 := &x509.Certificate{PublicKey: ed25519.PublicKey{}, SignatureAlgorithm: x509.SHA1WithRSA, RawIssuer: []byte("a"), RawSubject: []byte("b")}
	if checkStrength(sha1) == nil {
		t.Error("taken")
	}
	sha1.RawSubject = sha1.RawIssuer
	if err := checkStrength(sha1); err != nil {
		t.Error(err)
	}
}

func TestTheFingerprintTellsPairsApart(t *testing.T) {
	a, _ := newCertificate(secret(goodPair().crt, goodPair().key))
	other := newPair(t, ecdsaKey(t, elliptic.P256()))
	b, _ := newCertificate(secret(other.crt, other.key))
	if bytes.Equal(a.Fingerprint[:], b.Fingerprint[:]) {
		t.Error("equal")
	}
}

const httpsListener = "{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [%s]}}"

const secretGrant = `
---
kind: ReferenceGrant
metadata: {name: g, namespace: certs}
spec:
  from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: default}]
  to: [{group: '', kind: Secret}]
`

func TestCertificatesOfAListener(t *testing.T) {
	t.Parallel()
	bad := "\n---\nkind: Secret\nmetadata: {name: bad, namespace: default}\ntype: kubernetes.io/tls\nstringData: {tls.crt: x, tls.key: y}\n"
	for _, test := range []struct{ name, refs, documents, want, served string }{
		{"one is served", "{name: cert}", secretYAML("default", "cert"), listenerOK, "default/cert"},
		{"several are served", "{name: cert}, {name: two}", secretYAML("default", "cert") + secretYAML("default", "two"), listenerOK,
			"default/cert default/two"},
		{"one twice is served once", "{name: cert}, {name: cert, kind: Secret, group: ''}", secretYAML("default", "cert"), listenerOK, "default/cert"},
		{"of a good and a bad one the good one is served", "{name: bad}, {name: cert}", bad + secretYAML("default", "cert"),
			"Accepted=True/Accepted Conflicted=False/NoConflicts ResolvedRefs=False/InvalidCertificateRef", "default/cert"},
		{"one from another namespace is served by a grant", "{name: cert, namespace: certs}", secretYAML("certs", "cert") + secretGrant,
			listenerOK, "certs/cert"},
		{"without grant it is not", "{name: cert, namespace: certs}", secretYAML("certs", "cert"),
			"Accepted=True/Accepted Conflicted=False/NoConflicts ResolvedRefs=False/RefNotPermitted Programmed=False/Invalid", ""},
		{"with a grant for another Secret it is not", "{name: cert, namespace: certs}",
			secretYAML("certs", "cert") + strings.Replace(secretGrant, "kind: Secret}", "kind: Secret, name: two}", 1),
			"Accepted=True/Accepted Conflicted=False/NoConflicts ResolvedRefs=False/RefNotPermitted Programmed=False/Invalid", ""},
		{"with a grant for routes it is not", "{name: cert, namespace: certs}",
			secretYAML("certs", "cert") + strings.Replace(secretGrant, "kind: Gateway", "kind: HTTPRoute", 1),
			"Accepted=True/Accepted Conflicted=False/NoConflicts ResolvedRefs=False/RefNotPermitted Programmed=False/Invalid", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			node := build(t, withListeners(fmt.Sprintf(httpsListener, test.refs))+test.documents).Gateways[0].Listeners[0]
			expect(t, node.Conditions, test.want)
			if got := names(node.Certificates, func(c *Certificate) string { return c.Secret.String() }); got != test.served {
				t.Errorf("served %q, want %q", got, test.served)
			}
			if !node.Protocol.TLS() || node.Valid != (test.served != "") {
				t.Errorf("TLS %v, valid %v", node.Protocol.TLS(), node.Valid)
			}
		})
	}
}

func TestTheMessageNamesTheBadCertificateAndNotTheGoodOne(t *testing.T) {
	node := build(t, withListeners(fmt.Sprintf(httpsListener, "{name: cert}, {name: gone}"))+secretYAML("default", "cert")).Gateways[0].Listeners[0]
	if text := allMessages(node.Conditions); !strings.Contains(text, "certificateRefs[1]: Secret default/gone") || strings.Contains(text, "default/cert ") {
		t.Error(text)
	}
}
