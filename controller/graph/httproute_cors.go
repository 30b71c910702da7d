package graph

import (
	"slices"
	"strconv"
	"strings"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

const (
	maxCORSEntries = 64
	maxCORSMethods = 9
	// defaultCORSAge is the CRD's. Zero cannot be told from no value, and is none that the CRD takes.
	defaultCORSAge = 5
	wildcard       = "*"
)

func (d *ruleDraft) readCORS(field string, source *gatewayv1.HTTPCORSFilter) *CORS {
	cors := &CORS{
		Origins:     d.readOrigins(field+".allowOrigins", source.AllowOrigins),
		Credentials: valueOr(source.AllowCredentials, false),
		Methods:     d.readCORSMethods(field+".allowMethods", source.AllowMethods),
		Headers:     d.readCORSHeaders(field+".allowHeaders", source.AllowHeaders),
		Expose:      d.readCORSHeaders(field+".exposeHeaders", source.ExposeHeaders),
		MaxAge:      time.Duration(source.MaxAge) * time.Second,
	}
	d.checkAlone(field+".allowOrigins", cors.Origins)
	d.checkAlone(field+".allowMethods", cors.Methods)
	d.checkAlone(field+".allowHeaders", cors.Headers)
	switch {
	case source.MaxAge == 0:
		cors.MaxAge = defaultCORSAge * time.Second
	case source.MaxAge < 0:
		d.refuse(field+".maxAge", "%d must be at least 1", source.MaxAge)
	}
	return cors
}

func (d *ruleDraft) readOrigins(field string, sources []gatewayv1.CORSOrigin) []string {
	if len(sources) > maxCORSEntries {
		d.refuse(field, "must not have more than %d entries", maxCORSEntries)
		return nil
	}
	var origins []string
	for i, source := range sources {
		origin, wrong := readOrigin(string(source))
		if wrong != "" {
			d.refuse(indexed(field, i), "%s %s", quoted(string(source)), wrong)
			continue
		}
		origins = appendNew(origins, origin)
	}
	d.checkLength(field, origins)
	return origins
}

// readOrigin returns an origin as browsers write it: in lower case, and without the port that its scheme has anyway.
func readOrigin(text string) (origin, wrong string) {
	if text == wildcard {
		return text, ""
	}
	const form = "must be *, or http:// or https:// and a host that may begin with '*.' or be '*', and a port if need be"
	scheme, rest, found := strings.Cut(strings.ToLower(text), "://")
	ownPort, known := map[string]uint64{"http": 80, "https": 443}[scheme]
	if !found || !known || len(text) > 253 {
		return "", form
	}
	host, port, hasPort := strings.Cut(rest, ":")
	if host != wildcard && !isOriginHost(strings.TrimPrefix(host, "*.")) {
		return "", form
	}
	if !hasPort {
		return scheme + "://" + host, ""
	}
	number, err := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || number == 0 || len(port) > 5:
		return "", "must have a port from 1 to 65535"
	case number == ownPort:
		return scheme + "://" + host, ""
	}
	return scheme + "://" + host + ":" + strconv.FormatUint(number, 10), ""
}

// isOriginHost is the CRD's pattern, in lower case.
func isOriginHost(host string) bool {
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || strings.ContainsFunc(label, func(r rune) bool { return r != '-' && !isLowerAlphanumeric(r) }) {
			return false
		}
	}
	return true
}

// readCORSMethods keeps case: names of methods have one.
func (d *ruleDraft) readCORSMethods(field string, sources []gatewayv1.HTTPMethodWithWildcard) []string {
	if len(sources) > maxCORSMethods {
		d.refuse(field, "must not have more than %d entries", maxCORSMethods)
		return nil
	}
	var all []string
	for i, source := range sources {
		if source != wildcard && !slices.Contains(methods, gatewayv1.HTTPMethod(source)) {
			d.refuse(indexed(field, i), "%s is not one of %s, *", quoted(string(source)), list(methods))
		}
		all = appendNew(all, string(source))
	}
	return all
}

func (d *ruleDraft) readCORSHeaders(field string, sources []gatewayv1.HTTPHeaderName) []string {
	if len(sources) > maxCORSEntries {
		d.refuse(field, "must not have more than %d entries", maxCORSEntries)
		return nil
	}
	var names []string
	for i, source := range sources {
		name := string(source)
		if wrong := checkToken(name, maxName); wrong != "" {
			d.refuse(indexed(field, i), "%s %s", quoted(name), wrong)
		}
		if !slices.ContainsFunc(names, func(other string) bool { return strings.EqualFold(other, name) }) {
			names = append(names, name)
		}
	}
	d.checkLength(field, names)
	return names
}

// checkAlone is the CRD's rule about what means everything.
func (d *ruleDraft) checkAlone(field string, values []string) {
	if len(values) > 1 && slices.Contains(values, wildcard) {
		d.refuse(field, "'*' must not stand beside other entries")
	}
}

// checkLength bounds a list that becomes one line.
func (d *ruleDraft) checkLength(field string, values []string) {
	if len(strings.Join(values, ",")) > maxValue {
		d.refuse(field, "must not be longer than %d characters in all", maxValue)
	}
}

func appendNew(list []string, value string) []string {
	if slices.Contains(list, value) {
		return list
	}
	return append(list, value)
}
