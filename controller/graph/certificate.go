package graph

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// certificates remembers what each Secret held: parsing is the costliest thing that a Gateway needs.
type certificates map[*corev1.Secret]certificateResult

type certificateResult struct {
	certificate *Certificate
	err         error
}

// read returns the certificate that a Secret holds.
func (c certificates) read(secret *corev1.Secret) (*Certificate, error) {
	result, known := c[secret]
	if !known {
		result.certificate, result.err = newCertificate(secret)
		c[secret] = result
	}
	return result.certificate, result.err
}

// keepOnly forgets the Secrets that nothing refers to any more.
func (c certificates) keepOnly(used map[types.NamespacedName]*corev1.Secret) {
	for secret := range c {
		if used[nameOf(secret)] != secret {
			delete(c, secret)
		}
	}
}

// newCertificate checks that HAProxy can use what a Secret holds. Expired certificates are usable: to take a listener off
// at midnight hurts more than to keep serving it, and the graph has no clock; NotAfter lets others warn.
func newCertificate(secret *corev1.Secret) (*Certificate, error) {
	if secret.Type != corev1.SecretTypeTLS {
		return nil, fmt.Errorf("has type %q: type %s is needed", secret.Type, corev1.SecretTypeTLS)
	}
	chain, leaf, err := readChain(secretValue(secret, corev1.TLSCertKey))
	if err != nil {
		return nil, err
	}
	key, err := readKey(secretValue(secret, corev1.TLSPrivateKeyKey))
	if err != nil {
		return nil, err
	}
	if err := checkPair(chain, key); err != nil {
		return nil, err
	}
	return &Certificate{
		Secret: nameOf(secret), Chain: string(chain), Key: string(key), NotAfter: leaf.NotAfter,
		Fingerprint: sha256.Sum256(slices.Concat(chain, key)),
	}, nil
}

// secretValue is what an API server would have stored: stringData wins over data.
func secretValue(secret *corev1.Secret, name string) []byte {
	if value, found := secret.StringData[name]; found {
		return []byte(value)
	}
	return secret.Data[name]
}

// readChain returns the certificates alone, one PEM block after the other, and the first one.
func readChain(text []byte) ([]byte, *x509.Certificate, error) {
	if len(text) == 0 {
		return nil, nil, errors.New("has no value for tls.crt")
	}
	var chain []byte
	var leaf *x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, nil, fmt.Errorf("tls.crt holds a certificate that cannot be read: %w", err)
		}
		if err := checkStrength(certificate); err != nil {
			return nil, nil, fmt.Errorf("tls.crt holds a certificate that OpenSSL refuses: %w", err)
		}
		if leaf == nil {
			leaf = certificate
		}
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
	}
	if leaf == nil {
		return nil, nil, errors.New("tls.crt holds no certificate in PEM form")
	}
	return chain, leaf, nil
}

// unusableError is about a certificate that can be read, and that OpenSSL would not take.
type unusableError struct{ message string }

func (e *unusableError) Error() string { return e.message }

// checkStrength is what OpenSSL demands at its default security level: one weak certificate would keep HAProxy from
// loading its configuration.
func checkStrength(certificate *x509.Certificate) error {
	switch key := certificate.PublicKey.(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() < 2048 {
			return &unusableError{fmt.Sprintf("its RSA key has %d bits, at least 2048 are needed", key.N.BitLen())}
		}
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P224() {
			return &unusableError{"its key is on the curve P-224, which TLS does not use"}
		}
	case ed25519.PublicKey:
	default:
		return &unusableError{"its key is neither RSA, ECDSA nor Ed25519"}
	}
	return checkSignature(certificate)
}

func checkSignature(certificate *x509.Certificate) error {
	// Nobody verifies the signature of a certificate that signed itself.
	if string(certificate.RawIssuer) == string(certificate.RawSubject) {
		return nil
	}
	switch certificate.SignatureAlgorithm {
	case x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1, x509.ECDSAWithSHA1:
		return &unusableError{fmt.Sprintf("it is signed with %s", certificate.SignatureAlgorithm)}
	}
	return nil
}

// readKey returns the private key alone. Its errors say nothing that was read.
func readKey(text []byte) ([]byte, error) {
	if len(text) == 0 {
		return nil, errors.New("has no value for tls.key")
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case strings.HasPrefix(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "":
			return nil, errors.New("tls.key is encrypted: store it without a passphrase")
		case block.Type == "PRIVATE KEY" || block.Type == "RSA PRIVATE KEY" || block.Type == "EC PRIVATE KEY":
			// Others, such as EC PARAMETERS, only repeat what the key says.
			return pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}), nil
		}
	}
	return nil, errors.New("tls.key holds no private key in PEM form")
}

// checkPair replaces the library's errors, which quote pieces of the key's encoding.
func checkPair(chain, key []byte) error {
	_, err := tls.X509KeyPair(chain, key)
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "does not match"):
		return errors.New("tls.key does not belong to the first certificate of tls.crt")
	default:
		return errors.New("tls.key holds a private key that cannot be read")
	}
}
