package translate

import "strings"

// A hostname is exact ("a.b.c"), a wildcard ("*.b.c": one or more labels before "b.c", and not "b.c" itself), or "" for
// every one. Of two hostnames that have a host in common one covers the other: those that cover a host form a chain,
// which broader walks.

// covers says whether every host that matches other matches hostname too.
func covers(hostname, other string) bool {
	switch {
	case hostname == "" || hostname == other:
		return true
	case strings.HasPrefix(hostname, "*."):
		return strings.HasSuffix(other, hostname[1:])
	default:
		return false
	}
}

// intersection is what two hostnames have in common, and whether there is anything.
func intersection(a, b string) (string, bool) {
	switch {
	case covers(a, b):
		return b, true
	case covers(b, a):
		return a, true
	default:
		return "", false
	}
}

// broader returns the next hostname that covers hostname; false after "".
func broader(hostname string) (string, bool) {
	if hostname == "" {
		return "", false
	}
	_, rest, _ := strings.Cut(strings.TrimPrefix(hostname, "*."), ".")
	if rest == "" {
		return "", true
	}
	return "*." + rest, true
}

// exact says that a hostname is that of one host.
func exact(hostname string) bool { return hostname != "" && !strings.HasPrefix(hostname, "*.") }
