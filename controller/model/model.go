// Package model is what the data plane must know, in plain structs: what the templates see, and a public contract for
// those who override one.
//
// translate fills it in from the graph, templates render it. It knows nothing of Kubernetes and nothing of HAProxy's
// syntax, holds no key material but a listener's own certificates, and can be serialised. It must never hold a value
// that was not validated for its meaning (a cookie name is a token, a duration is in bounds); quoting for a file or a
// socket is the templates' work.
package model

import (
	"net/netip"
	"time"

	"github.com/limpet-gateway/limpet/internal/table"
)

// Config is one complete configuration. Frame is small and a change of it needs a reload; everything else is data that
// is changed at run time.
type Config struct {
	Frame Frame
	// Hosts leads from HostKey to the virtual host that answers for it.
	Hosts table.Table[*Host]
	// Parents leads from a virtual host's ID to the one that is asked when nothing in it matched.
	Parents table.Table[*Parent]
	// Paths leads from PrefixKey, ExactKey, or a virtual host and a regular expression's literal beginning, to what a
	// request with that path is checked against.
	Paths table.Table[*Path]
	// Rules leads from a rule's ID to what happens to a request that it matched.
	Rules table.Table[*Rule]
	// Backends leads from a backend's name to its endpoints.
	Backends table.Table[*Backend]
}

// Owner names what a piece of configuration comes from, as "HTTPRoute default/shop"; a condition about the piece belongs
// there. A listener is "Listener default/gw/https", and one address and port of a Gateway is
// "Port default/gw 127.0.0.1:8080": what cannot be had of a Gateway leaves the rest of it in place.
type Owner string

// Frame is what HAProxy reads only at start: ports, certificates, limits.
type Frame struct {
	Ports []Port
	// TrustedProxies may say who the client is: their X-Forwarded-* headers are kept and extended.
	TrustedProxies []netip.Prefix
}

// Port is one address and port that HAProxy listens on.
type Port struct {
	// ID is stable over restarts and unique: "p" and a hash of the Gateway's name and the listener's port.
	ID      string
	Owner   Owner
	Address netip.Addr
	// Bind is the port that HAProxy binds, Public the one that clients know (the listener's).
	Bind, Public uint16
	// Servers are the TLS servers that share the port, told apart by SNI; a port without any speaks plain HTTP.
	Servers []TLSServer
}

// TLS says whether clients speak TLS on the port.
func (p Port) TLS() bool { return len(p.Servers) > 0 }

// TLSServer is one HTTPS listener on a port.
type TLSServer struct {
	// ID is stable and unique: "t" and a hash of the Gateway's and the listener's name.
	ID    string
	Owner Owner
	// Hostname is the SNI it answers for: exact, "*.suffix", or "" for every one (and none).
	Hostname     string
	Certificates []Certificate
}

// Certificate is one certificate chain with its key, PEM, in one piece as HAProxy reads it.
type Certificate struct {
	// ID is a file name without its ending: a hash of the Secret's name.
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

// Target is where a matched request goes: to a backend at once, or to a rule that has more to say. Exactly one is set.
type Target struct {
	// Backend is a key of Config.Backends.
	Backend string
	// Rule is a key of Config.Rules.
	Rule string
}

// Rule is what happens to a request that needs more than a backend.
type Rule struct {
	// ID is "r" and a hash of the rule's identity: the route's namespace and name, and the rule's name, else its session's
	// given name, else its matches. Never an index: reordered rules keep their sessions.
	ID    string
	Owner Owner
	// Redirect answers the request; everything below is then empty.
	Redirect *Redirect
	// RequestHeaders are changed before the backend sees them.
	RequestHeaders *HeaderChange
	// Split holds one entry for each backendRef, with the weights as given; they are never all 0.
	Split []Share
}

// Share is one backendRef of a rule.
type Share struct {
	Weight uint32
	// Backend is a key of Config.Backends; "" answers 500 (an invalid backendRef's share).
	Backend string
	// RequestHeaders are changed for this share alone, after the rule's.
	RequestHeaders *HeaderChange
	Session        *Session
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
	// ID is a key of its own: "s" and a hash of scope and backend.
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
}

// Carrier is what carries a session's token.
type Carrier string

// What can carry a token.
const (
	Cookie     Carrier = "cookie"
	HeaderLine Carrier = "header"
)

// Backend is one Service port (later also other kinds) with its endpoints.
type Backend struct {
	// Name is how people know it and its key in Config.Backends: "Service/namespace/name/port".
	Name      string
	Owner     Owner
	Endpoints []Endpoint
}

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
