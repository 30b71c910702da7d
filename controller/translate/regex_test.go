package translate

import (
	"regexp"
	"strings"
	"testing"
)

func TestLiteralBeginning(t *testing.T) {
	t.Parallel()

	for expression, want := range map[string]string{
		"/api/v[0-9]+":       "/api/v",
		"^/api$":             "/api",
		"/(api|apo)/x":       "/ap",
		"/(?:api)/x":         "/api/x",
		"(/api)/x?":          "/api/",
		".*":                 "/",
		"":                   "/",
		"a.*":                "/",
		"/a|/b":              "/",
		"/ab|/ac":            "/a",
		"(?i)/api":           "/",
		"/(?i:a)pi":          "/",
		"/a(?i:b)c":          "/a",
		"/a+":                "/",
		"/ab*":               "/a",
		`/\Qa.b\E.*`:         "/a.b",
		`/a\.b`:              "/a.b",
		`/a\x01`:             "/a",
		"/a b":               "/a",
		"/ä":                 "/",
		`\b/a`:               "/a",
		"(?s)/a.":            "/a",
		"/a{3}":              "/",
		"(":                  "/",
		"/[a]b":              "/ab",
		"/a(?:)b":            "/ab",
		"/x(?P<id>y)z[0-9]*": "/xyz",
	} {
		if got := literalBeginning(expression); got != want {
			t.Errorf("%q begins with %q, want %q", expression, got, want)
		}
	}
}

// FuzzLiteralBeginning looks for a path that an expression matches although it does not begin with the literal: HAProxy
// would never ask the expression about it. And for a literal that does not fit into a path key.
func FuzzLiteralBeginning(f *testing.F) {
	for _, seed := range [][2]string{
		{"/api/v[0-9]+", "/api/v1"}, {"/a|/b", "/b"}, {"(?i)/API", "/api"}, {"/a?b", "/b"}, {"^/x", "/x"}, {"/(?i:k)", "/\u212a"},
		{`/\Qa|b\E`, "/a|b"}, {"/a{0}b", "/b"}, {"(?:/a)*", "/a/a"}, {"/a|", "/a"}, {`\B/a`, "/a"}, {"(?m)/a$", "/a"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, expression, path string) {
		literal := literalBeginning(expression)
		if !strings.HasPrefix(literal, "/") || strings.ContainsFunc(literal, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("%q begins with %q, which is no path", expression, literal)
		}
		if !strings.HasPrefix(path, "/") {
			return
		}
		whole, err := regexp.Compile("^(?:" + expression + ")$")
		if err == nil && whole.MatchString(path) && !strings.HasPrefix(path, literal) && printable(path) {
			t.Errorf("%q matches %q, which does not begin with %q", expression, path, literal)
		}
	})
}

// printable says that a path can come from a client.
func printable(path string) bool {
	return !strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r > '~' })
}
