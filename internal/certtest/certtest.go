// Package certtest makes certificates for tests.
//
// What comes in are the fields that a test cares about, what goes out is PEM. It must never be imported by anything but
// tests.
package certtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"time"
)

// CA is a certificate authority.
type CA struct {
	// PEM is its certificate.
	PEM string

	certificate *x509.Certificate
	key         crypto.Signer
}

// NewCA makes a certificate authority.
func NewCA(name string) *CA {
	template := newTemplate(name)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	key := newKey()
	certificate := sign(template, template, key, key)
	return &CA{PEM: encode("CERTIFICATE", certificate.Raw), certificate: certificate, key: key}
}

// Pair is a certificate with its key.
type Pair struct {
	// PEM is both in one text, Certificate and Key are each.
	PEM, Certificate, Key string
}

// TLS is the pair as Go's TLS takes it.
func (p Pair) TLS() tls.Certificate {
	return must(tls.X509KeyPair([]byte(p.Certificate), []byte(p.Key)))
}

// Issue makes a certificate for a name, with whatever change gives it.
func (ca *CA) Issue(name string, change ...func(*x509.Certificate)) Pair {
	template := newTemplate(name)
	if strings.Contains(name, ".") {
		template.DNSNames = []string{name}
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, c := range change {
		c(template)
	}
	key := newKey()
	certificate := encode("CERTIFICATE", sign(template, ca.certificate, key, ca.key).Raw)
	private := encode("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key)))
	return Pair{PEM: certificate + private, Certificate: certificate, Key: private}
}

// Pool is a pool of these authorities.
func Pool(authorities ...*CA) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, ca := range authorities {
		pool.AddCert(ca.certificate)
	}
	return pool
}

func newTemplate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: must(rand.Int(rand.Reader, big.NewInt(1<<62))), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}

func newKey() crypto.Signer { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

func sign(template, parent *x509.Certificate, key, by crypto.Signer) *x509.Certificate {
	return must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by))))
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
