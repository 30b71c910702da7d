// Package model is what the data plane must know, in plain structs: what the templates see, and a public contract for
// those who override one.
//
// translate fills it in from the graph, templates render it. It knows nothing of Kubernetes and nothing of HAProxy's
// syntax, holds no key material but that of Certificates, and can be serialised. It must never hold a value
// that was not validated for its meaning (a cookie name is a token, a duration is in bounds); quoting for a file or a
// socket is the templates' work.
package model

import (
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/limpet-gateway/limpet/internal/table"
)

// Config is one complete configuration. Frame is small and a change of it needs a reload; everything else is data that
// is changed at run time.
type Config struct {
	Frame Frame
	// Hosts leads from HostKey to the virtual host that answers for it: for a request by its host, for a connection at layer 4 by
	// its server name, which on a TCP port is none.
	Hosts table.Table[*Host]
	// Parents leads from a virtual host's ID to the one that is asked when nothing in it matched.
	Parents table.Table[*Parent]
	// Paths leads from PrefixKey, ExactKey, or a virtual host and a regular expression's literal beginning, to what a
	// request with that path is checked against. A connection at layer 4 has the path "/".
	Paths table.Table[*Path]
	// Rules leads from a rule's ID to what happens to a request that it matched.
	Rules table.Table[*Rule]
	// Backends leads from a backend's name to its endpoints.
	Backends table.Table[*Backend]
	// Certificates and Authorities lead from an ID, by which others refer to them, to what HAProxy shows and trusts.
	Certificates table.Table[*Certificate]
	Authorities  table.Table[*Authority]
}

// Owner names what a piece of configuration comes from, as "HTTPRoute default/shop"; a condition about the piece belongs
// there. A listener is "Listener default/gw/https", or "ListenerEntry default/set/https" if it stands in a ListenerSet, and
// one address and port of a Gateway is "Port default/gw 127.0.0.1:8080": what cannot be had of a Gateway leaves the rest of it
// in place.
type Owner string

// Frame is what HAProxy reads only at start: ports, certificates, limits.
type Frame struct {
	// Incomplete says that it is not known yet what is to be served: no traffic is to come.
	Incomplete bool
	Ports      []Port
	HAProxy    HAProxy
}

// HAProxy is what an HAProxy has only once; what is not set is the zero value, and for the installation to say.
type HAProxy struct {
	AccessLog               AccessLog
	Threads, MaxConnections int
	// Connect bounds one attempt to connect to an endpoint, Idle how long an endpoint may do nothing, Tunnel how long both
	// sides of an upgraded connection may do nothing.
	Connect, Idle, Tunnel time.Duration
}

// AccessLog is the form of the access log.
type AccessLog string

// The forms of the access log.
const (
	AccessLogNone AccessLog = "none"
	AccessLogText AccessLog = "text"
	AccessLogJSON AccessLog = "json"
)

// Port is one address and port that HAProxy listens on.
type Port struct {
	// ID is stable over restarts and unique: "p" and a hash of the Gateway's name and the listener's port.
	ID      string
	Owner   Owner
	Address netip.Addr
	// OnlyIPv6 keeps the address :: from taking IPv4 too.
	OnlyIPv6 bool
	// Bind is the port that HAProxy binds, Public the one that clients know (the listener's).
	Bind, Public uint16
	// TCP ports forward each connection as it is.
	TCP bool
	// Servers are the TLS servers that share the port, told apart by SNI; a port without any speaks plain HTTP, or is TCP.
	Servers []TLSServer
	// Clients says which certificates clients must show to the Servers; nil asks for none.
	Clients *ClientValidation
	// TrustedProxies may say who the client is: their X-Forwarded-* headers are kept and extended.
	TrustedProxies []netip.Prefix
	// ProxyProtocol are those who must begin each connection with a header of the PROXY protocol.
	ProxyProtocol []netip.Prefix
	Timeouts      ClientTimeouts
	Crypto        Crypto
}

// ClientTimeouts bound how long a client may do nothing: while a request is under way, until the header of one is complete,
// and between two. 0 leaves the data plane's own.
type ClientTimeouts struct{ Idle, Request, KeepAlive time.Duration }

// Crypto is which TLS the Servers speak.
type Crypto struct {
	// Only12 and Only13 speak that version alone; else it is both.
	Only12, Only13 bool
	// CipherSuites12 and CipherSuites13 are OpenSSL's names, the preferred first; none leaves them to OpenSSL.
	CipherSuites12, CipherSuites13 []string
}

// ClientValidation is what is demanded of clients.
type ClientValidation struct {
	// Authority is a key of Config.Authorities.
	Authority string
	// InsecureFallback asks for a certificate, and serves those without one and with a wrong one too.
	InsecureFallback bool
}

// TLS says whether clients speak TLS on the port.
func (p Port) TLS() bool { return len(p.Servers) > 0 }

// TLSServer is one HTTPS or TLS listener on a port.
type TLSServer struct {
	// ID is stable and unique: a letter for the Mode, "t", "d" or "u", and a hash of the Gateway's and the listener's name.
	ID    string
	Mode  TLSMode
	Owner Owner
	// Hostname is the SNI it answers for: exact, "*.suffix", or "" for every one (and none).
	Hostname string
	// Certificates are keys of Config.Certificates, the first is for clients that no other one suits. A Passthrough server has
	// none.
	Certificates []string
}

// TLSMode is what becomes of a TLS connection.
type TLSMode string

// The modes of TLSServers.
const (
	// HTTPS ends TLS, and routes the requests within.
	HTTPS TLSMode = "https"
	// Terminate ends TLS, and forwards what is within.
	Terminate TLSMode = "terminate"
	// Passthrough forwards the connection as it is.
	Passthrough TLSMode = "passthrough"
)

// Layer4 says that connections are forwarded, whatever is spoken in them.
func (s TLSServer) Layer4() bool { return s.Mode == Terminate || s.Mode == Passthrough }

// Layer4 says that some of the port's connections are forwarded, whatever is spoken in them.
func (p Port) Layer4() bool { return p.TCP || slices.ContainsFunc(p.Servers, TLSServer.Layer4) }

// Certificate is one certificate chain with its key, PEM, in one piece as HAProxy reads it.
type Certificate struct {
	// ID is a file name without its ending: a hash of the Secret's name.
	ID    string
	Owner Owner
	PEM   string
}

// Authority is a bundle of CA certificates, PEM.
type Authority struct {
	// ID is a file name without its ending: a hash of the names of the objects that it comes from.
	ID    string
	Owner Owner
	PEM   string
}

// HostKey is the key of Config.Hosts: a port's ID, "|", and an exact hostname in lower case, "*.suffix", or "*".
func HostKey(port, hostname string) string { return port + "|" + hostname }

// Host is one entry of Config.Hosts.
type Host struct {
	Owner Owner
	// VirtualHost is its ID: "v" and a hash of the listener and of the routes' hostname.
	VirtualHost string
	// Server is the ID of the TLSServer that the hostname belongs to, "" on a plain port: a request for it that came by
	// another server's connection is misdirected.
	Server string
}

// Parent is one entry of Config.Parents.
type Parent struct {
	Owner       Owner
	VirtualHost string
}

// The three kinds of path keys. A request's own key is its virtual host, its path, "/" and ExactEnd; the longest key
// that this begins with wins. So PathPrefix "/a" is "v…/a/", which "/ab" does not begin with, and Exact "/a" is
// "v…/a/\x01", longer than the equal prefix. A regular expression is found by its literal beginning as it is, "v…/a" for
// "/a[0-9]". ExactEnd cannot come from a client: HAProxy refuses it in a path.
const ExactEnd = "\x01"

// PrefixKey is the key of Config.Paths for a path prefix without its trailing slash, "" for "/".
func PrefixKey(virtualHost, prefix string) string { return virtualHost + prefix + "/" }

// ExactKey is the key of Config.Paths for an exact path, and the one that a request with that path has.
func ExactKey(virtualHost, path string) string { return virtualHost + path + "/" + ExactEnd }

// Path is one entry of Config.Paths: Candidates in order of precedence. A path whose first candidate has no condition
// is plain: it costs one look-up.
type Path struct {
	Owner      Owner
	Candidates []Candidate
}

// Candidate is one match of a rule: all conditions must hold.
type Candidate struct {
	Owner      Owner
	Conditions []Condition
	// Target is what the request then takes.
	Target Target
}

// Condition is one thing to hold about a request.
type Condition struct {
	On ConditionOn
	// Name of the header (case-insensitive) or query parameter; empty for a method or path.
	Name string
	// Value is compared exactly, or is a regular expression that must match the whole.
	Value string
	Regex bool
}

// ConditionOn is what a Condition looks at.
type ConditionOn string

// What a Condition can look at.
const (
	OnMethod ConditionOn = "method"
	OnHeader ConditionOn = "header"
	OnQuery  ConditionOn = "query"
	OnPath   ConditionOn = "path"
)

// Target is where a matched request goes.
type Target struct {
	// Rule is a key of Config.Rules.
	Rule string
	// Backend is a key of Config.Backends if the rule is Plain: it is not asked then. Else "".
	Backend string
}

// Rule is what happens to a request.
type Rule struct {
	// ID is "r" and a hash of the rule's identity: the route's namespace and name, and the rule's name, else its session's
	// given name, else its matches. Never an index: reordered rules keep their sessions.
	ID    string
	Owner Owner
	// Display is how people know it: "HTTPRoute default/shop rule 2", and its name in brackets if it has one.
	Display string
	// Filters come before those of the share that is drawn.
	Filters Filters
	// Split holds one entry for each backendRef, with the weights as given; they are never all 0. It is empty if
	// Filters.Redirect answers.
	Split []Share
	// RequestTimeout bounds the time until the answer begins, over all attempts, BackendTimeout that of one attempt; 0 leaves
	// the data plane's own, Unlimited lifts it.
	RequestTimeout, BackendTimeout time.Duration
}

// Plain rules have nothing more to say than which backend a request takes: it is in the Target.
func (r *Rule) Plain() bool {
	if len(r.Split) != 1 || !r.Filters.Empty() || r.RequestTimeout != 0 || r.BackendTimeout != 0 {
		return false
	}
	share := r.Split[0]
	return share.Weight > 0 && share.Backend != "" && share.Session == nil && share.Filters.Empty()
}

// Unlimited is a timeout that is given as none: "0s".
const Unlimited = time.Duration(math.MaxInt64)

// Filters are what happens to a request and its answer.
type Filters struct {
	// Redirect answers the request.
	Redirect *Redirect
	CORS     *CORS
	// Request and Response are changes of headers.
	Request, Response *HeaderChange
	Rewrite           *Rewrite
	Mirrors           []Mirror
}

// Empty says that there is none.
func (f Filters) Empty() bool {
	return f.Redirect == nil && f.CORS == nil && f.Request == nil && f.Response == nil && f.Rewrite == nil && len(f.Mirrors) == 0
}

// Rewrite is what the backend sees instead of the request's host and path; "" and false keep them.
type Rewrite struct {
	Host string
	// Path replaces the whole path if ReplaceFull, else the Prefix that was matched if ReplacePrefix.
	Path                       string
	ReplaceFull, ReplacePrefix bool
	Prefix                     string
}

// Mirror sends Numerator of Denominator requests to Backend too, and drops the answers.
type Mirror struct {
	// Backend is a key of Config.Backends.
	Backend                string
	Numerator, Denominator int32
}

// CORS says which other origins may use an answer. It answers preflight requests.
type CORS struct {
	// Origins are "*", or scheme://host[:port] in which the host may begin with "*." or be "*".
	Origins                  []string
	Credentials              bool
	Methods, Headers, Expose []string
	// MaxAge in whole seconds.
	MaxAge time.Duration
}

// Share is one backendRef of a rule.
type Share struct {
	Weight uint32
	// Backend is a key of Config.Backends; "" answers 500 (an invalid backendRef's share), or closes the connection.
	Backend string
	// Filters are this share's alone, after the rule's.
	Filters Filters
	Session *Session
}

// HeaderChange is applied as Set, Add, Remove.
type HeaderChange struct {
	Set, Add []Header
	Remove   []string
}

// Header is a header field; Name is a token, Value has no control characters.
type Header struct{ Name, Value string }

// Redirect answers with a Location. Empty fields keep what the request has.
type Redirect struct {
	Status int
	Scheme string
	Host   string
	// Port is written into Location unless it is the own port of the scheme that Location has; 0 writes none.
	Port uint16
	// KeepPort says that the port is that of the listener, because neither scheme nor port was given.
	KeepPort bool
	// Path replaces the whole path if ReplaceFull, else the Prefix that was matched if ReplacePrefix.
	Path                       string
	ReplaceFull, ReplacePrefix bool
	Prefix                     string
}

// Session is a client's persistence by token on one backend of a rule (GEP-1619).
type Session struct {
	// ID is a key of its own: "s" and a hash of the rule's ID and the backend.
	ID string
	// Scope goes into the token's MAC: a token of one scope is worth nothing in another.
	Scope string
	// Backend is the backend's part of the token: a hash of its name, never an index.
	Backend string
	Carrier Carrier
	// Name of the cookie or header.
	Name string
	// OtherName is a second cookie name whose token is taken too: the name that the rule had, or would have, with another
	// number of backends. "" if there is none.
	OtherName string
	// Absolute and Idle end a session, in whole seconds; 0 is never.
	Absolute, Idle time.Duration
	// Permanent cookies carry Max-Age, what remains of Absolute.
	Permanent bool
	// Path of the cookie, "/" by default.
	Path string
	// Sticky sessions decide the share too, also one of weight 0.
	Sticky bool
}

// Carrier is what carries a session's token.
type Carrier string

// What can carry a token.
const (
	Cookie     Carrier = "cookie"
	HeaderLine Carrier = "header"
)

// Backend is one Service port or XBackend with its endpoints, and with how it is spoken to.
type Backend struct {
	// Name is how people know it and its key in Config.Backends: "Service/namespace/name/port", "XBackend/namespace/name", and
	// where rules or Gateways differ in how they speak to it, what they differ in: "Service/default/shop/80 retry 3 on 503".
	Name      string
	Owner     Owner
	Endpoints []Endpoint
	// External is the name and port that DNS resolves instead of Endpoints, "example.com:443"; else "".
	External string
	// TCP backends get what the client sends as it is.
	TCP bool
	// HTTP2 backends are spoken to in HTTP/2 only, with prior knowledge or (with TLS) by ALPN.
	HTTP2 bool
	// TLS is nil for plain text.
	TLS *BackendTLS
	// Retry says what is tried again.
	Retry Retry
}

// Profile is what only a section of its own can say of a backend. It is comparable. The zero Profile is what most have.
type Profile struct {
	TCP bool `json:",omitempty"`
	Retry
}

// Profile is the backend's.
func (b *Backend) Profile() Profile { return Profile{b.TCP, b.Retry} }

// Retry is a profile of attempts. The zero Retry is that of rules without any: a failed connection is tried again, elsewhere.
type Retry struct {
	// Set says that a rule gave one.
	Set bool
	// Attempts is how often a request is tried again.
	Attempts int
	// Codes are the status codes that are tried again, sorted, with blanks between.
	Codes string
	// Timeouts says that an attempt that took BackendTimeout is tried again too.
	Timeouts bool
}

// BackendTLS says how a backend proves who it is, and how we do.
type BackendTLS struct {
	// ServerName is sent, and must be in the certificate unless there are SubjectAltNames.
	ServerName string
	// Authority is a key of Config.Authorities; "" stands for the system's.
	Authority string
	// SubjectAltNames: at least one must be in the certificate, if there are any.
	SubjectAltNames []SubjectAltName
	// Certificate that we show, a key of Config.Certificates; "" is none.
	Certificate string
}

// SubjectAltName is a DNS name (which may begin with "*.") or a URI, of a certificate.
type SubjectAltName struct{ DNS, URI string }

// Endpoint is one address that serves a backend.
type Endpoint struct {
	// Name is a keyed hash of the pod's identity and port: it survives reloads, restarts and replicas, reveals nothing,
	// and a pod that inherits an address does not inherit its sessions.
	Name    string
	Address netip.AddrPort
	// ID is HAProxy's server id, from the same hash, unique within the backend; 1 to 2^31-1.
	ID int32
	// Draining endpoints keep their sessions and get no new ones.
	Draining bool
	// Display is how people know it: "pod namespace/name" or the address.
	Display string
}
