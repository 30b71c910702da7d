package templates

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/internal/originator"
)

// externalName is the one server of a backend that DNS finds.
const externalName = "external"

// servers are those of a backend in its slot. Names that are not plain words never get into a file: files.Server.Check.
func (e *dataEditor) servers(slot string, backend *model.Backend) ([]files.Server, error) {
	originated := backend.TLS != nil && len(backend.TLS.SubjectAltNames) > 0
	if backend.External != "" {
		if originated {
			return nil, fmt.Errorf("%s: subjectAltNames cannot be checked for a name that DNS resolves", backend.Name)
		}
		return []files.Server{{
			Owner: string(backend.Owner), Slot: slot, Name: externalName, Address: backend.External, ID: 1, Weight: 1,
			Options: strings.TrimSpace(serverOptions(backend) + " resolvers limpet resolve-prefer ipv4 init-addr last,libc,none"),
		}}, nil
	}
	var all []files.Server
	for _, endpoint := range backend.Endpoints {
		s := server(slot, backend, endpoint)
		if originated {
			s.Address, s.Options = originator.Server(e.originator, originID(backend), endpoint.Address)
			s.Options += clearOptions(backend)
		}
		all = append(all, s)
	}
	return all, nil
}

func server(slot string, backend *model.Backend, endpoint model.Endpoint) files.Server {
	weight := 1
	if endpoint.Draining {
		weight = 0
	}
	return files.Server{
		Owner: string(backend.Owner), Slot: slot, Name: endpoint.Name, Address: endpoint.Address.String(), ID: endpoint.ID, Weight: weight,
		Options: serverOptions(backend),
	}
}

// serverOptions says how a backend is spoken to.
func serverOptions(backend *model.Backend) string {
	words := clearOptions(backend)
	switch tls := backend.TLS; {
	case tls != nil && backend.TCP:
		words = tlsOptions(tls)
	case tls != nil:
		words = tlsOptions(tls) + " alpn " + protocol(backend) + words
	}
	return strings.TrimSpace(words)
}

// clearOptions is what is said of the protocol without TLS.
func clearOptions(backend *model.Backend) string {
	if backend.HTTP2 {
		return " proto h2"
	}
	return ""
}

func protocol(backend *model.Backend) string {
	if backend.HTTP2 {
		return "h2"
	}
	return "http/1.1"
}

// tlsOptions has the name that is sent be the one that is looked for in the certificate: HAProxy 3.0 knows no other.
func tlsOptions(tls *model.BackendTLS) string {
	authority := "@system-ca"
	if tls.Authority != "" {
		authority = authorityFile(tls.Authority)
	}
	options := "ssl verify required ca-file " + authority + " sni str(" + tls.ServerName + ")"
	if tls.Certificate != "" {
		options += " crt " + certificateFile(tls.Certificate)
	}
	return options
}

// originID names the settings of a backend whose certificate the TLS originator checks.
func originID(backend *model.Backend) string {
	sum := sha256.Sum256([]byte(backend.Name))
	return "o" + digest(sum[:])
}

// origin is what the originator is told about a backend. Without what it refers to there is none, and no server comes: nothing
// else would be checked instead.
func origin(backend *model.Backend, config model.Config) (files.Asset, bool) {
	tls := backend.TLS
	settings := originator.Settings{ServerName: tls.ServerName}
	if tls.Authority != "" {
		authority, found := config.Authorities.Get(tls.Authority)
		if !found {
			return files.Asset{}, false
		}
		settings.CA = authority.PEM
	}
	if tls.Certificate != "" {
		certificate, found := config.Certificates.Get(tls.Certificate)
		if !found {
			return files.Asset{}, false
		}
		settings.Certificate = certificate.PEM
	}
	for _, name := range tls.SubjectAltNames {
		if name.DNS != "" {
			settings.DNSNames = append(settings.DNSNames, name.DNS)
		}
		if name.URI != "" {
			settings.URIs = append(settings.URIs, name.URI)
		}
	}
	if backend.HTTP2 {
		settings.Protocols = []string{"h2"}
	}
	return files.Asset{Owner: string(backend.Owner), Text: settings.Text(), Secret: tls.Certificate != ""}, true
}
