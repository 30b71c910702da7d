package graph

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/conditions"
)

const (
	// caKey is where a ConfigMap has its certificates.
	caKey = "ca.crt"
	// maxBundle is what an API server lets a ConfigMap hold.
	maxBundle = 1 << 20
)

// authorityReason says what is wrong with a reference to CA certificates. The values are the reasons that listeners report;
// other kinds have names of their own.
type authorityReason string

const (
	authorityNotPermitted authorityReason = authorityReason(gatewayv1.ListenerReasonRefNotPermitted)
	authorityKind         authorityReason = authorityReason(gatewayv1.ListenerReasonInvalidCACertificateKind)
	authorityInvalid      authorityReason = authorityReason(gatewayv1.ListenerReasonInvalidCACertificateRef)
	authorityUnusable     authorityReason = conditions.ReasonUnusableCertificate
)

// authorities remembers what each ConfigMap held, and the Authorities that were made of them.
type authorities struct {
	bundles map[*corev1.ConfigMap]bundle
	made    map[string]*Authority
}

// bundle is the certificates of one ConfigMap, each as one PEM block, or why there are none.
type bundle struct {
	certificates []string
	err          error
}

func newAuthorities() *authorities {
	return &authorities{bundles: make(map[*corev1.ConfigMap]bundle), made: make(map[string]*Authority)}
}

// authorityReader follows references to CA certificates.
type authorityReader struct {
	*authorities
	grants     grants
	configMaps cluster.Objects[*corev1.ConfigMap]
	// used are the ConfigMaps that were looked up, nil for one that does not exist.
	used map[types.NamespacedName]*corev1.ConfigMap
}

// read returns the Authority that the valid ones of several references make together, nil if none is valid, and what is
// wrong with the others. Messages begin with the reference's index, as "[0]: ".
func (r *authorityReader) read(from referrer, refs []gatewayv1.ObjectReference) (*Authority, problems[authorityReason]) {
	var wrong problems[authorityReason]
	var sources, certificates []string
	for i := range refs {
		source, held, why := r.follow(from, &refs[i])
		switch {
		case why != nil:
			wrong.add(why.reason, "[%d]: %s", i, why.message)
		case !slices.Contains(sources, source):
			sources = append(sources, source)
			certificates = append(certificates, held...)
		}
	}
	if len(sources) == 0 {
		return nil, wrong
	}
	return r.authority(sources, certificates), wrong
}

// authority is the same whatever the order of its sources, and keeps its pointer while it does not change.
func (r *authorityReader) authority(sources, certificates []string) *Authority {
	slices.Sort(sources)
	slices.Sort(certificates)
	source, text := strings.Join(sources, ", "), strings.Join(slices.Compact(certificates), "")
	if last := r.made[source]; last != nil && last.PEM == text {
		return last
	}
	r.made[source] = &Authority{Source: source, PEM: text}
	return r.made[source]
}

// follow returns the name of the object that a reference leads to, and the certificates in it.
func (r *authorityReader) follow(
	from referrer, ref *gatewayv1.ObjectReference,
) (string, []string, *problem[authorityReason]) {
	if ref.Group != "" || ref.Kind != "ConfigMap" {
		return "", nil, &problem[authorityReason]{authorityKind, fmt.Sprintf(
			"CA certificates are read from a ConfigMap (group \"\"), not from %s %q in group %q", ref.Kind, ref.Name, ref.Group)}
	}
	target := objectKey{"ConfigMap", string(valueOr(ref.Namespace, gatewayv1.Namespace(from.namespace))), string(ref.Name)}
	if !r.grants.permits(from, target) {
		return "", nil, &problem[authorityReason]{authorityNotPermitted, fmt.Sprintf(
			"no ReferenceGrant in namespace %q lets %ss of namespace %q refer to ConfigMap %q",
			target.namespace, from.kind, from.namespace, target.name)}
	}
	name := types.NamespacedName{Namespace: target.namespace, Name: target.name}
	held, found := r.configMaps.Get(name.Namespace, name.Name)
	r.used[name] = held
	if !found {
		return "", nil, &problem[authorityReason]{authorityInvalid, fmt.Sprintf("ConfigMap %s does not exist", name)}
	}
	content := r.bundle(held)
	if content.err != nil {
		reason := authorityInvalid
		if errors.As(content.err, new(*unusableError)) {
			reason = authorityUnusable
		}
		return "", nil, &problem[authorityReason]{reason, fmt.Sprintf("ConfigMap %s %s", name, content.err)}
	}
	return "ConfigMap " + name.String(), content.certificates, nil
}

func (a *authorities) bundle(held *corev1.ConfigMap) bundle {
	content, known := a.bundles[held]
	if !known {
		content.certificates, content.err = readBundle(held)
		a.bundles[held] = content
	}
	return content
}

// keepOnly forgets the ConfigMaps that nothing refers to any more, and Authorities that were made of them.
func (a *authorities) keepOnly(used map[types.NamespacedName]*corev1.ConfigMap) {
	for held := range a.bundles {
		if used[nameOf(held)] != held {
			delete(a.bundles, held)
		}
	}
	names := make(map[string]bool, len(used))
	for name := range used {
		names["ConfigMap "+name.String()] = true
	}
	for source := range a.made {
		for _, one := range strings.Split(source, ", ") {
			if !names[one] {
				delete(a.made, source)
			}
		}
	}
}

// readBundle returns the certificates of a ConfigMap. One that is broken spoils all: whoever wrote it relies on all of them,
// and must hear of it.
func readBundle(held *corev1.ConfigMap) ([]string, error) {
	text := []byte(held.Data[caKey])
	if len(text) == 0 {
		text = held.BinaryData[caKey]
	}
	switch {
	case len(text) == 0:
		return nil, errors.New("has no value for " + caKey)
	case len(text) > maxBundle:
		return nil, fmt.Errorf("has more than %d KiB in %s", maxBundle>>10, caKey)
	}
	var certificates []string
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if err := checkAuthority(block.Bytes); err != nil {
			return nil, fmt.Errorf("has, as certificate %d of %s, one that %w", len(certificates)+1, caKey, err)
		}
		certificates = append(certificates, string(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})))
	}
	switch written := bytes.Count(text, []byte("-----BEGIN CERTIFICATE-----")); {
	case len(certificates) == 0:
		return nil, fmt.Errorf("has no certificate in PEM form in %s", caKey)
	case len(certificates) < written:
		return nil, fmt.Errorf("has %d certificates in %s, and only %d of them are in PEM form", written, caKey, len(certificates))
	}
	return certificates, nil
}

// checkAuthority is what OpenSSL demands of a certificate that others are verified by. It may have expired: then nothing that
// it signed is trusted, and what else is in the bundle still is.
func checkAuthority(der []byte) error {
	certificate, err := x509.ParseCertificate(der)
	switch {
	case err != nil:
		return fmt.Errorf("cannot be read: %w", err)
	case certificate.Version >= 3 && !certificate.IsCA:
		return &unusableError{"is not a CA's: its basic constraints do not say CA:TRUE"}
	case certificate.KeyUsage != 0 && certificate.KeyUsage&x509.KeyUsageCertSign == 0:
		return &unusableError{"is not a CA's: its key usage does not allow it to sign certificates"}
	}
	return nil
}
