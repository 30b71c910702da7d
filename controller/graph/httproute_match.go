package graph

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

const (
	maxConditions = 16
	maxName       = 256
	// HAProxy's watchdog ends a process that one request keeps busy: the number and the size of what a request can be
	// compared with are bounded.
	maxRegexes    = 64
	maxRegexBytes = 1024
)

var methods = []gatewayv1.HTTPMethod{
	gatewayv1.HTTPMethodGet, gatewayv1.HTTPMethodHead, gatewayv1.HTTPMethodPost, gatewayv1.HTTPMethodPut,
	gatewayv1.HTTPMethodDelete, gatewayv1.HTTPMethodConnect, gatewayv1.HTTPMethodOptions, gatewayv1.HTTPMethodTrace,
	gatewayv1.HTTPMethodPatch,
}

func indexed(field string, index int) string { return field + "[" + strconv.Itoa(index) + "]" }

// readMatches keeps the matches that are valid: a rule that is dropped for something else still claims them.
func (d *ruleDraft) readMatches() {
	if d.grpc != nil {
		readEach(d, d.grpc.Matches, d.readGRPCMatch)
	} else {
		readEach(d, d.source.Matches, d.readMatch)
	}
	if d.regexes > maxRegexes {
		d.refuse("matches", "must not have more than %d regular expressions in all, not %d", maxRegexes, d.regexes)
		// Claimed without them, so that none is evaluated.
		d.node.Matches = slices.DeleteFunc(d.node.Matches, hasRegex)
	}
}

// readEach reads a rule's matches; without any, it has one that says nothing.
func readEach[T any](d *ruleDraft, matches []T, read func(*T, string) Match) {
	if len(matches) == 0 {
		matches = make([]T, 1)
	}
	if len(matches) > maxMatchesOfRule {
		d.refuse("matches", "must not have more than %d entries", maxMatchesOfRule)
	}
	for i := range matches {
		before := len(d.problems)
		match := read(&matches[i], indexed("matches", i))
		match.Index = i
		if len(d.problems) == before {
			d.node.Matches = append(d.node.Matches, match)
		}
	}
}

func hasRegex(match Match) bool {
	isRegex := func(value ValueMatch) bool { return value.Regex }
	return match.PathType == gatewayv1.PathMatchRegularExpression ||
		slices.ContainsFunc(match.Headers, isRegex) || slices.ContainsFunc(match.Query, isRegex)
}

func (d *ruleDraft) readMatch(source *gatewayv1.HTTPRouteMatch, field string) Match {
	var match Match
	match.PathType, match.Path = d.readPath(source.Path, field+".path")
	if source.Method != nil {
		match.Method = string(*source.Method)
		if !slices.Contains(methods, *source.Method) {
			d.refuse(field+".method", "%q is not one of %s", match.Method, list(methods))
		}
	}
	match.Headers = d.readHeaders(source.Headers, field+".headers")
	match.Query = d.readQuery(source.QueryParams, field+".queryParams")
	return match
}

func list[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	return strings.Join(texts, ", ")
}

func (d *ruleDraft) readPath(source *gatewayv1.HTTPPathMatch, field string) (gatewayv1.PathMatchType, string) {
	kind, value := gatewayv1.PathMatchPathPrefix, "/"
	if source != nil {
		kind, value = valueOr(source.Type, kind), valueOr(source.Value, value)
	}
	switch kind {
	case gatewayv1.PathMatchExact, gatewayv1.PathMatchPathPrefix:
		if wrong := checkPath(value); wrong != "" {
			d.refuse(field+".value", "%q %s", value, wrong)
		}
	case gatewayv1.PathMatchRegularExpression:
		d.readRegex(value, field+".value")
	default:
		d.refuse(field+".type", "%q is not one of Exact, PathPrefix, RegularExpression", kind)
	}
	if kind == gatewayv1.PathMatchPathPrefix {
		// "When specified, a trailing `/` is ignored."
		value = strings.TrimSuffix(value, "/")
	}
	return kind, value
}

// valueMatch is a header or query parameter match, before it is read.
type valueMatch struct{ kind, name, value string }

// readHeaders compares names without case. Of several entries with equivalent names "only the first entry with an
// equivalent name MUST be considered for a match".
func (d *ruleDraft) readHeaders(sources []gatewayv1.HTTPHeaderMatch, field string) []ValueMatch {
	all := make([]valueMatch, len(sources))
	for i, source := range sources {
		kind := valueOr(source.Type, gatewayv1.HeaderMatchExact)
		all[i] = valueMatch{string(kind), strings.ToLower(string(source.Name)), source.Value}
	}
	return d.readValues(all, field, checkHeaderValue)
}

// readQuery compares names with case; the first of equal ones counts here too.
func (d *ruleDraft) readQuery(sources []gatewayv1.HTTPQueryParamMatch, field string) []ValueMatch {
	all := make([]valueMatch, len(sources))
	for i, source := range sources {
		kind := valueOr(source.Type, gatewayv1.QueryParamMatchExact)
		all[i] = valueMatch{string(kind), string(source.Name), source.Value}
	}
	return d.readValues(all, field, checkQueryValue)
}

func checkQueryValue(value string) string {
	if value == "" {
		return "must not be empty"
	}
	return checkText(value, 1024)
}

func (d *ruleDraft) readValues(sources []valueMatch, field string, check func(string) string) []ValueMatch {
	if len(sources) > maxConditions {
		d.refuse(field, "must not have more than %d entries", maxConditions)
		return nil
	}
	var values []ValueMatch
	for i, source := range sources {
		if slices.ContainsFunc(values, func(v ValueMatch) bool { return v.Name == source.name }) {
			continue
		}
		at := indexed(field, i)
		if wrong := checkToken(source.name, maxName); wrong != "" {
			d.refuse(at+".name", "%q %s", source.name, wrong)
		}
		if wrong := check(source.value); wrong != "" {
			d.refuse(at+".value", "%s %s", quoted(source.value), wrong)
		}
		values = append(values, ValueMatch{source.name, source.value, d.readKind(source, at)})
	}
	return values
}

// readKind says whether a value is a regular expression.
func (d *ruleDraft) readKind(source valueMatch, field string) bool {
	switch source.kind {
	case string(gatewayv1.HeaderMatchExact):
		return false
	case string(gatewayv1.HeaderMatchRegularExpression):
		d.readRegex(source.value, field+".value")
		return true
	}
	d.refuse(field+".type", "%q is not one of Exact, RegularExpression", source.kind)
	return false
}

// readRegex takes what both RE2 and PCRE understand: RE2 excludes what only backtracking can do.
func (d *ruleDraft) readRegex(value, field string) {
	d.regexes++
	if wrong := checkRegex(value); wrong != "" {
		d.refuse(field, "%s %s", quoted(value), wrong)
	}
}

func checkRegex(value string) string {
	switch {
	case value == "":
		return "must not be empty"
	case len(value) > maxRegexBytes:
		return fmt.Sprintf("must not be longer than %d bytes", maxRegexBytes)
	case strings.ContainsFunc(value, isControl):
		return "must not hold control characters: write them as escapes"
	}
	parsed, err := syntax.Parse(value, syntax.Perl)
	if err != nil {
		return fmt.Sprintf("must be a regular expression in RE2 syntax: %v", err)
	}
	// It is evaluated within a group, out of which an open \Q would reach.
	if _, err := syntax.Parse("(?:"+value+")", syntax.Perl); err != nil {
		return `must end each \Q with \E`
	}
	if program, err := syntax.Compile(parsed.Simplify()); err != nil || len(program.Inst) > maxRegexSteps {
		return fmt.Sprintf("must not need more than %d steps when its repetitions are written out", maxRegexSteps)
	}
	return checkEscapes(value)
}

// maxRegexSteps keeps an expression small enough for HAProxy's library, which compiles to at most 64 KiB, 32 bytes for a
// class of characters.
const maxRegexSteps = 1000

// checkEscapes refuses code points above 255: HAProxy compares bytes, and its library does not compile them.
func checkEscapes(value string) string {
	for rest := value; rest != ""; {
		_, after, found := strings.Cut(rest, `\`)
		if !found || after == "" {
			break
		}
		if digits, isHex := strings.CutPrefix(after, "x{"); isHex {
			digits, _, _ = strings.Cut(digits, "}")
			if code, err := strconv.ParseUint(digits, 16, 32); err != nil || code > 0xff {
				return "must not name code points above 255: requests are compared byte by byte"
			}
		}
		rest = after[1:]
	}
	return ""
}

// quoted shows the beginning of a value.
func quoted(value string) string {
	const enough = 64
	if len(value) > enough {
		return fmt.Sprintf("%q…", value[:enough])
	}
	return fmt.Sprintf("%q", value)
}
