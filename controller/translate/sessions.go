package translate

import (
	"cmp"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// session is the persistence of one share. Unless it is sticky, the split decides first and the session pins within its
// backend (GEP-1619: "session persistence MUST NOT override which backend is selected"), so each share has a session of its
// own; all of a rule have one scope, and a session's entry is rewritten in place when only its limits or attributes change.
func session(rule *graph.Rule, id identity, backend graph.BackendKey) *model.Session {
	if rule.Session == nil {
		return nil
	}
	scope := id.scope()
	s := &model.Session{
		ID:       "s" + digest("session", scope, backendName(backend)),
		Scope:    scope,
		Backend:  backendDigest(backend),
		Absolute: wholeSeconds(rule.Session.Absolute),
		Idle:     wholeSeconds(rule.Session.Idle),
		Sticky:   rule.Session.Sticky,
	}
	if rule.Session.Type == gatewayv1.HeaderBasedSessionPersistence {
		s.Carrier, s.Name = model.HeaderLine, cmp.Or(rule.Session.Name, "limpet-"+digest("header", scope))
		return s
	}
	s.Carrier = model.Cookie
	s.Name, s.OtherName = cookieNames(rule, scope, backend)
	s.Permanent = rule.Session.Permanent
	s.Path = rule.Session.Path
	if s.Path == "" {
		s.Path = "/"
	}
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
