package graph

import (
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"
)

// The functions here repeat what the CRDs demand of a value, because objects from files never met an API server. They
// return what is wrong with it, in words that follow the value's place ("must …"), or nothing.

// maxValue bounds every value that becomes part of a map's line, in bytes: a line is at most 8 KiB, and names and lengths
// go before the value.
const maxValue = 4096

// checkText is for values that may hold any character but control characters.
func checkText(value string, limit int) string {
	switch {
	case utf8.RuneCountInString(value) > limit || len(value) > maxValue:
		return "is too long"
	case !utf8.ValidString(value):
		return "must be valid UTF-8"
	case strings.ContainsFunc(value, isControl):
		return "must not hold control characters"
	}
	return ""
}

func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// checkHeaderValue is the experimental CRD's pattern for values of header fields, less the tab: a control character.
func checkHeaderValue(value string) string {
	switch {
	case value == "":
		return "must not be empty"
	case len(value) > maxValue:
		return "is too long"
	case value[0] == ' ' || value[len(value)-1] == ' ' || strings.Contains(value, "  "):
		return "must not begin or end with a blank or hold two in a row"
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
		return "must consist of printable ASCII characters"
	}
	return ""
}

// checkToken is the CRD's pattern for names of header fields, query parameters and cookies: RFC 9110's token.
func checkToken(name string, limit int) string {
	switch {
	case name == "":
		return "must not be empty"
	case len(name) > limit:
		return "is too long"
	case strings.ContainsFunc(name, func(r rune) bool { return !isTokenChar(r) }):
		return "must consist of letters, digits and !#$%&'*+-.^_`|~"
	}
	return ""
}

func isTokenChar(r rune) bool {
	return isAlphanumeric(r) || r < 0x80 && strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

func isAlphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// checkSectionName is RFC 1123's subdomain.
func checkSectionName(name string) string {
	if len(name) > 253 || !isSubdomain(name) {
		return "must consist of lower case letters, digits, '-' and '.'"
	}
	return ""
}

// checkHostname takes a name that may begin with one wildcard label.
func checkHostname(name string) string {
	if len(name) > 253 {
		return "is too long"
	}
	return checkPreciseHostname(strings.TrimPrefix(name, "*."))
}

// checkPreciseHostname takes a name without wildcard. IP addresses pass the CRD's pattern, but its text forbids them.
func checkPreciseHostname(name string) string {
	switch {
	case len(name) > 253:
		return "is too long"
	case !isSubdomain(name):
		return "must be a DNS name in lower case; only its first label may be a wildcard"
	case isAddress(name):
		return "must not be an IP address"
	}
	return ""
}

func isAddress(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}

func isSubdomain(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		if strings.ContainsFunc(label, func(r rune) bool { return r != '-' && !isLowerAlphanumeric(r) }) {
			return false
		}
	}
	return true
}

func isLowerAlphanumeric(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }

// checkPath is what the CRD demands of an Exact or PathPrefix value.
func checkPath(value string) string {
	switch {
	case len(value) > 1024:
		return "is longer than 1024 characters"
	case !strings.HasPrefix(value, "/"):
		return "must begin with '/'"
	case strings.HasSuffix(value, "/..") || strings.HasSuffix(value, "/."):
		return "must not end with '/..' or '/.'"
	}
	for _, forbidden := range []string{"//", "/./", "/../", "%2f", "%2F", "#"} {
		if strings.Contains(value, forbidden) {
			return "must not contain '" + forbidden + "'"
		}
	}
	return checkPathChars(value)
}

// checkPathChars takes the characters of an RFC 3986 path and percent-encoded ones.
func checkPathChars(value string) string {
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '%':
			if i+2 >= len(value) || !isHex(value[i+1]) || !isHex(value[i+2]) {
				return "must have two hexadecimal digits after each '%'"
			}
			i += 2
		case !isAlphanumeric(rune(c)) && strings.IndexByte("-/._~!$&'()*+,;=:@", c) < 0:
			return "must consist of letters, digits, -/._~!$&'()*+,;=:@ and percent-encoded characters"
		}
	}
	return ""
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// parseDuration takes a GEP-2257 duration: one to four components of one to five digits and a unit.
func parseDuration(text string) (time.Duration, bool) {
	var total time.Duration
	for component := 0; text != ""; component++ {
		digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
		if component == 4 || digits < 1 || digits > 5 {
			return 0, false
		}
		var value time.Duration
		for _, digit := range []byte(text[:digits]) {
			value = 10*value + time.Duration(digit-'0')
		}
		unit, rest := cutUnit(text[digits:])
		if unit == 0 {
			return 0, false
		}
		total, text = total+value*unit, rest
		if text == "" {
			return total, true
		}
	}
	return 0, false
}

// cutUnit returns the unit that a text begins with and what follows.
func cutUnit(text string) (time.Duration, string) {
	for _, unit := range []struct {
		name  string
		value time.Duration
	}{{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}} {
		if rest, found := strings.CutPrefix(text, unit.name); found {
			return unit.value, rest
		}
	}
	return 0, text
}

// valueOr returns what a pointer leads to, or a default.
func valueOr[T any](pointer *T, fallback T) T {
	if pointer == nil {
		return fallback
	}
	return *pointer
}
