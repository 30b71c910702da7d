package translate

import (
	"cmp"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	limpetv1alpha1 "github.com/limpet-gateway/limpet/api/v1alpha1"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// frameOf returns the frame that the Gateways ask for, the listeners that serve in it, and what the frame refers to.
func frameOf(gateways []*graph.Gateway, trusted []netip.Prefix) (model.Frame, listeners, holding) {
	var frame model.Frame
	serving := newListeners()
	held := holding{certificates: map[string]*model.Certificate{}, authorities: map[string]*model.Authority{}}
	for _, gateway := range gateways {
		if !gateway.Valid {
			continue
		}
		for _, port := range portsOf(gateway) {
			frame.Ports = append(frame.Ports, port.models(gateway, trusted)...)
			serving.addPort(gateway, port)
			port.hold(held)
		}
	}
	return frame, serving, held
}

// clientCertificates are those that Gateways show to backends.
func clientCertificates(gateways []*graph.Gateway) map[types.NamespacedName]*graph.Certificate {
	all := map[types.NamespacedName]*graph.Certificate{}
	for _, gateway := range gateways {
		if gateway.ClientCertificate != nil {
			all[gateway.Key()] = gateway.ClientCertificate
		}
	}
	return all
}

// keepFrame returns the old frame, with its very slices, where the new one is equal.
func keepFrame(old, now model.Frame) model.Frame {
	if reflect.DeepEqual(old, now) {
		return old
	}
	return now
}

// gatewayPort is one port of a Gateway with the listeners that share it.
type gatewayPort struct {
	number    uint16
	listeners []*graph.Listener
}

// portsOf groups a Gateway's valid listeners by port, in the order of the ports.
//
// Listeners that share a port speak one protocol and have hostnames of their own; the graph sees to that. Were it not so,
// the first would count: a plain listener's routes must never be served on another one's TLS port.
func portsOf(gateway *graph.Gateway) []gatewayPort {
	var ports []gatewayPort
	for _, listener := range gateway.AllListeners() {
		if !listener.Valid {
			continue
		}
		at := slices.IndexFunc(ports, func(p gatewayPort) bool { return p.number == listener.Port })
		switch {
		case at < 0:
			ports = append(ports, gatewayPort{listener.Port, []*graph.Listener{listener}})
		case !slices.ContainsFunc(ports[at].listeners, func(l *graph.Listener) bool { return conflict(l, listener) }):
			ports[at].listeners = append(ports[at].listeners, listener)
		}
	}
	slices.SortFunc(ports, func(a, b gatewayPort) int { return cmp.Compare(a.number, b.number) })
	return ports
}

func conflict(a, b *graph.Listener) bool {
	return !a.Protocol.SharesPort(b.Protocol) || a.Hostname == b.Hostname
}

// models returns the port once for each of the Gateway's addresses. Trusted are the proxies that are trusted if its parameters
// say nothing about it.
func (p gatewayPort) models(gateway *graph.Gateway, trusted []netip.Prefix) []model.Port {
	parameters := &gateway.Parameters
	if parameters.TrustedProxies != nil {
		trusted = parameters.TrustedProxies
	}
	var ports []model.Port
	for _, address := range gateway.Addresses {
		ports = append(ports, model.Port{
			ID:      portID(gateway.Key(), address.String(), p.number),
			Owner:   portOwner(gateway.Key(), address, p.listeners[0].Bind),
			Address: address, OnlyIPv6: onlyIPv6(gateway, address),
			Bind:    p.listeners[0].Bind,
			Public:  p.number,
			TCP:     p.listeners[0].Protocol == graph.TCP,
			Servers: p.servers(address),
			Clients: p.clients(),

			TrustedProxies: trusted,
			ProxyProtocol:  parameters.ProxyProtocol,
			Timeouts:       model.ClientTimeouts(parameters.Timeouts),
			Crypto:         p.crypto(parameters.TLS),
		})
	}
	return ports
}

// onlyIPv6 leaves IPv4 to the other one of two unspecified addresses.
func onlyIPv6(gateway *graph.Gateway, address netip.Addr) bool {
	return address == netip.IPv6Unspecified() && slices.Contains(gateway.Addresses, netip.IPv4Unspecified())
}

func (p gatewayPort) servers(address netip.Addr) []model.TLSServer {
	var servers []model.TLSServer
	for _, listener := range p.listeners {
		if listener.Protocol.TLS() {
			servers = append(servers, model.TLSServer{
				ID:           tlsServerID(listener, address.String()),
				Mode:         tlsModes[listener.Protocol],
				Owner:        model.Owner(listener.String()),
				Hostname:     listener.Hostname,
				Certificates: certificateIDs(listener),
			})
		}
	}
	return servers
}

// tlsModes are those of listeners that share a port by server names.
var tlsModes = map[graph.Protocol]model.TLSMode{
	graph.HTTPS: model.HTTPS, graph.TLSTerminate: model.Terminate, graph.TLSPassthrough: model.Passthrough,
}

// clients are the same for all listeners of a port that terminate TLS.
func (p gatewayPort) clients() *model.ClientValidation {
	for _, listener := range p.listeners {
		if source := listener.Clients; source != nil {
			return &model.ClientValidation{Authority: authorityID(source.Authority), InsecureFallback: source.InsecureFallback}
		}
	}
	return nil
}

// crypto: a version for which a list of cipher suites has none is not spoken.
func (p gatewayPort) crypto(source graph.TLSParameters) model.Crypto {
	if !p.listeners[0].Protocol.TLS() {
		return model.Crypto{}
	}
	chosen := len(source.CipherSuites12)+len(source.CipherSuites13) > 0
	crypto := model.Crypto{
		Only13: source.Min == limpetv1alpha1.TLS13 || chosen && len(source.CipherSuites12) == 0,
		Only12: chosen && len(source.CipherSuites13) == 0,
	}
	if !crypto.Only13 {
		crypto.CipherSuites12 = source.CipherSuites12
	}
	crypto.CipherSuites13 = source.CipherSuites13
	return crypto
}

// haproxy is what LimpetParameters say of what one HAProxy has only once.
func haproxy(source graph.HAProxyParameters) model.HAProxy {
	return model.HAProxy{
		AccessLog: map[limpetv1alpha1.AccessLog]model.AccessLog{
			limpetv1alpha1.AccessLogNone: model.AccessLogNone,
			limpetv1alpha1.AccessLogText: model.AccessLogText,
			limpetv1alpha1.AccessLogJSON: model.AccessLogJSON,
		}[source.AccessLog],
		Threads: source.Threads, MaxConnections: source.MaxConnections,
		Connect: source.Connect, Idle: source.Idle, Tunnel: source.Tunnel,
	}
}

func certificateIDs(listener *graph.Listener) []string {
	var all []string
	for _, certificate := range listener.Certificates {
		all = append(all, certificateID(certificate.Secret))
	}
	return all
}

// hold adds what the port's listeners refer to.
func (p gatewayPort) hold(held holding) {
	for _, listener := range p.listeners {
		for _, source := range listener.Certificates {
			made := certificate(source)
			held.certificates[made.ID] = made
		}
		if listener.Clients != nil {
			made := authority(listener.Clients.Authority)
			held.authorities[made.ID] = made
		}
	}
}

// certificate belongs to its Secret: one that HAProxy refuses is left out alone, and status says so on the listeners that
// use it.
func certificate(source *graph.Certificate) *model.Certificate {
	return &model.Certificate{
		ID: certificateID(source.Secret), Owner: secretOwner(source.Secret), PEM: line(source.Chain) + line(source.Key),
	}
}

// authority belongs to the ConfigMaps that it comes from.
func authority(source *graph.Authority) *model.Authority {
	return &model.Authority{ID: authorityID(source), Owner: model.Owner(source.Source), PEM: source.PEM}
}

// line ends with exactly one line end.
func line(text string) string { return strings.TrimRight(text, "\n") + "\n" }
