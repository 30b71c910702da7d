package translate

import (
	"cmp"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// shareSession is the persistence of one share: that of its XBackend, else the rule's.
func shareSession(rule *graph.Rule, id identity, ref *graph.BackendRef) *model.Session {
	if ref.Session != nil {
		return ownSession(ref)
	}
	return session(rule, id, ref.Backend)
}

// ownSession is that of an XBackend. Its scope is the XBackend's: a session holds in all rules and routes that lead there.
func ownSession(ref *graph.BackendRef) *model.Session {
	id := identity{ref.Backend.Kind, ref.Backend.Namespace, ref.Backend.Name}
	s := newSession(ref.Session, id.scope(), ref.Backend)
	s.Name = cmp.Or(ref.Session.Name, "limpet-"+digest("cookie", id.scope(), backendName(ref.Backend)))
	return s
}

// session is the persistence of one share. Unless it is sticky, the split decides first and the session pins within its
// backend (GEP-1619: "session persistence MUST NOT override which backend is selected"), so each share has a session of its
// own; all of a rule have one scope, and a session's entry is rewritten in place when only its limits or attributes change.
func session(rule *graph.Rule, id identity, backend graph.BackendKey) *model.Session {
	if rule.Session == nil {
		return nil
	}
	s := newSession(rule.Session, id.scope(), backend)
	if s.Carrier == model.HeaderLine {
		s.Name = cmp.Or(rule.Session.Name, "limpet-"+digest("header", s.Scope))
	} else {
		s.Name, s.OtherName = cookieNames(rule, s.Scope, backend)
	}
	return s
}

// newSession returns one without a name, and without an ID: that belongs to the model's rule, since several may share a scope.
func newSession(source *graph.Session, scope string, backend graph.BackendKey) *model.Session {
	s := &model.Session{
		Scope:    scope,
		Backend:  backendDigest(backend),
		Absolute: wholeSeconds(source.Absolute),
		Idle:     wholeSeconds(source.Idle),
		Sticky:   source.Sticky,
	}
	if source.Type == gatewayv1.HeaderBasedSessionPersistence {
		s.Carrier = model.HeaderLine
		return s
	}
	s.Carrier = model.Cookie
	s.Permanent = source.Permanent
	s.Path = cmp.Or(source.Path, "/")
	return s
}

// cookieNames are the name that a cookie is given, and the other one that is taken too.
//
// A generated name is unlike that of every other rule and backend. A given name stands as it is where a rule has one
// backend; where it has several, each needs a cookie of its own and gets a suffix, unless the session decides the backend:
// then there is one for all. A rule that goes from one backend to several, or back, takes the tokens under the name it had:
// nobody is moved by a canary's first step.
func cookieNames(rule *graph.Rule, scope string, backend graph.BackendKey) (name, other string) {
	given, sticky := rule.Session.Name, rule.Session.Sticky
	switch {
	case given == "" && sticky:
		return "limpet-" + digest("cookie", scope), ""
	case given == "":
		return "limpet-" + digest("cookie", scope, backendName(backend)), ""
	}
	suffixed := given + "-" + backendDigest(backend)
	if severalBackends(rule) && !sticky {
		return suffixed, given
	}
	return given, suffixed
}

// severalBackends counts backendRefs as they are written: a name must not change because a Service went away.
func severalBackends(rule *graph.Rule) bool {
	for _, ref := range rule.Backends {
		if ref.Backend != rule.Backends[0].Backend {
			return true
		}
	}
	return false
}

// wholeSeconds rounds up: what is left of a second must not become "never".
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}
