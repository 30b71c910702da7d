package graph

import (
	"fmt"
	"strings"
	"testing"
)

func TestPathMatches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, path, want string }{
		{"the default type is a prefix", "{value: /a}", "PathPrefix /a"},
		{"the default value is /", "{type: PathPrefix}", "PathPrefix "},
		{"a prefix loses its trailing slash", "{value: /a/}", "PathPrefix /a"},
		{"an exact path keeps it", "{type: Exact, value: /a/}", "Exact /a/"},
		{"an exact / is /", "{type: Exact, value: /}", "Exact /"},
		{"all characters of a path are taken", `{value: "/-A0._~!$&'()*+,;=:@%2a"}`, "PathPrefix /-A0._~!$&'()*+,;=:@%2a"},
		{"dots inside a segment are taken", "{value: /a..b/.c}", "PathPrefix /a..b/.c"},
		{"a regular expression stays as it is", `{type: RegularExpression, value: "/a(b|c)/\\d+$"}`, `RegularExpression /a(b|c)/\d+$`},
		{"1024 characters are taken", "{value: /" + strings.Repeat("a", 1023) + "}", "PathPrefix /" + strings.Repeat("a", 1023)},
		{"1025 are not", "{value: /" + strings.Repeat("a", 1024) + "}", ""},
		{"an unknown type", "{type: Suffix, value: /a}", ""},
		{"a path must begin with a slash", "{value: a}", ""},
		{"an empty path", "{value: ''}", ""},
		{"two slashes", "{value: /a//b}", ""},
		{"two slashes at the end", "{value: /a//}", ""},
		{"a dot segment", "{value: /a/./b}", ""},
		{"a double dot segment", "{type: Exact, value: /a/../b}", ""},
		{"a dot segment at the end", "{value: /a/.}", ""},
		{"a double dot segment at the end", "{value: /..}", ""},
		{"an encoded slash", "{value: /a%2Fb}", ""},
		{"an encoded slash in lower case", "{value: /a%2fb}", ""},
		{"a fragment", "{value: '/a#b'}", ""},
		{"a query", "{value: '/a?b'}", ""},
		{"a blank", "{value: '/a b'}", ""},
		{"a quote", `{value: '/a"b'}`, ""},
		{"a newline", `{value: "/a\nb"}`, ""},
		{"NUL", `{value: "/a\0b"}`, ""},
		{"0x01", `{value: "/a\x01"}`, ""},
		{"DEL", `{value: "/a\x7f"}`, ""},
		{"a character beyond ASCII", "{value: /ü}", ""},
		{"a broken percent sign", "{value: /a%2}", ""},
		{"an empty regular expression", "{type: RegularExpression, value: ''}", ""},
		{"a regular expression with a control character", `{type: RegularExpression, value: "/a\x01"}`, ""},
		{"one that does not parse", "{type: RegularExpression, value: '/a(b'}", ""},
		{"one with a back reference", `{type: RegularExpression, value: '/(a)\1'}`, ""},
		{"one that looks ahead", "{type: RegularExpression, value: '/(?=a)'}", ""},
		{"one with a verb of PCRE", "{type: RegularExpression, value: '/(*COMMIT)a'}", ""},
		{"one that names a code point above 255", `{type: RegularExpression, value: '/\x{1F600}'}`, ""},
		{"one that names a byte", `{type: RegularExpression, value: '/\x{41}\\x{1F600}'}`, `RegularExpression /\x{41}\\x{1F600}`},
		{"one that leaves a quotation open", `{type: RegularExpression, value: '/\Qabc'}`, ""},
		{"one that closes its quotation", `{type: RegularExpression, value: '/\Qa.c\E+'}`, `RegularExpression /\Qa.c\E+`},
		{"one that is huge when written out", "{type: RegularExpression, value: '/(?:[a-z]x){500}(?:[a-z]x){500}'}", ""},
		{"one that is too long", "{type: RegularExpression, value: /" + strings.Repeat("a", 1024) + "}", ""},
		{"one that repeats too much", "{type: RegularExpression, value: '/(a{1000}){1000}'}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, gateway+routeTo("matches: [{path: "+test.path+"}]"))
			rule := g.rule(t)
			if test.want == "" {
				expect(t, g.Routes[0].Parents[0].Conditions, unsupported, "spec.rules[0].matches[0].path")
				if !rule.Dropped || len(rule.Matches) > 0 {
					t.Errorf("%+v", rule)
				}
				return
			}
			if rule.Dropped || fmt.Sprintf("%s %s", rule.Matches[0].PathType, rule.Matches[0].Path) != test.want {
				t.Errorf("got %+v\n%s", rule.Matches, allMessages(g.Routes[0].Parents[0].Conditions))
			}
		})
	}
}

func TestOtherMatches(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 4096)
	for _, test := range []struct{ name, match, want string }{
		{"a method", "{method: PATCH}", "PATCH [] []"},
		{"an unknown method", "{method: BREW}", ""},
		{"a method in lower case", "{method: get}", ""},
		{"a header's name becomes lower case", "{headers: [{name: X-Version, value: V2}]}", " [{x-version V2 false}] []"},
		{"a header by regular expression", "{headers: [{type: RegularExpression, name: a, value: '^v[0-9]$'}]}", " [{a ^v[0-9]$ true}] []"},
		{"of equal header names the first counts", "{headers: [{name: A, value: x}, {name: b, value: w}, {name: a, value: z, type: Bad}]}",
			" [{a x false} {b w false}] []"},
		{"a query parameter keeps its case", "{queryParams: [{name: Page, value: 'a b;ü'}]}", " [] [{Page a b;ü false}]"},
		{"of equal parameter names the first counts, case matters", "{queryParams: [{name: p, value: x}, {name: P, value: w}, {name: p, value: z}]}",
			" [] [{p x false} {P w false}]"},
		{"a query parameter by regular expression", "{queryParams: [{type: RegularExpression, name: p, value: a+}]}", " [] [{p a+ true}]"},
		{"all together", "{method: GET, headers: [{name: a, value: b}], queryParams: [{name: c, value: d}]}", "GET [{a b false}] [{c d false}]"},
		{"a header's value with 4096 characters", "{headers: [{name: a, value: " + long + "}]}", " [{a " + long + " false}] []"},
		{"one with 4097", "{headers: [{name: a, value: a" + long + "}]}", ""},
		{"an empty header value", "{headers: [{name: a, value: ''}]}", ""},
		{"a header value with a newline", `{headers: [{name: a, value: "b\nc"}]}`, ""},
		{"a header value with a carriage return", `{headers: [{name: a, value: "b\rc"}]}`, ""},
		{"a header value with a tab", `{headers: [{name: a, value: "b\tc"}]}`, ""},
		{"a header value that ends with a blank", `{headers: [{name: a, value: "b "}]}`, ""},
		{"a header value with a character beyond ASCII", "{headers: [{name: a, value: ü}]}", ""},
		{"a header value with signs that mean something elsewhere", `{headers: [{name: a, value: "%[env(HOME)] ${HOME} #;{}\"' -f"}]}`,
			` [{a %[env(HOME)] ${HOME} #;{}"' -f false}] []`},
		{"a header name that is no token", "{headers: [{name: 'a b', value: c}]}", ""},
		{"an empty header name", "{headers: [{name: '', value: c}]}", ""},
		{"a pseudo header", "{headers: [{name: ':path', value: c}]}", ""},
		{"a header name with 257 characters", "{headers: [{name: " + strings.Repeat("a", 257) + ", value: c}]}", ""},
		{"an unknown type of header match", "{headers: [{type: Prefix, name: a, value: c}]}", ""},
		{"a bad regular expression for a header", "{headers: [{type: RegularExpression, name: a, value: '('}]}", ""},
		{"17 headers", "{headers: [" + strings.Repeat("{name: a, value: c}, ", 17) + "]}", ""},
		{"a query value with 1025 characters", "{queryParams: [{name: a, value: " + long[:1025] + "}]}", ""},
		{"an empty query value", "{queryParams: [{name: a, value: ''}]}", ""},
		{"a query value with NUL", `{queryParams: [{name: a, value: "b\0"}]}`, ""},
		{"an unknown type of query match", "{queryParams: [{type: Prefix, name: a, value: c}]}", ""},
		{"17 query parameters", "{queryParams: [" + strings.Repeat("{name: a, value: c}, ", 17) + "]}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, gateway+routeTo("matches: ["+test.match+"]"))
			rule := g.rule(t)
			if test.want == "" {
				expect(t, g.Routes[0].Parents[0].Conditions, unsupported, "spec.rules[0].matches[0]")
				return
			}
			if rule.Dropped {
				t.Fatal(allMessages(g.Routes[0].Parents[0].Conditions))
			}
			match := rule.Matches[0]
			if got := fmt.Sprintf("%s %v %v", match.Method, match.Headers, match.Query); got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestAMatchKeepsItsIndex(t *testing.T) {
	rule := build(t, gateway+routeTo("matches: [{path: {value: /a}}, {path: {value: bad}}, {path: {value: /c}}]")).rule(t)
	if len(rule.Matches) != 2 || rule.Matches[0].Index != 0 || rule.Matches[1].Index != 2 {
		t.Errorf("%+v", rule.Matches)
	}
}

func TestRegularExpressionsOfARuleAreCountedTogether(t *testing.T) {
	t.Parallel()
	matches := func(n int) string {
		one := "{path: {type: RegularExpression, value: /a}, headers: [{type: RegularExpression, name: a, value: b}], " +
			"queryParams: [{type: RegularExpression, name: a, value: b}]}, "
		return "matches: [{path: {value: /plain}}, {headers: [{type: RegularExpression, name: a, value: b}]}, " + strings.Repeat(one, n) + "]"
	}
	if g := build(t, gateway+routeTo(matches(21))); g.rule(t).Dropped {
		t.Errorf("64: %s", allMessages(g.Routes[0].Parents[0].Conditions))
	}
	g := build(t, gateway+routeTo(matches(22)))
	expect(t, g.Routes[0].Parents[0].Conditions, unsupported, "64 regular expressions in all, not 67")
	if rule := g.rule(t); len(rule.Matches) != 1 || rule.Matches[0].Path != "/plain" {
		t.Errorf("a rule that is dropped for them is still matched by them: %+v", rule.Matches)
	}
}

func TestARuleHas64Matches(t *testing.T) {
	g := build(t, gateway+routeTo("matches: ["+strings.Repeat("{method: GET}, ", 65)+"]"))
	expect(t, g.Routes[0].Parents[0].Conditions, unsupported, "spec.rules[0].matches: must not have more than 64")
}
