package graph

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	metadata "k8s.io/apimachinery/pkg/util/validation"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	limpetv1alpha1 "github.com/limpet-gateway/limpet/api/v1alpha1"
	"github.com/limpet-gateway/limpet/controller/cluster"
)

const kindParameters = "LimpetParameters"

// Parameters are what LimpetParameters say for a Gateway: its own ones, else those of its class. What nobody set is the
// zero value.
type Parameters struct {
	Service ServiceParameters
	// TrustedProxies may say who the client is; nil says nothing, an empty list trusts nobody.
	TrustedProxies []netip.Prefix
	// ProxyProtocol are those who must begin each connection with a header of the PROXY protocol.
	ProxyProtocol []netip.Prefix
	Timeouts      ClientTimeouts
	TLS           TLSParameters
}

// ServiceParameters are about the Service of a Gateway.
type ServiceParameters struct {
	// Type is "" for what the installation says.
	Type        corev1.ServiceType
	Annotations map[string]string
}

// ClientTimeouts bound how long a client may do nothing; 0 is not set.
type ClientTimeouts struct{ Idle, Request, KeepAlive time.Duration }

// TLSParameters are about TLS with clients.
type TLSParameters struct {
	// Min is the oldest version that is spoken, "" is not set.
	Min limpetv1alpha1.TLSVersion
	// CipherSuites are those of TLS 1.3 and those of TLS 1.2; nil of both is not set.
	CipherSuites13, CipherSuites12 []string
}

// HAProxyParameters are what one HAProxy has only once; what nobody set is the zero value.
type HAProxyParameters struct {
	AccessLog               limpetv1alpha1.AccessLog
	Threads, MaxConnections int
	Connect, Idle, Tunnel   time.Duration
}

// parameters are one LimpetParameters, read.
type parameters struct {
	source  *limpetv1alpha1.LimpetParameters
	gateway Parameters
	haproxy HAProxyParameters
	// wrong says what is not valid in it.
	wrong []string
}

// parameterReader finds LimpetParameters, and reads each once.
type parameterReader struct {
	objects cluster.Objects[*limpetv1alpha1.LimpetParameters]
	read    map[*limpetv1alpha1.LimpetParameters]*parameters
}

// newParameterReader takes over what was read of objects that did not change.
func newParameterReader(objects cluster.Objects[*limpetv1alpha1.LimpetParameters], last parameterReader) parameterReader {
	r := parameterReader{objects, make(map[*limpetv1alpha1.LimpetParameters]*parameters)}
	for _, source := range objects.All() {
		if known := last.read[source]; known != nil {
			r.read[source] = known
		} else {
			r.read[source] = readParameters(source)
		}
	}
	return r
}

// find returns what a parametersRef leads to, or what is wrong with it.
func (r parameterReader) find(group gatewayv1.Group, kind gatewayv1.Kind, name types.NamespacedName) (*parameters, string) {
	if string(group) != limpetv1alpha1.GroupVersion.Group || kind != kindParameters {
		return nil, fmt.Sprintf("names %s %q of group %s: only %s of group %s can be named",
			kind, name.Name, quoted(string(group)), kindParameters, limpetv1alpha1.GroupVersion.Group)
	}
	source, found := r.objects.Get(name.Namespace, name.Name)
	if !found {
		return nil, fmt.Sprintf("names %s %s, which does not exist: create it, or leave parametersRef out", kindParameters, name)
	}
	read := r.read[source]
	if len(read.wrong) > 0 {
		return nil, fmt.Sprintf("names %s %s, which is not valid: %s", kindParameters, name, strings.Join(read.wrong, "; "))
	}
	return read, ""
}

// readParameters repeats what the CRD demands: objects from files never met an API server.
func readParameters(source *limpetv1alpha1.LimpetParameters) *parameters {
	p := &parameters{source: source}
	spec := &source.Spec
	p.readService(spec.Service)
	p.gateway.TrustedProxies = p.prefixes("trustedProxies", spec.TrustedProxies)
	if spec.ProxyProtocol != nil {
		p.gateway.ProxyProtocol = p.prefixes("proxyProtocol.trusted", spec.ProxyProtocol.Trusted)
		if p.gateway.ProxyProtocol == nil {
			p.refuse("proxyProtocol.trusted", "must be given")
		}
	}
	if t := spec.Timeouts; t != nil {
		p.gateway.Timeouts = ClientTimeouts{
			Idle:      p.duration("timeouts.idle", t.Idle, time.Second, day),
			Request:   p.duration("timeouts.request", t.Request, time.Second, day),
			KeepAlive: p.duration("timeouts.keepAlive", t.KeepAlive, time.Second, day),
		}
	}
	p.readTLS(spec.TLS)
	p.readHAProxy(spec.HAProxy)
	return p
}

const day = 24 * time.Hour

func (p *parameters) refuse(field, format string, args ...any) {
	p.wrong = append(p.wrong, "spec."+field+" "+fmt.Sprintf(format, args...))
}

func (p *parameters) readService(service *limpetv1alpha1.ServiceParameters) {
	if service == nil {
		return
	}
	p.gateway.Service.Annotations = service.Annotations
	for _, key := range slices.Sorted(maps.Keys(service.Annotations)) {
		if len(metadata.IsQualifiedName(strings.ToLower(key))) > 0 {
			p.refuse("service.annotations", "holds %s, which is no name of an annotation", quoted(key))
		}
	}
	if service.Type == nil {
		return
	}
	p.gateway.Service.Type = *service.Type
	known := []corev1.ServiceType{corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort, corev1.ServiceTypeClusterIP}
	if !slices.Contains(known, *service.Type) {
		p.refuse("service.type", "is %s: give LoadBalancer, NodePort or ClusterIP", quoted(string(*service.Type)))
	}
}

// maxPrefixes is the CRD's.
const maxPrefixes = 64

// prefixes keeps an empty list apart from none.
func (p *parameters) prefixes(field string, ranges []limpetv1alpha1.AddressRange) []netip.Prefix {
	if ranges == nil {
		return nil
	}
	if len(ranges) > maxPrefixes {
		p.refuse(field, "has %d entries, more than %d", len(ranges), maxPrefixes)
		return nil
	}
	all := make([]netip.Prefix, 0, len(ranges))
	for i, text := range ranges {
		prefix, err := netip.ParsePrefix(string(text))
		if address, single := netip.ParseAddr(string(text)); single == nil && address.Zone() == "" {
			prefix, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			p.refuse(indexed(field, i), "is %s: give an address, or a range such as 10.0.0.0/8", quoted(string(text)))
			continue
		}
		all = append(all, prefix.Masked())
	}
	return all
}

func (p *parameters) duration(field string, source *gatewayv1.Duration, least, most time.Duration) time.Duration {
	if source == nil {
		return 0
	}
	duration, valid := parseDuration(string(*source))
	if !valid || duration < least || duration > most {
		p.refuse(field, "is %s: give a duration from %s to %s, such as 30s", quoted(string(*source)), least, most)
	}
	return duration
}

// Cipher suites that can be chosen. They are all that TLS 1.3 has in common use, and the ones of TLS 1.2 with forward
// secrecy and authenticated encryption.
var (
	suites13 = []string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
	suites12 = []string{
		"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256",
		"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
		"ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
	}
)

func (p *parameters) readTLS(source *limpetv1alpha1.TLSParameters) {
	if source == nil {
		return
	}
	tls := &p.gateway.TLS
	tls.Min = valueOr(source.MinVersion, "")
	if !slices.Contains([]limpetv1alpha1.TLSVersion{"", limpetv1alpha1.TLS12, limpetv1alpha1.TLS13}, tls.Min) {
		p.refuse("tls.minVersion", "is %s: give TLSv1.2 or TLSv1.3", quoted(string(tls.Min)))
	}
	if source.CipherSuites != nil && len(source.CipherSuites) == 0 {
		p.refuse("tls.cipherSuites", "must not be empty")
	}
	for i, suite := range source.CipherSuites {
		switch name := string(suite); {
		case slices.Contains(tls.CipherSuites13, name), slices.Contains(tls.CipherSuites12, name):
			p.refuse(indexed("tls.cipherSuites", i), "is there twice")
		case slices.Contains(suites13, name):
			tls.CipherSuites13 = append(tls.CipherSuites13, name)
		case slices.Contains(suites12, name):
			tls.CipherSuites12 = append(tls.CipherSuites12, name)
		default:
			p.refuse(indexed("tls.cipherSuites", i), "is %s: give one of %s", quoted(name), strings.Join(slices.Concat(suites13, suites12), ", "))
		}
	}
	if wrong := tls.unspoken(); wrong != "" {
		p.refuse("tls", "%s", wrong)
	}
}

// unspoken says why no version of TLS is left.
func (t TLSParameters) unspoken() string {
	if t.Min == limpetv1alpha1.TLS13 && len(t.CipherSuites12) > 0 && len(t.CipherSuites13) == 0 {
		return "leaves no version: minVersion TLSv1.3 needs a cipher suite that begins with TLS_"
	}
	return ""
}

func (p *parameters) readHAProxy(source *limpetv1alpha1.HAProxyParameters) {
	if source == nil {
		return
	}
	p.haproxy = HAProxyParameters{
		AccessLog:      valueOr(source.AccessLog, ""),
		Threads:        p.number("haproxy.threads", source.Threads, 1, 64),
		MaxConnections: p.number("haproxy.maxConnections", source.MaxConnections, 100, 2000000),
	}
	known := []limpetv1alpha1.AccessLog{"", limpetv1alpha1.AccessLogNone, limpetv1alpha1.AccessLogText, limpetv1alpha1.AccessLogJSON}
	if !slices.Contains(known, p.haproxy.AccessLog) {
		p.refuse("haproxy.accessLog", "is %s: give None, Text or JSON", quoted(string(p.haproxy.AccessLog)))
	}
	if t := source.Timeouts; t != nil {
		p.haproxy.Connect = p.duration("haproxy.timeouts.connect", t.Connect, 10*time.Millisecond, time.Minute)
		p.haproxy.Idle = p.duration("haproxy.timeouts.idle", t.Idle, time.Second, day)
		p.haproxy.Tunnel = p.duration("haproxy.timeouts.tunnel", t.Tunnel, time.Second, 7*day)
	}
}

func (p *parameters) number(field string, source *int32, least, most int) int {
	if source == nil {
		return 0
	}
	if int(*source) < least || int(*source) > most {
		p.refuse(field, "is %d: give a number from %d to %d", *source, least, most)
	}
	return int(*source)
}

// over are these parameters of a Gateway, and where they say nothing those of its class.
func (p Parameters) over(class Parameters) Parameters {
	p.Service.Type = cmp.Or(p.Service.Type, class.Service.Type)
	if len(class.Service.Annotations) > 0 {
		both := maps.Clone(class.Service.Annotations)
		maps.Copy(both, p.Service.Annotations)
		p.Service.Annotations = both
	}
	if p.TrustedProxies == nil {
		p.TrustedProxies = class.TrustedProxies
	}
	if p.ProxyProtocol == nil {
		p.ProxyProtocol = class.ProxyProtocol
	}
	p.Timeouts = p.Timeouts.over(class.Timeouts)
	p.TLS.Min = cmp.Or(p.TLS.Min, class.TLS.Min)
	if p.TLS.CipherSuites12 == nil && p.TLS.CipherSuites13 == nil {
		p.TLS.CipherSuites12, p.TLS.CipherSuites13 = class.TLS.CipherSuites12, class.TLS.CipherSuites13
	}
	return p
}

func (t ClientTimeouts) over(class ClientTimeouts) ClientTimeouts {
	return ClientTimeouts{cmp.Or(t.Idle, class.Idle), cmp.Or(t.Request, class.Request), cmp.Or(t.KeepAlive, class.KeepAlive)}
}
