package originator

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// config is the TLS of settings.
func config(text []byte) (*tls.Config, error) {
	var s Settings
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, errors.New("the settings cannot be read") // the error would quote them
	}
	var roots *x509.CertPool // nil stands for the system's
	if s.CA != "" {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(s.CA)) {
			return nil, errors.New("the settings have no CA certificate")
		}
	}
	c := &tls.Config{
		ServerName: s.ServerName, NextProtos: s.Protocols, MinVersion: tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies: Go only knows ServerName
		VerifyConnection:   func(state tls.ConnectionState) error { return s.verify(roots, state) },
	}
	if s.Certificate != "" {
		pair, err := tls.X509KeyPair([]byte(s.Certificate), []byte(s.Certificate))
		if err != nil {
			return nil, errors.New("the settings' client certificate and key do not fit")
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// verify accepts a certificate or says why not.
func (s Settings) verify(roots *x509.CertPool, state tls.ConnectionState) error {
	if len(s.Protocols) > 0 && !slices.Contains(s.Protocols, state.NegotiatedProtocol) {
		return fmt.Errorf("it speaks %q and not one of %q", state.NegotiatedProtocol, s.Protocols)
	}
	leaf := state.PeerCertificates[0]
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, certificate := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(certificate)
	}
	if _, err := leaf.Verify(options); err != nil {
		return err
	}
	// BackendTLSPolicy: with subjectAltNames, the hostname is only sent and never authenticates.
	if len(s.DNSNames)+len(s.URIs) == 0 {
		return leaf.VerifyHostname(s.ServerName)
	}
	for _, uri := range leaf.URIs {
		if slices.Contains(s.URIs, uri.String()) {
			return nil
		}
	}
	if slices.ContainsFunc(s.DNSNames, func(name string) bool { return hasName(leaf, name) }) {
		return nil
	}
	return fmt.Errorf("its certificate has none of the names %q and URIs %q", s.DNSNames, s.URIs)
}

// hasName tells whether a certificate has a DNS name. Wildcards stand for one label, on either side.
func hasName(leaf *x509.Certificate, name string) bool {
	suffix, wildcard := strings.CutPrefix(name, "*.")
	if !wildcard {
		return leaf.VerifyHostname(name) == nil
	}
	return slices.ContainsFunc(leaf.DNSNames, func(has string) bool {
		label, rest, found := strings.Cut(has, ".")
		return found && label != "" && strings.EqualFold(rest, suffix)
	})
}
