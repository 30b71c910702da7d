package graph

import (
	"slices"
	"strings"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

const (
	// maxCookieName leaves room in a browser's 4 KiB for what the cookie carries.
	maxCookieName = 128
	maxCookiePath = 1024
	// maxSession is ten years; browsers keep cookies for 400 days at most.
	maxSession = 10 * 365 * 24 * time.Hour
)

// reservedHeaders have a meaning of their own in a request or a response; a token in one of them would replace it.
var reservedHeaders = append([]string{
	"accept", "age", "authorization", "cache-control", "content-encoding", "content-range", "content-type", "cookie", "date",
	"etag", "expect", "expires", "forwarded", "host", "http2-settings", "last-modified", "location", "origin",
	"proxy-authenticate", "proxy-authorization", "range", "referer", "retry-after", "server", "set-cookie",
	"strict-transport-security", "user-agent", "vary", "via", "www-authenticate", "x-forwarded-for", "x-forwarded-host",
	"x-forwarded-port", "x-forwarded-proto",
}, framing...)

// readSession takes both shapes that the field had: that of v1.7 must have cookie or header, that of v1.1 to v1.6 has neither.
func (d *ruleDraft) readSession() {
	source := d.source.SessionPersistence //nolint:staticcheck // deprecated upstream, widely used, and served by us
	if source == nil {
		return
	}
	before := len(d.problems)
	session := &Session{
		Type:     valueOr(source.Type, gatewayv1.CookieBasedSessionPersistence),
		Absolute: d.readLimit("absoluteTimeout", source.AbsoluteTimeout),
	}
	isNew, old := source.Cookie != nil || source.Header != nil, d.sessions[source]
	switch {
	case session.Type != gatewayv1.CookieBasedSessionPersistence && session.Type != gatewayv1.HeaderBasedSessionPersistence:
		d.refuseSession("type", "%q is not one of Cookie, Header", session.Type)
	case isNew && old != nil:
		d.refuse("sessionPersistence", "cookie and header (Gateway API v1.7) must not stand beside sessionName, cookieConfig and "+
			"idleTimeout (v1.6 and before): use either")
	case isNew:
		d.readNewSession(session, source)
	default:
		d.readOldSession(session, source, old)
	}
	if len(d.problems) == before {
		d.node.Session = session
	}
}

func (d *ruleDraft) readNewSession(session *Session, source *gatewayv1.SessionPersistence) {
	if session.Type == gatewayv1.CookieBasedSessionPersistence {
		if source.Header != nil {
			d.refuseSession("header", "must not be set for type Cookie")
		}
		d.readCookie(session, source)
		return
	}
	if source.Cookie != nil {
		d.refuseSession("cookie", "must not be set for type Header")
	}
	d.readSessionHeader(session, source.Header)
}

// readOldSession reads the shape of v1.1 to v1.6, all of whose fields are optional. A session in it decides the backend too.
func (d *ruleDraft) readOldSession(session *Session, source *gatewayv1.SessionPersistence, old *cluster.OldSession) {
	session.Sticky = true
	isCookie := session.Type == gatewayv1.CookieBasedSessionPersistence
	if isCookie {
		session.Path = "/"
	}
	if old == nil {
		return
	}
	session.Idle = d.readLimit("idleTimeout", old.IdleTimeout)
	if old.SessionName != nil {
		session.Name = *old.SessionName
		if isCookie {
			d.checkCookieName("sessionName", session.Name, session.Path)
		} else {
			d.checkSessionHeader("sessionName", session.Name)
		}
	}
	switch {
	case old.CookieConfig == nil:
	case isCookie:
		d.readLifetime("cookieConfig.lifetimeType", session, source, old.CookieConfig.LifetimeType)
	default:
		d.refuseSession("cookieConfig", "must not be set for type Header")
	}
}

func (d *ruleDraft) refuseSession(field, format string, args ...any) {
	d.refuse("sessionPersistence."+field, format, args...)
}

// readLimit takes whole seconds: that is how sessions are timed.
func (d *ruleDraft) readLimit(field string, source *gatewayv1.Duration) time.Duration {
	if source == nil {
		return 0
	}
	timeout, valid := parseDuration(string(*source))
	switch {
	case !valid:
		d.refuseSession(field, "%s is not a duration such as 30m or 1h30m", quoted(string(*source)))
	case timeout < time.Second || timeout%time.Second != 0:
		d.refuseSession(field, "%q must be whole seconds, at least one", *source)
	case timeout > maxSession:
		d.refuseSession(field, "%q must not be longer than ten years", *source)
	}
	return timeout
}

func (d *ruleDraft) readCookie(session *Session, source *gatewayv1.SessionPersistence) {
	cookie := source.Cookie
	if cookie == nil {
		d.refuseSession("cookie", "must be set for type Cookie, {} suffices")
		return
	}
	session.Path = valueOr(cookie.Path, "/")
	if cookie.Name != nil {
		session.Name = string(*cookie.Name)
		d.checkCookieName("cookie.name", session.Name, session.Path)
	}
	if wrong := checkCookiePath(session.Path); wrong != "" {
		d.refuseSession("cookie.path", "%s %s", quoted(session.Path), wrong)
	}
	d.readLifetime("cookie.lifetimeType", session, source, cookie.LifetimeType)
}

func (d *ruleDraft) readLifetime(
	field string, session *Session, source *gatewayv1.SessionPersistence, lifetime *gatewayv1.CookieLifetimeType,
) {
	switch lifetime := valueOr(lifetime, gatewayv1.SessionCookieLifetimeType); lifetime {
	case gatewayv1.SessionCookieLifetimeType:
	case gatewayv1.PermanentCookieLifetimeType:
		session.Permanent = true
		if source.AbsoluteTimeout == nil {
			d.refuseSession("absoluteTimeout", "must be set where %s is Permanent", field)
		}
	default:
		d.refuseSession(field, "%q is not one of Session, Permanent", lifetime)
	}
}

func (d *ruleDraft) checkCookieName(field, name, path string) {
	if wrong := checkToken(name, maxCookieName); wrong != "" {
		d.refuseSession(field, "%s %s", quoted(name), wrong)
	}
	if hasPrefixFold(name, "__Host-") && path != "/" {
		d.refuseSession(field, "%s: the prefix __Host- demands the path /", quoted(name))
	}
}

// demandsSecure says whether browsers drop the session's cookie if it lacks Secure, as it does on a listener for plain HTTP.
func demandsSecure(session *Session) bool {
	return session != nil && session.Type == gatewayv1.CookieBasedSessionPersistence &&
		(hasPrefixFold(session.Name, "__Host-") || hasPrefixFold(session.Name, "__Secure-"))
}

// demandsSecure returns the session of the rule, or of one of its XBackends, whose cookie browsers drop if it lacks Secure.
func (r *Rule) demandsSecure() *Session {
	if demandsSecure(r.Session) {
		return r.Session
	}
	for _, ref := range r.Backends {
		if demandsSecure(ref.Session) {
			return ref.Session
		}
	}
	return nil
}

// hasPrefixFold compares without case, as browsers do with these prefixes.
func hasPrefixFold(name, prefix string) bool {
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}

// checkCookiePath keeps the value one attribute of Set-Cookie.
func checkCookiePath(path string) string {
	switch {
	case !strings.HasPrefix(path, "/"):
		return "must begin with '/'"
	case len(path) > maxCookiePath:
		return "is longer than 1024 characters"
	case strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r > '~' || r == ';' || r == ',' }):
		return "must consist of printable ASCII characters other than ';' and ','"
	}
	return ""
}

func (d *ruleDraft) readSessionHeader(session *Session, header *gatewayv1.HeaderConfig) {
	if header == nil {
		d.refuseSession("header", "must be set for type Header")
		return
	}
	session.Name = string(header.Name)
	d.checkSessionHeader("header.name", session.Name)
}

func (d *ruleDraft) checkSessionHeader(field, name string) {
	if wrong := checkToken(name, maxName); wrong != "" {
		d.refuseSession(field, "%s %s", quoted(name), wrong)
	}
	if slices.Contains(reservedHeaders, strings.ToLower(name)) {
		d.refuseSession(field, "%q has a meaning of its own in HTTP: choose another name", name)
	}
}
