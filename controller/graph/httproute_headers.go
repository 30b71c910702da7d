package graph

import (
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// framing headers belong to one connection or say where a message ends: who changes them can smuggle requests, and
// HAProxy writes them itself.
var framing = []string{
	"connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
}

// readRequestHeaders also keeps a request at exactly one Host.
func (d *ruleDraft) readRequestHeaders(field string, source *gatewayv1.HTTPHeaderFilter) *HeaderChange {
	change := d.readHeaderChange(field, source)
	if change != nil {
		d.checkHost(field, change)
	}
	return change
}

func (d *ruleDraft) readHeaderChange(field string, source *gatewayv1.HTTPHeaderFilter) *HeaderChange {
	if len(source.Set) > maxConditions || len(source.Add) > maxConditions || len(source.Remove) > maxConditions {
		d.refuse(field, "set, add and remove must not have more than %d entries each", maxConditions)
		return nil
	}
	change := &HeaderChange{
		Set: d.readHeaderValues(field+".set", source.Set),
		Add: d.readHeaderValues(field+".add", source.Add),
	}
	for i, name := range source.Remove {
		d.checkHeaderName(indexed(field+".remove", i), name)
		if !slices.ContainsFunc(change.Remove, func(other string) bool { return strings.EqualFold(other, name) }) {
			change.Remove = append(change.Remove, name)
		}
	}
	d.checkOneAction(field, change)
	return change
}

// readHeaderValues: of equivalent names the first counts, the others must be ignored.
func (d *ruleDraft) readHeaderValues(field string, sources []gatewayv1.HTTPHeader) []HeaderValue {
	var values []HeaderValue
	for i, source := range sources {
		name := string(source.Name)
		if slices.ContainsFunc(values, func(v HeaderValue) bool { return strings.EqualFold(v.Name, name) }) {
			continue
		}
		at := indexed(field, i)
		d.checkHeaderName(at+".name", name)
		if wrong := checkHeaderValue(source.Value); wrong != "" {
			d.refuse(at+".value", "%s %s", quoted(source.Value), wrong)
		}
		values = append(values, HeaderValue{name, source.Value})
	}
	return values
}

func (d *ruleDraft) checkHeaderName(field, name string) {
	if wrong := checkToken(name, maxName); wrong != "" {
		d.refuse(field, "%q %s", name, wrong)
	}
	if slices.Contains(framing, strings.ToLower(name)) {
		d.refuse(field, "%q belongs to the connection and must not be changed", name)
	}
}

// checkHost lets Host be set, for the text of the API allows that it is modified, but never be missing or doubled.
func (d *ruleDraft) checkHost(field string, change *HeaderChange) {
	isHost := func(v HeaderValue) bool { return strings.EqualFold(v.Name, "host") }
	if slices.ContainsFunc(change.Add, isHost) || slices.ContainsFunc(change.Remove, func(name string) bool {
		return strings.EqualFold(name, "host")
	}) {
		d.refuse(field, "Host can be set, but not be added to or removed: a request has exactly one")
	}
	for _, value := range change.Set {
		if isHost(value) && !isAuthority(value.Value) {
			d.refuse(field+".set", "Host: %s must be a host name or IP address, and a port if need be", quoted(value.Value))
		}
	}
}

// checkOneAction enforces that "filters specifying multiple actions of the same or different type for any one header name
// are invalid", as far as different types go: of one type, the first counts.
func (d *ruleDraft) checkOneAction(field string, change *HeaderChange) {
	seen := make(map[string]bool)
	names := slices.Clone(change.Remove)
	for _, value := range slices.Concat(change.Set, change.Add) {
		names = append(names, value.Name)
	}
	for _, name := range names {
		if key := strings.ToLower(name); seen[key] {
			d.refuse(field, "only one of set, add and remove may name the header %q", name)
		} else {
			seen[key] = true
		}
	}
}
