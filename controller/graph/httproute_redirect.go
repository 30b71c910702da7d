package graph

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

var redirectCodes = []int{301, 302, 303, 307, 308}

func (d *ruleDraft) readRedirect(field string, source *gatewayv1.HTTPRequestRedirectFilter) *Redirect {
	redirect := &Redirect{
		Scheme:   valueOr(source.Scheme, ""),
		Hostname: string(valueOr(source.Hostname, "")),
		Status:   valueOr(source.StatusCode, 302),
		Path:     source.Path,
	}
	if source.Scheme != nil && redirect.Scheme != "http" && redirect.Scheme != "https" {
		d.refuse(field+".scheme", "%q is not one of http, https", redirect.Scheme)
	}
	if source.Hostname != nil {
		if wrong := checkPreciseHostname(redirect.Hostname); wrong != "" {
			d.refuse(field+".hostname", "%q %s", redirect.Hostname, wrong)
		}
	}
	if !slices.Contains(redirectCodes, redirect.Status) {
		d.refuse(field+".statusCode", "%d is not one of 301, 302, 303, 307, 308", redirect.Status)
	}
	if port := source.Port; port != nil {
		if *port < 1 || *port > 65535 {
			d.refuse(field+".port", "%d must be from 1 to 65535", *port)
		}
		redirect.Port = uint16(*port)
	}
	if source.Path != nil {
		d.checkPathModifier(field+".path", source.Path)
	}
	return redirect
}

func (d *ruleDraft) checkPathModifier(field string, source *gatewayv1.HTTPPathModifier) {
	full, prefix := source.ReplaceFullPath, source.ReplacePrefixMatch
	switch source.Type {
	case gatewayv1.FullPathHTTPPathModifier:
		if full == nil || prefix != nil {
			d.refuse(field, "must set replaceFullPath and nothing else for type ReplaceFullPath")
			return
		}
		d.checkReplacement(field+".replaceFullPath", *full)
	case gatewayv1.PrefixMatchHTTPPathModifier:
		if prefix == nil || full != nil {
			d.refuse(field, "must set replacePrefixMatch and nothing else for type ReplacePrefixMatch")
			return
		}
		d.checkReplacement(field+".replacePrefixMatch", *prefix)
	default:
		d.refuse(field+".type", "%q is not one of ReplaceFullPath, ReplacePrefixMatch", source.Type)
	}
}

// checkReplacement keeps the host in Location what it is: a path that does not begin with a single slash would be read
// as part of it. The empty one stands for "/".
func (d *ruleDraft) checkReplacement(field, value string) {
	switch {
	case value == "":
	case len(value) > 1024:
		d.refuse(field, "is longer than 1024 characters")
	case value[0] != '/' || strings.HasPrefix(value, "//"):
		d.refuse(field, "%s must begin with one '/'", quoted(value))
	default:
		if wrong := checkPathChars(value); wrong != "" {
			d.refuse(field, "%s %s", quoted(value), wrong)
		}
	}
}

// isAuthority takes what may stand in a Host header: a host, and a port if need be.
func isAuthority(value string) bool {
	if isHost(value) {
		return true
	}
	at := strings.LastIndexByte(value, ':')
	if at < 0 {
		return false
	}
	port, err := strconv.ParseUint(value[at+1:], 10, 16)
	return err == nil && port > 0 && isHost(value[:at])
}

func isHost(value string) bool {
	if bare, isBracketed := strings.CutPrefix(value, "["); isBracketed {
		address, err := netip.ParseAddr(strings.TrimSuffix(bare, "]"))
		return err == nil && address.Is6() && address.Zone() == "" && strings.HasSuffix(value, "]")
	}
	return len(value) <= 253 && isSubdomain(strings.ToLower(value))
}
