package graph

import "strings"

// hostnamesIntersect says whether any hostname matches both: each is exact, "*.suffix", or "" for every one. A wildcard
// stands for one or more labels.
func hostnamesIntersect(a, b string) bool {
	if a == "" || b == "" || a == b {
		return true
	}
	return wildcardCovers(a, b) || wildcardCovers(b, a)
}

// wildcardCovers says whether a wildcard matches a hostname, or all that another wildcard matches.
func wildcardCovers(wildcard, hostname string) bool {
	suffix, isWildcard := strings.CutPrefix(wildcard, "*")
	return isWildcard && strings.HasSuffix(strings.TrimPrefix(hostname, "*"), suffix) && len(hostname) > len(suffix)
}
