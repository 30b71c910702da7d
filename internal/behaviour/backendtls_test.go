package behaviour

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

func newAuthority() *authority {
	a := &authority{key: newKey()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: fmt.Sprint("CA ", time.Now().UnixNano())}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err == nil {
		a.certificate, err = x509.ParseCertificate(der)
	}
	if err != nil {
		panic(err)
	}
	return a
}

func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

// pair is a certificate for these names, those with a scheme being URIs, and its key.
func (a *authority) pair(names ...string) (chain, key string) {
	private := newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "server"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	for _, name := range names {
		if uri, err := url.Parse(name); err == nil && uri.Scheme != "" {
			template.URIs = append(template.URIs, uri)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		panic(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

// server is how a pod with a certificate for these names speaks TLS.
func (a *authority) server(names ...string) *tls.Config {
	chain, key := a.pair(names...)
	certificate, err := tls.X509KeyPair([]byte(chain), []byte(key))
	if err != nil {
		panic(err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequestClientCert,
	}
}

// bundle is a ConfigMap with CA certificates.
func bundle(name string, all ...*authority) string {
	text := ""
	for _, a := range all {
		text += a.pem()
	}
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata:\n  ca.crt: " + yamlText(text) + "\n"
}

// backendTLS is a BackendTLSPolicy of the Service of its name.
func backendTLS(service, validation string) string {
	return "---\napiVersion: gateway.networking.k8s.io/v1\nkind: BackendTLSPolicy\nmetadata: {name: " + service +
		"}\nspec: {targetRefs: [{group: '', kind: Service, name: " + service + "}], validation: {" + validation + "}}\n"
}

const trustCA = "caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]"

// routeEach leads the path of its name to each Service.
func routeEach(names ...string) string {
	var rules strings.Builder
	for _, name := range names {
		fmt.Fprintf(&rules, "- matches: [{path: {value: /%s}}]\n  backendRefs: [{name: %s, port: 80}]\n", name, name)
	}
	return route("all", "rules:\n"+rules.String())
}

func TestBackendsProveWhoTheyAre(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(), newAuthority()
	w := Run(t, gateway+bundle("ca", ca)+
		backendTLS("good", "hostname: s.internal, "+trustCA)+
		backendTLS("wrongname", "hostname: s.internal, "+trustCA)+
		backendTLS("wrongca", "hostname: s.internal, "+trustCA)+
		backendTLS("plain", "hostname: s.internal, "+trustCA)+
		backendTLS("noca", "hostname: s.internal, caCertificateRefs: [{group: '', kind: ConfigMap, name: gone}]")+
		backendTLS("system", "hostname: s.internal, wellKnownCACertificates: System")+
		backendTLS("wild", "hostname: a.s.internal, "+trustCA)+
		backendTLS("two", "hostname: s.internal, "+trustCA)+
		routeEach("good", "wrongname", "wrongca", "plain", "noca", "system", "wild", "two"),
		speaking("good", "HTTPS", false, ca.server("s.internal")),
		speaking("wrongname", "", false, ca.server("other.internal")),
		speaking("wrongca", "", false, other.server("s.internal")),
		speaking("plain", "", false, nil),
		speaking("noca", "https", false, ca.server("s.internal")),
		speaking("system", "", false, ca.server("s.internal")),
		speaking("wild", "kubernetes.io/wss", false, ca.server("*.s.internal")),
		speaking("two", "grpc", true, ca.server("s.internal")),
	)
	w.check(t, []row{
		{"a name and a CA that are right", get("a.com/good"), "good"},
		{"another name", get("a.com/wrongname"), "503"},
		{"another CA", get("a.com/wrongca"), "503"},
		{"a pod in plain text", get("a.com/plain"), "503"},
		{"a CA that cannot be had", get("a.com/noca"), "503"},
		{"the system's CAs, of which it is none", get("a.com/system"), "503"},
		{"a wildcard in the certificate", get("a.com/wild"), "wild"},
		{"HTTP/2 over TLS", get("a.com/two"), "two"},
	})
	if seen := w.ok(t, get("a.com/good")).echo; seen.ServerName != "s.internal" || seen.Protocol != "HTTP/1.1" || seen.Host != "a.com" {
		t.Errorf("%+v", seen)
	}
	if seen := w.ok(t, get("a.com/two")).echo; seen.ServerName != "s.internal" || seen.Protocol != "HTTP/2.0" {
		t.Errorf("%+v", seen)
	}
	for _, name := range []string{"plain", "noca", "wrongname", "wrongca", "system"} {
		if count := w.pod(name + "-1").requests.Load(); count != 0 {
			t.Errorf("%s got %d requests", name, count)
		}
	}
}

func TestABackendIsSpokenToAsItsAppProtocolSays(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+routeEach("h2c", "http", "ws", "none"),
		speaking("h2c", "kubernetes.io/h2c", true, nil), speaking("http", "HTTP", false, nil),
		speaking("ws", "kubernetes.io/ws", false, nil), speaking("none", "", false, nil))
	for name, want := range map[string]string{"h2c": "HTTP/2.0", "http": "HTTP/1.1", "ws": "HTTP/1.1", "none": "HTTP/1.1"} {
		if got := w.ok(t, get("a.com/"+name)).echo.Protocol; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestACABundleChangesUnderTraffic(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(), newAuthority()
	manifests := func(trusted ...*authority) string {
		return gateway + bundle("ca", trusted...) + backendTLS("one", "hostname: s.internal, "+trustCA) + routeEach("one")
	}
	w := Run(t, manifests(ca), speaking("one", "https", false, ca.server("s.internal")))
	w.eventually(t, get("a.com/one"), "one")
	w.Apply(t, manifests(other))
	w.eventually(t, get("a.com/one"), "503")
	w.Apply(t, manifests(other, ca))
	w.eventually(t, get("a.com/one"), "one")
	w.Apply(t, gateway+backendTLS("one", "hostname: s.internal, "+trustCA)+routeEach("one"))
	w.eventually(t, get("a.com/one"), "503")
	w.Apply(t, manifests(ca))
	w.eventually(t, get("a.com/one"), "one")
}
