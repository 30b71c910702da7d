package behaviour

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"time"
)

// pair is a certificate for these names, signed by itself, and its key, both PEM.
func pair(names ...string) (chain, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		panic(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

// certificate is a Secret with a fresh certificate.
func certificate(name string, names ...string) string {
	chain, key := pair(names...)
	return secret(name, chain, key)
}

// secret is a Secret of type kubernetes.io/tls.
func secret(name, chain, key string) string {
	return `---
apiVersion: v1
kind: Secret
metadata: {name: ` + name + `}
type: kubernetes.io/tls
stringData:
  tls.crt: ` + yamlText(chain) + `
  tls.key: ` + yamlText(key) + "\n"
}

// shown is the name in the certificate that came.
func (a answer) shown() string {
	if a.tls == nil || len(a.tls.PeerCertificates) == 0 {
		return ""
	}
	return strings.Join(a.tls.PeerCertificates[0].DNSNames, " ")
}

// weak is a pair that OpenSSL refuses.
func weak() (chain, key string) {
	private, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "weak"}, NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})),
		string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)}))
}
