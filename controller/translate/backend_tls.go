package translate

import (
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// backendTLS says how a backend proves who it is. What it says itself of our certificate goes before the Gateway's.
func backendTLS(source *graph.BackendTLS, certificate *graph.Certificate) *model.BackendTLS {
	if source == nil {
		return nil
	}
	made := &model.BackendTLS{ServerName: source.Hostname}
	if source.Authority != nil {
		made.Authority = authorityID(source.Authority)
	}
	for _, name := range source.SubjectAltNames {
		made.SubjectAltNames = append(made.SubjectAltNames, model.SubjectAltName(name))
	}
	if shown := shownCertificate(source, certificate); shown != nil {
		made.Certificate = certificateID(shown.Secret)
	}
	return made
}

func shownCertificate(source *graph.BackendTLS, certificate *graph.Certificate) *graph.Certificate {
	if source.Certificate != nil {
		return source.Certificate
	}
	return certificate
}

// backendHolding is what a backend refers to.
func backendHolding(source *graph.Backend, own *graph.Certificate) holding {
	var held holding
	if source == nil || source.TLS == nil {
		return held
	}
	if shown := shownCertificate(source.TLS, own); shown != nil {
		made := certificate(shown)
		held.certificates = map[string]*model.Certificate{made.ID: made}
	}
	if source.TLS.Authority != nil {
		made := authority(source.TLS.Authority)
		held.authorities = map[string]*model.Authority{made.ID: made}
	}
	return held
}
