package behaviour

// Field reports, section I: certificates.

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// expired is a pair whose time is over.
func expired(name string) (chain, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		panic(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}))
}

// badSecrets are Secrets of which nothing can be served, by what is wrong with them.
func badSecrets() map[string]string {
	good, goodKey := pair("good.ex.com")
	_, otherKey := pair("other.ex.com")
	weakCertificate, weakKey := weak()
	_, expiredKey := expired("bad.ex.com")
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	rsaKey := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(large)}))
	relabelled := strings.ReplaceAll(goodKey, "PRIVATE KEY", "CERTIFICATE")
	encrypted := strings.Replace(rsaKey, "-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00000000000000000000000000000000\n\n", 1)
	return map[string]string{
		"mismatch":                    secret("bad", good, otherKey),
		"mismatch of kinds":           secret("bad", good, rsaKey),
		"swapped":                     secret("bad", goodKey, good),
		"keys only":                   secret("bad", goodKey, goodKey),
		"a key called a certificate":  secret("bad", relabelled, goodKey),
		"garbage":                     secret("bad", "garbage", "garbage"),
		"empty":                       secret("bad", "", ""),
		"blank":                       secret("bad", " \n", "\n"),
		"no key":                      secret("bad", good, ""),
		"a cut certificate":           secret("bad", good[:len(good)/2], goodKey),
		"a cut key":                   secret("bad", good, goodKey[:len(goodKey)-40]),
		"a broken key":                secret("bad", good, strings.Replace(goodKey, "M", "!", 3)),
		"parameters only":             secret("bad", good, "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"),
		"an encrypted key":            secret("bad", good, encrypted),
		"1024 bits":                   secret("bad", weakCertificate, weakKey),
		"another's expired key":       secret("bad", good, expiredKey),
		"another type":                strings.Replace(secret("bad", good, goodKey), "type: kubernetes.io/tls", "type: Opaque", 1),
		"no base64":                   "---\napiVersion: v1\nkind: Secret\nmetadata: {name: bad}\ntype: kubernetes.io/tls\ndata: {tls.crt: '%%%', tls.key: '%%%'}\n",
		"a key where no YAML expects": "---\napiVersion: v1\nkind: Secret\nmetadata: {name: bad}\ntype: kubernetes.io/tls\ndata:\n  tls.crt: " + goodKey + "\n",
		"a field that is none":        "---\napiVersion: v1\nkind: Secret\nmetadata: {name: bad}\ntype: kubernetes.io/tls\nstringdata: {tls.crt: " + yamlText(good) + ", tls.key: " + yamlText(goodKey) + "}\n",
	}
}

const badListeners = `
  - {name: good, port: 443, protocol: HTTPS, hostname: good.ex.com, tls: {certificateRefs: [{name: good}]}}
  - {name: bad, port: 443, protocol: HTTPS, hostname: bad.ex.com, tls: {certificateRefs: [{name: bad}]}}
  - {name: half, port: 443, protocol: HTTPS, hostname: half.ex.com, tls: {certificateRefs: [{name: bad}, {name: good}]}}
  - {name: alone, port: 444, protocol: HTTPS, tls: {certificateRefs: [{name: bad}]}}
  - {name: http, port: 80, protocol: HTTP}
`

// TestB70B73ABadSecretFailsAloneAndNoKeyIsSaid: of each kind of bad Secret, its listener says so and the others are served.
// With the log as talkative as it can be, no key is in it, in a status, or in any file that is not for keys alone.
func TestB70B73ABadSecretFailsAloneAndNoKeyIsSaid(t *testing.T) {
	t.Parallel()
	manifests := listeners(badListeners) + certificate("good", "good.ex.com") + route("all", "rules:\n- backendRefs: [{name: one, port: 80}]")
	w := Run(t, manifests, pods("one", 1), problems(), func(w *World) { w.limpet.options.level = slog.LevelDebug })
	for name, bad := range badSecrets() {
		w.write(t, "bad.yaml", bad)
		w.Sync(t)
		if mathrand.IntN(5) == 0 {
			name += ", after a start"
			w.restart(t)
		}
		for host, shown := range map[string]string{"good.ex.com": "good.ex.com", "half.ex.com": "good.ex.com"} {
			if a := w.ask(t, request{host: host, target: "/", tls: true}); a.outcome() != "one" || a.shown() != shown {
				t.Errorf("%s: %s is answered with %s and the certificate of %q", name, host, a.outcome(), a.shown())
			}
		}
		if got := w.ask(t, get("good.ex.com/")).outcome(); got != "one" {
			t.Errorf("%s: plain HTTP: %s", name, got)
		}
		for _, r := range []request{{host: "bad.ex.com", target: "/", tls: true}, {host: "x", target: "/", tls: true, port: 444}} {
			if a := w.ask(t, r); a.err == nil {
				t.Errorf("%s: what has no certificate is served: %s with %q", name, a.outcome(), a.shown())
			}
		}
		for listener, want := range map[string]string{"good": "True", "bad": "False", "half": "False", "alone": "False"} {
			if got := w.listenerCondition(t, "gw", listener, "ResolvedRefs"); string(got.Status) != want {
				t.Errorf("%s: ResolvedRefs of %s is %s: %s", name, listener, got.Status, got.Message)
			}
		}
		for _, text := range keyLines(bad) {
			w.noKey(t, text, name)
		}
	}
	for _, word := range []string{"PRIVATE KEY"} {
		w.noKey(t, word, "all")
	}
}

// keyLines are the lines of private keys in a text, long enough not to be there by chance.
func keyLines(text string) []string {
	var lines []string
	inside := false
	for line := range strings.SplitSeq(strings.ReplaceAll(text, `\n`, "\n"), "\n") {
		line = strings.Trim(line, "\" ")
		switch {
		case strings.Contains(line, "-----BEGIN") && strings.Contains(line, "PRIVATE KEY"):
			inside = true
		case strings.Contains(line, "-----END"):
			inside = false
		case inside && len(line) > 30:
			lines = append(lines, line)
		}
	}
	return lines
}

// noKey looks for a text in what Limpet and HAProxy say: logs, statuses, and files that others than their owner may read.
func (w *World) noKey(t testing.TB, text, what string) {
	t.Helper()
	said := func(where, said string) {
		if strings.Contains(said, text) {
			t.Errorf("%s: %s holds %.40q", what, where, text)
		}
	}
	said("Limpet's log", w.limpet.log.tail(1<<30))
	for _, update := range w.limpet.status {
		state, err := yaml.Marshal(update.Status.Value())
		if err != nil {
			t.Fatal(err)
		}
		said("the status of "+update.Object.String(), string(state))
	}
	_ = filepath.WalkDir(w.limpet.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil //nolint:nilerr // generations come and go
		}
		info, err := entry.Info()
		if err != nil || filepath.Ext(path) == ".pem" && info.Mode().Perm()&0o077 == 0 {
			return nil //nolint:nilerr // generations come and go
		}
		content, _ := os.ReadFile(path)
		said(path, string(content))
		return nil
	})
}

// TestB72SecretsServicesAndGrantsInAnyOrder: what is in another namespace is used while it and its grant are there, and is
// withdrawn with either. Without a grant, nothing tells whether it is there.
func TestB72SecretsServicesAndGrantsInAnyOrder(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway, pods("near", 1))
	chain, key := pair("x.example")
	grant := func(name, kind, to string) string {
		return "---\napiVersion: gateway.networking.k8s.io/v1beta1\nkind: ReferenceGrant\nmetadata: {name: " + name + ", namespace: far}\n" +
			"spec: {from: [{group: gateway.networking.k8s.io, kind: " + kind + ", namespace: default}], to: [" + to + "]}\n"
	}
	objects := []string{
		strings.Replace(secret("cert", chain, key), "metadata: {", "metadata: {namespace: far, ", 1),
		grant("gateways", "Gateway", "{group: '', kind: Secret, name: cert}"),
		fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: far, namespace: far}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: far, namespace: far, labels: {kubernetes.io/service-name: far}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [%s]}]
`, w.pod("near-1").at.Addr()),
		grant("routes", "HTTPRoute", "{group: '', kind: Service}"),
	}
	const secretAt, secretGrant, serviceAt, serviceGrant = 0, 1, 2, 3
	base := listeners(`
  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert, namespace: far}]}}
  - {name: http, port: 80, protocol: HTTP}
`) + route("all", "rules:\n- backendRefs: [{name: far, namespace: far, port: 80}]")
	hidden := map[string]string{}
	there := map[int]bool{}
	check := func(what string) {
		t.Helper()
		manifests := base
		for i, object := range objects {
			if there[i] {
				manifests += object
			}
		}
		w.Apply(t, manifests)
		backend := "500"
		if there[serviceAt] && there[serviceGrant] {
			backend = "near"
		}
		if got := w.ask(t, get("x.example/")).outcome(); got != backend {
			t.Errorf("%s: %s, want %s", what, got, backend)
		}
		usable := there[secretAt] && there[secretGrant]
		switch a := w.ask(t, request{host: "x.example", target: "/", tls: true}); {
		case usable && a.outcome() != backend:
			t.Errorf("%s: over TLS %s, want %s", what, a.outcome(), backend)
		case !usable && a.err == nil:
			t.Errorf("%s: over TLS %s, want no handshake", what, a.outcome())
		}
		listener := w.listenerCondition(t, "gw", "https", "ResolvedRefs")
		of := w.condition(t, "HTTPRoute default/all", "ResolvedRefs")
		for name, c := range map[string]struct {
			granted, there          bool
			reason, message, absent string
		}{
			"listener": {there[secretGrant], there[secretAt], listener.Reason, listener.Message, "InvalidCertificateRef"},
			"route":    {there[serviceGrant], there[serviceAt], of.Reason, of.Message, "BackendNotFound"},
		} {
			want := "ResolvedRefs"
			switch {
			case !c.granted:
				want = "RefNotPermitted"
				if known := hidden[name]; known != "" && known != c.message {
					t.Errorf("%s: without a grant the %s says %q, and elsewhere %q", what, name, c.message, known)
				}
				hidden[name] = c.message
			case !c.there:
				want = c.absent
			}
			if c.reason != want {
				t.Errorf("%s: ResolvedRefs of the %s has the reason %s (%s), want %s", what, name, c.reason, c.message, want)
			}
		}
	}
	check("nothing there")
	for range scaled(1, 6) {
		order := mathrand.Perm(len(objects))
		for n, i := range order {
			there[i] = true
			check(fmt.Sprintf("%v of %v there", order[:n+1], order))
		}
		for _, i := range order {
			there[i] = false
			check(fmt.Sprintf("all but %d there", i))
			there[i] = true
		}
		check("all there again")
		for n, i := range order {
			there[i] = false
			check(fmt.Sprintf("%v gone of %v", order[:n+1], order))
		}
	}
}

// TestB74AnExpiredCertificateIsServedWithAWarning, and a new one takes its place.
func TestB74AnExpiredCertificateIsServedWithAWarning(t *testing.T) {
	t.Parallel()
	chain, key := expired("x.example")
	manifests := listeners(`
  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}
`) + route("all", "rules:\n- backendRefs: [{name: one, port: 80}]")
	w := Run(t, manifests+secret("cert", chain, key), pods("one", 1))
	r := request{host: "x.example", target: "/", tls: true}
	if a := w.ask(t, r); a.outcome() != "one" || a.shown() != "x.example" {
		t.Errorf("%s with the certificate of %q", a.outcome(), a.shown())
	}
	if got := w.listenerCondition(t, "gw", "https", "Programmed"); got.Status != "True" || !strings.Contains(got.Message, "Secret default/cert expired on 20") {
		t.Errorf("Programmed is %s: %s", got.Status, got.Message)
	}
	if warnings := strings.Count(w.limpet.log.tail(1<<20), "certificate has expired"); warnings != 1 {
		t.Errorf("%d warnings in the log", warnings)
	}
	w.restart(t)
	if got := w.ask(t, r).outcome(); got != "one" {
		t.Errorf("after a start: %s", got)
	}
	w.Apply(t, manifests+certificate("cert", "x.example"))
	if got := w.ask(t, r).outcome(); got != "one" {
		t.Errorf("renewed: %s", got)
	}
	if got := w.listenerCondition(t, "gw", "https", "Programmed"); got.Status != "True" || strings.Contains(got.Message, "expired") {
		t.Errorf("renewed: Programmed is %s: %s", got.Status, got.Message)
	}
}
