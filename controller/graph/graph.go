// Package graph says what the objects of a Snapshot mean together: which Gateways are ours, which routes attach to which
// listeners, what their references lead to, and what is wrong with each, as conditions.
//
// A Snapshot comes in, a Graph goes out. It is pure: no I/O, no clock, nothing of a later stage; a Snapshot is never
// changed. Builder remembers what it made, so that an unchanged object keeps its pointer from one Graph to the next and
// later stages can tell what changed by comparing pointers; a fresh Builder makes an equal Graph from the same Snapshot.
package graph

import (
	"crypto/sha256"
	"iter"
	"math"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Graph is the objects with their meaning. Nothing in it may be changed; a thing that did not change since the last
// Graph of the same Builder is the same pointer.
type Graph struct {
	// Classes are all GatewayClasses that name our controller.
	Classes []*GatewayClass
	// Gateways of our classes, oldest first, then by namespace and name.
	Gateways []*Gateway
	// ListenerSets of our Gateways, by Gateway, then oldest first, then by namespace and name.
	ListenerSets []*ListenerSet
	// Routes are all routes of the kinds that are served with at least one parentRef to a Gateway of ours, oldest first, then by
	// namespace and name: the order in which the specification breaks ties.
	Routes []*Route
	// Reported are the BackendTLSPolicies and XBackends that a Gateway of ours reaches through a route, by kind, namespace and
	// name.
	Reported []*Reported
	// Others are objects of kinds that Limpet does not serve (yet) and that refer to us, with the conditions that say so.
	Others []*Other
	// Unclaimed are objects of the Gateway API that are not ours, each with the reason: who works with files wants to know
	// why an object gets no status. In a cluster they are other controllers' business.
	Unclaimed []*Unclaimed
	// HAProxy is what LimpetParameters say of what one HAProxy has only once.
	HAProxy HAProxyParameters

	backends  backends
	xbackends xbackendTable
	attached  map[*Listener]int
}

// AttachedRoutes is the number of accepted routes that attach to a listener of this Graph, valid or not.
func (g *Graph) AttachedRoutes(listener *Listener) int { return g.attached[listener] }

// Unclaimed is an object of the Gateway API that is not ours.
type Unclaimed struct {
	Kind, Namespace, Name string
	// Message says why.
	Message string
}

// GatewayClass is one class of ours.
type GatewayClass struct {
	Source *gatewayv1.GatewayClass
	// Accepted classes may have Gateways.
	Accepted   bool
	Conditions []metav1.Condition

	parameters *parameters
}

// Gateway is one Gateway of ours.
type Gateway struct {
	Source *gatewayv1.Gateway
	// Listeners are all of the spec's, in its order.
	Listeners []*Listener
	// Sets are the ListenerSets that it allows, in order of precedence.
	Sets []*ListenerSet
	// Addresses are bound: those requested that can be used, or the default's; in a pod those of its families.
	Addresses []netip.Addr
	// Requested are the addresses that the Gateway's Service must have, for Gateways that share a pod.
	Requested []netip.Addr
	// ClientCertificate is shown to backends that ask for one; nil if there is none, or it cannot be used.
	ClientCertificate *Certificate
	// Parameters are those of LimpetParameters.
	Parameters Parameters
	// Accepted Gateways have a listener that can be served, and nothing that must not be.
	Accepted bool
	// Valid Gateways are programmed: at least one listener is, and it owns its addresses and ports.
	Valid bool
	// Conditions without Programmed of a valid Gateway, which only applying can tell.
	Conditions []metav1.Condition
}

// Key is the Gateway's namespace and name.
func (g *Gateway) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: g.Source.Namespace, Name: g.Source.Name}
}

// AllListeners are the Gateway's own and those of its sets, in order of precedence.
func (g *Gateway) AllListeners() []*Listener {
	all := slices.Clone(g.Listeners)
	for _, set := range g.Sets {
		all = append(all, set.Listeners...)
	}
	return all
}

// ListenerSet adds listeners to a Gateway (GEP-1713).
type ListenerSet struct {
	Source *gatewayv1.ListenerSet
	// Gateway is its parent, also of one that the Gateway does not allow.
	Gateway *Gateway
	// Listeners are all of the spec's, in its order; none if the Gateway does not allow the set.
	Listeners []*Listener
	// Accepted sets are attached to their Gateway, Valid ones are programmed with it.
	Accepted, Valid bool
	// Conditions without Programmed of a valid set, which only applying can tell.
	Conditions []metav1.Condition
}

// Key is the set's namespace and name.
func (s *ListenerSet) Key() types.NamespacedName { return nameOf(s.Source) }

// Listener is one listener of a Gateway.
type Listener struct {
	Gateway *Gateway
	// Set is the ListenerSet that it stands in, nil for one of the Gateway's own.
	Set *ListenerSet
	// Source is the spec's, also for one of a set, whose entries have the same fields.
	Source *gatewayv1.Listener
	Name   string
	// Hostname in lower case; "" takes every one.
	Hostname string
	// Port as specified, 0 if that is none. Bind as HAProxy binds it: with the port offset, or in a pod the container port that
	// the Gateway's port has; 0 for none yet.
	Port, Bind uint16
	// Protocol is what the listener takes, "" if Limpet does not serve it.
	Protocol Protocol
	// Certificates of a listener that terminates TLS; at least one if Valid.
	Certificates []*Certificate
	// Clients says which certificates clients must show; nil asks for none. It is the same for all TLS listeners of a port.
	Clients *ClientValidation
	// Accepted listeners may have a port, also while they are not Valid (their certificate is missing).
	Accepted bool
	// Valid listeners are programmed. Routes attach to invalid ones too (they count) but are not served there.
	Valid          bool
	SupportedKinds []gatewayv1.RouteGroupKind
	// Conditions without Programmed of a valid listener.
	Conditions []metav1.Condition

	allowed allowedNamespaces
}

// Protocol is what a listener takes.
type Protocol string

// The protocols that are served. Those of TLS share a port, told apart by the server name.
const (
	HTTP           Protocol = "HTTP"
	HTTPS          Protocol = "HTTPS"
	TLSTerminate   Protocol = "TLS, terminated"
	TLSPassthrough Protocol = "TLS, passed through"
	TCP            Protocol = "TCP"
)

// TLS says that clients speak TLS.
func (p Protocol) TLS() bool { return p == HTTPS || p == TLSTerminate || p == TLSPassthrough }

// Terminates says that TLS ends at the listener, which has certificates for it.
func (p Protocol) Terminates() bool { return p == HTTPS || p == TLSTerminate }

// Layer4 says that connections are forwarded, whatever is spoken in them.
func (p Protocol) Layer4() bool { return p == TLSTerminate || p == TLSPassthrough || p == TCP }

// SharesPort says whether listeners of two protocols can be on one port, if their hostnames differ.
func (p Protocol) SharesPort(other Protocol) bool {
	return p == other && p != TCP || p.TLS() && other.TLS()
}

// Namespace is that of the object in which the listener stands.
func (l *Listener) Namespace() string {
	if l.Set != nil {
		return l.Set.Source.Namespace
	}
	return l.Gateway.Source.Namespace
}

// String is the listener in words, unlike every other one's.
func (l *Listener) String() string {
	if l.Set != nil {
		return "ListenerEntry " + l.Set.Key().String() + "/" + l.Name
	}
	return "Listener " + l.Gateway.Key().String() + "/" + l.Name
}

// Generation is that of the object in which the listener stands.
func (l *Listener) Generation() int64 {
	if l.Set != nil {
		return l.Set.Source.Generation
	}
	return l.Gateway.Source.Generation
}

// ClientValidation is what is demanded of clients (GatewayFrontendTLS).
type ClientValidation struct {
	Authority *Authority
	// InsecureFallback asks for a certificate, and serves clients without one or with a wrong one too.
	InsecureFallback bool
}

// Certificate is a Secret of type kubernetes.io/tls that a listener may use.
type Certificate struct {
	Secret types.NamespacedName
	// Chain and Key are PEM, parsed and found to match, normalised: no comments, no blank lines, LF.
	Chain, Key string
	// NotAfter is when the first certificate of the chain expires; it is served even then.
	NotAfter time.Time
	// Fingerprint of both, to compare by.
	Fingerprint [sha256.Size]byte
}

// Route is one route with a parentRef of ours.
type Route struct {
	// Kind is one of the kinds of routes, and Source an object of that kind.
	Kind   string
	Source metav1.Object
	// Hostnames are the spec's valid ones in lower case; none stands for every one, unless NoHostname says that the spec has
	// only invalid ones.
	Hostnames  []string
	NoHostname bool
	// Parents are the parentRefs that lead to Gateways of ours or to their ListenerSets, in the spec's order.
	Parents []*RouteParent
	Rules   []*Rule
	// TLSBackends are those of its backends that are spoken to in TLS, with the client certificate of the Gateway, if that has
	// one. XBackends are not here: they say themselves which certificate is shown.
	TLSBackends []BackendKey
}

// Layer4 says that the route is for connections, whatever is spoken in them.
func (r *Route) Layer4() bool { return layer4(r.Kind) }

// Key is the route's namespace and name.
func (r *Route) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Source.GetNamespace(), Name: r.Source.GetName()}
}

// RouteParent is one parentRef of a route with what came of it.
type RouteParent struct {
	// Ref is the spec's, verbatim.
	Ref gatewayv1.ParentReference
	// Gateway that it leads to, or whose ListenerSet it leads to.
	Gateway *Gateway
	// Listeners that the route attaches to through this reference; none if it is not accepted.
	Listeners []*Listener
	// Blocked are the listeners that a route which is not accepted would attach to, if one of its rules could be honoured.
	// All its rules are then Dropped: what they match is answered there with 500, like a Dropped rule of an accepted route.
	Blocked    []*Listener
	Conditions []metav1.Condition
}

// Rule is one rule of a Route.
type Rule struct {
	Index int
	Name  string
	// Matches are never empty, unless the rule is Dropped: a rule without one matches the prefix "/", and so does each at layer 4.
	Matches []Match
	// Dropped rules are not served: something in them cannot be honoured, and a condition says what. A Dropped rule has
	// nothing but those of its Matches that are valid, and what they match is answered with 500: never by a broader rule.
	Dropped bool
	Filters Filters
	// Backends in the spec's order. Empty without Redirect: 500, and at layer 4 a closed connection.
	Backends []BackendRef
	Session  *Session
	// RequestTimeout bounds the time until the answer begins, over all attempts, BackendTimeout that of one attempt; 0 is none
	// given, Unlimited is "0s".
	RequestTimeout, BackendTimeout time.Duration
	// Retry is nil where only failed connections are tried again.
	Retry *Retry
}

// Unlimited is a timeout that is given as none: "0s".
const Unlimited = time.Duration(math.MaxInt64)

// Reached are the backends that the rule sends requests to, mirrors' included.
func (r *Rule) Reached() iter.Seq[BackendKey] {
	return func(yield func(BackendKey) bool) {
		lists := [][]Mirror{r.Filters.Mirrors}
		for _, ref := range r.Backends {
			if !ref.Invalid && !yield(ref.Backend) {
				return
			}
			lists = append(lists, ref.Filters.Mirrors)
		}
		for _, mirror := range slices.Concat(lists...) {
			if !yield(mirror.Backend) {
				return
			}
		}
	}
}

// Filters are what happens to a request and its answer, of a rule or of one backendRef. All values are valid.
type Filters struct {
	RequestHeaders, ResponseHeaders *HeaderChange
	Redirect                        *Redirect
	Rewrite                         *Rewrite
	Mirrors                         []Mirror
	CORS                            *CORS
}

// Rewrite is a URLRewrite.
type Rewrite struct {
	// Hostname is what the backend sees; "" keeps it.
	Hostname string
	// Path replaces the full path or the matched prefix; nil keeps it.
	Path *gatewayv1.HTTPPathModifier
}

// Mirror is a RequestMirror: Numerator of Denominator requests are also sent to Backend. One whose backendRef is not valid
// is not here: a condition says so.
type Mirror struct {
	Backend                BackendKey
	Numerator, Denominator int32
}

// CORS says which other origins may use an answer.
type CORS struct {
	// Origins are "*", or scheme://host[:port] in which the host may begin with "*." or be "*".
	Origins          []string
	Credentials      bool
	Methods, Headers []string
	Expose           []string
	MaxAge           time.Duration
}

// Retry says which answers are tried again. Failed connections always are.
type Retry struct {
	// Attempts is how often; 0 never, not even after a failed connection.
	Attempts int
	// Codes are sorted.
	Codes []int
}

// Match is one match of a rule.
type Match struct {
	// Index within the rule.
	Index    int
	PathType gatewayv1.PathMatchType
	// Path as specified, a PathPrefix without its trailing slash ("" for "/"), a regular expression as written.
	Path string
	// Method, "" for every one.
	Method  string
	Headers []ValueMatch
	Query   []ValueMatch
}

// ValueMatch compares a header (name in lower case) or query parameter.
type ValueMatch struct {
	Name, Value string
	Regex       bool
}

// HeaderChange is a RequestHeaderModifier or ResponseHeaderModifier whose names and values are valid.
type HeaderChange struct {
	Set, Add []HeaderValue
	Remove   []string
}

// HeaderValue is one header field.
type HeaderValue struct{ Name, Value string }

// Redirect is a RequestRedirect whose values are valid.
type Redirect struct {
	Scheme   string
	Hostname string
	Port     uint16
	Status   int
	// Path replaces the full path or the matched prefix; nil keeps it.
	Path *gatewayv1.HTTPPathModifier
}

// BackendRef is one backendRef of a rule.
type BackendRef struct {
	Weight int32
	// Invalid references answer their share with 500, or close the connection.
	Invalid bool
	Backend BackendKey
	// Session is an XBackend's own, which goes before the rule's.
	Session *Session
	// Filters are the backendRef's own, after the rule's.
	Filters Filters
}

// BackendKey names a Service's port, or an XBackend.
type BackendKey struct {
	// Kind is "Service" or "XBackend"; the port of an XBackend is 0.
	Kind            string
	Namespace, Name string
	Port            int32
}

// Session is a rule's sessionPersistence, valid and with its defaults.
type Session struct {
	Type gatewayv1.SessionPersistenceType
	// Name of the cookie or header as given; "" to be generated.
	Name      string
	Absolute  time.Duration
	Permanent bool
	// Path of the cookie, "/" by default.
	Path string
	// Idle ends a session that is not used (the API's shape up to v1.6 has it); 0 never.
	Idle time.Duration
	// Sticky sessions decide the backend too, also one of weight 0: what the API's shape up to v1.6 promised.
	Sticky bool
}

// Backend is a Service's port or an XBackend, with its endpoints.
type Backend struct {
	Key BackendKey
	// Endpoints in the order of their identity.
	Endpoints []Endpoint
	// Untrusted says that TLS is demanded and there is nothing to verify a certificate by: nothing is sent to the endpoints but
	// what a client has encrypted itself.
	Untrusted bool
	// External is the name and port that DNS resolves instead, "" for a backend with endpoints.
	External string
	// HTTP2 backends are spoken to in HTTP/2 only.
	HTTP2 bool
	// TLS is nil for plain text.
	TLS *BackendTLS
}

// BackendTLS says how a backend proves who it is, from a BackendTLSPolicy or an XBackend.
type BackendTLS struct {
	// Hostname is sent as server name, and must be in the certificate unless SubjectAltNames are given.
	Hostname string
	// Authority has signed the certificate; nil stands for the system's.
	Authority *Authority
	// SubjectAltNames: at least one must be in the certificate, if there are any.
	SubjectAltNames []SubjectAltName
	// Certificate is the one that we show; nil for the Gateway's, if it has one.
	Certificate *Certificate
}

// SubjectAltName is a DNS name (which may begin with "*.") or a URI, of a certificate.
type SubjectAltName struct{ DNS, URI string }

// Authority is a bundle of CA certificates from ConfigMaps or Secrets.
type Authority struct {
	// Source is the objects that it comes from, as "ConfigMap default/ca".
	Source string
	// PEM is parsed and normalised.
	PEM string
}

// Endpoint is one address of a Backend, of one family per pod.
type Endpoint struct {
	Address netip.AddrPort
	// PodUID and Pod are empty for an endpoint without a pod.
	PodUID types.UID
	Pod    types.NamespacedName
	// Draining endpoints serve their sessions, but take no new ones: terminating or not ready, yet serving.
	Draining bool
}

// Reported is an object whose status is by ancestor: for each Gateway that reaches it, or its target, through a route.
type Reported struct {
	APIVersion, Kind string
	Source           metav1.Object
	Ancestors        []Ancestor
}

// Ancestor is a Gateway with what an object that it reaches is told.
type Ancestor struct {
	Ref        gatewayv1.ParentReference
	Conditions []metav1.Condition
}

// Other is an object of a kind that Limpet does not serve.
type Other struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	Generation int64
	// Parents holds the conditions for each parentRef (of a route) or ancestor.
	Parents []OtherParent
}

// OtherParent is one parentRef or ancestorRef of an Other.
type OtherParent struct {
	Ref        gatewayv1.ParentReference
	Conditions []metav1.Condition
}
