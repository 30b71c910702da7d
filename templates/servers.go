package templates

import (
	"strings"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
)

// server is one endpoint of a backend in its slot.
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

// serverOptions says how a backend is spoken to. Names that are not plain words never get into a file: files.Server.Check.
func serverOptions(backend *model.Backend) string {
	var words []string
	if tls := backend.TLS; tls != nil {
		words = append(words, tlsOptions(tls), "alpn "+protocol(backend))
	}
	if backend.HTTP2 {
		words = append(words, "proto h2")
	}
	return strings.Join(words, " ")
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
