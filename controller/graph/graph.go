// Package graph says what the objects of a Snapshot mean together: which Gateways are ours, which routes attach to which
// listeners, what their references lead to, and what is wrong with each, as conditions.
//
// A Snapshot comes in, a Graph goes out. It is pure: no I/O, no clock, nothing of a later stage; a Snapshot is never
// changed. Builder remembers what it made, so that an unchanged object keeps its pointer from one Graph to the next and
// later stages can tell what changed by comparing pointers; a fresh Builder makes an equal Graph from the same Snapshot.
package graph

import (
	"crypto/sha256"
	"net/netip"
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
	// Routes are all HTTPRoutes with at least one parentRef to a Gateway of ours, oldest first, then by namespace and name:
	// the order in which the specification breaks ties.
	Routes []*HTTPRoute
	// Others are objects of kinds that Limpet does not serve (yet) and that refer to us, with the conditions that say so.
	Others []*Other
	// Unclaimed are objects of the Gateway API that are not ours, each with the reason: who works with files wants to know
	// why an object gets no status. In a cluster they are other controllers' business.
	Unclaimed []*Unclaimed

	backends backends
	attached map[*Listener]int
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
}

// Gateway is one Gateway of ours.
type Gateway struct {
	Source *gatewayv1.Gateway
	// Listeners are all of the spec's, in its order.
	Listeners []*Listener
	// Addresses are those requested that can be used, or the default's.
	Addresses []netip.Addr
	// Valid Gateways are programmed: at least one listener is, and it owns its addresses and ports.
	Valid bool
	// Conditions without Programmed of a valid Gateway, which only applying can tell.
	Conditions []metav1.Condition
}

// Key is the Gateway's namespace and name.
func (g *Gateway) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: g.Source.Namespace, Name: g.Source.Name}
}

// Listener is one listener of a Gateway.
type Listener struct {
	Gateway *Gateway
	Source  *gatewayv1.Listener
	Name    string
	// Hostname in lower case; "" takes every one.
	Hostname string
	// Port as specified, Bind as HAProxy binds it (with the port offset).
	Port, Bind uint16
	// TLS listeners terminate with Certificates, at least one if Valid.
	TLS          bool
	Certificates []*Certificate
	// Valid listeners are programmed. Routes attach to invalid ones too (they count) but are not served there.
	Valid          bool
	SupportedKinds []gatewayv1.RouteGroupKind
	// Conditions without Programmed of a valid listener.
	Conditions []metav1.Condition

	allowed allowedRoutes
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

// HTTPRoute is one HTTPRoute with a parentRef of ours.
type HTTPRoute struct {
	Source *gatewayv1.HTTPRoute
	// Hostnames are the spec's valid ones in lower case; none stands for every one.
	Hostnames []string
	// Parents are the parentRefs that lead to Gateways of ours, in the spec's order.
	Parents []*RouteParent
	Rules   []*HTTPRule
}

// Key is the route's namespace and name.
func (r *HTTPRoute) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Source.Namespace, Name: r.Source.Name}
}

// RouteParent is one parentRef of a route with what came of it.
type RouteParent struct {
	// Ref is the spec's, verbatim.
	Ref gatewayv1.ParentReference
	// Gateway that it leads to.
	Gateway *Gateway
	// Listeners that the route attaches to through this reference; none if it is not accepted.
	Listeners []*Listener
	// Blocked are the listeners that a route which is not accepted would attach to, if one of its rules could be honoured.
	// All its rules are then Dropped: what they match is answered there with 500, like a Dropped rule of an accepted route.
	Blocked    []*Listener
	Conditions []metav1.Condition
}

// HTTPRule is one rule of an HTTPRoute.
type HTTPRule struct {
	Index int
	Name  string
	// Matches are never empty, unless the rule is Dropped: a rule without one matches the prefix "/".
	Matches []HTTPMatch
	// Dropped rules are not served: something in them cannot be honoured, and a condition says what. A Dropped rule has
	// nothing but those of its Matches that are valid, and what they match is answered with 500: never by a broader rule.
	Dropped        bool
	RequestHeaders *HeaderChange
	Redirect       *Redirect
	// Backends in the spec's order. Empty without Redirect: 500.
	Backends []HTTPBackendRef
	Session  *Session
}

// HTTPMatch is one match of a rule.
type HTTPMatch struct {
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

// HeaderChange is a RequestHeaderModifier whose names and values are valid.
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

// HTTPBackendRef is one backendRef of a rule.
type HTTPBackendRef struct {
	Weight int32
	// Invalid references answer their share with 500.
	Invalid bool
	Backend BackendKey
	// RequestHeaders is the backendRef's own filter.
	RequestHeaders *HeaderChange
}

// BackendKey names a Service's port.
type BackendKey struct {
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
}

// Backend is a Service's port with its endpoints.
type Backend struct {
	Key BackendKey
	// Endpoints in the order of their identity.
	Endpoints []Endpoint
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

// Other is an object of a kind that Limpet does not serve.
type Other struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	Generation int64
	// Parents holds the conditions for each parentRef (of a route) or ancestor; Conditions those of the object itself.
	Parents    []OtherParent
	Conditions []metav1.Condition
}

// OtherParent is one parentRef or ancestorRef of an Other.
type OtherParent struct {
	Ref        gatewayv1.ParentReference
	Conditions []metav1.Condition
}
