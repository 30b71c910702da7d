package graph

import (
	"slices"
	"strings"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
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

func (d *ruleDraft) readSession() {
	source := d.source.SessionPersistence //nolint:staticcheck // deprecated upstream, widely used, and served by us
	if source == nil {
		return
	}
	before := len(d.problems)
	session := &Session{Type: valueOr(source.Type, gatewayv1.CookieBasedSessionPersistence)}
	session.Absolute = d.readLimit("absoluteTimeout", source.AbsoluteTimeout)
	switch session.Type {
	case gatewayv1.CookieBasedSessionPersistence:
		if source.Header != nil {
			d.refuseSession("header", "must not be set for type Cookie")
		}
		d.readCookie(session, source)
	case gatewayv1.HeaderBasedSessionPersistence:
		if source.Cookie != nil {
			d.refuseSession("cookie", "must not be set for type Header")
		}
		d.readSessionHeader(session, source.Header)
	default:
		d.refuseSession("type", "%q is not one of Cookie, Header", session.Type)
	}
	if len(d.problems) == before {
		d.node.Session = session
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
		d.refuseSession("cookie", "must be set for type Cookie, {} suffices; "+
			"the fields sessionName, cookieConfig and idleTimeout of Gateway API v1.6 and before are not built yet")
		return
	}
	session.Path = valueOr(cookie.Path, "/")
	if cookie.Name != nil {
		session.Name = string(*cookie.Name)
		d.checkCookieName(session.Name, session.Path)
	}
	if wrong := checkCookiePath(session.Path); wrong != "" {
		d.refuseSession("cookie.path", "%s %s", quoted(session.Path), wrong)
	}
	switch lifetime := valueOr(cookie.LifetimeType, gatewayv1.SessionCookieLifetimeType); lifetime {
	case gatewayv1.SessionCookieLifetimeType:
	case gatewayv1.PermanentCookieLifetimeType:
		session.Permanent = true
		if source.AbsoluteTimeout == nil {
			d.refuseSession("absoluteTimeout", "must be set where cookie.lifetimeType is Permanent")
		}
	default:
		d.refuseSession("cookie.lifetimeType", "%q is not one of Session, Permanent", lifetime)
	}
}

func (d *ruleDraft) checkCookieName(name, path string) {
	if wrong := checkToken(name, maxCookieName); wrong != "" {
		d.refuseSession("cookie.name", "%s %s", quoted(name), wrong)
	}
	if hasPrefixFold(name, "__Host-") && path != "/" {
		d.refuseSession("cookie.name", "%s: the prefix __Host- demands the path /", quoted(name))
	}
}

// demandsSecure says whether browsers drop the session's cookie if it lacks Secure, as it does on a listener for plain HTTP.
func demandsSecure(session *Session) bool {
	return session != nil && session.Type == gatewayv1.CookieBasedSessionPersistence &&
		(hasPrefixFold(session.Name, "__Host-") || hasPrefixFold(session.Name, "__Secure-"))
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
	if wrong := checkToken(session.Name, maxName); wrong != "" {
		d.refuseSession("header.name", "%s %s", quoted(session.Name), wrong)
	}
	if slices.Contains(reservedHeaders, strings.ToLower(session.Name)) {
		d.refuseSession("header.name", "%q has a meaning of its own in HTTP: choose another name", session.Name)
	}
}
