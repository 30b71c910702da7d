package behaviour

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// odd are expressions that RE2 takes and PCRE2 cannot compile: ranges that begin with a class, POSIX classes outside of
// brackets, and repetitions of what takes no character.
var odd = []string{`[\w-a]`, `[:alpha:]`, `^*a`, `\b{2}a`, `a(?i)+`, `$?`}

// TestExpressionsMeanWhatRE2Says: where an expression is taken, HAProxy's library agrees with RE2 on what it matches, or
// the answer is 500: nobody is served by a route that means somebody else, or walks around one.
func TestExpressionsMeanWhatRE2Says(t *testing.T) {
	t.Parallel()
	expressions := []string{
		`a.c`, `a|b`, `a|bc|`, `(a)(b)?`, `(?:a)`, `(?P<n>a)b`, `(?<n>a)b`, `(?i)abc`, `(?i:a)b`, `(?-i)a`, `(?s)a.b`, `(?m)^a$`, `(?U)a+?b`, `a*`, `a+`, `a??`, `a{2}`, `a{2,}`, `a{2,3}`, `a{,3}`,
		`a{0}`, `x{1000}`, `[abc]`, `[^abc]`, `[a-c]`, `[a\-c]`, `[]a]`, `[^]a]`, `[a^]`, `[\d]`, `\d+`, `\D`, `\w+`, `\W`, `\s`, `\S+`, `\bab\b`, `\Bb`, `[[:alpha:]]+`, `[[:^alpha:]]`, `[[:word:]]+`, `\pN`, `\p{Lu}`, `\PN`,
		`\x41`, `\x{41}`, `\x{100}`, `\101`, `\.`, `\*`, `\\`, `\/`, `\-`, `\_`, `\"`, `\'`, `\#`, `\ `, `a b`, `\Qa.b\E`, `\Qa.b`, `\Qa.b\Ec`, `\A\w+\z`, `^a$`, `^^a$$`, `a$|b`, `$`, `^`, `\C`, `(a`, `a)`, `a)(b`, `[`, `*a`, `a**`, `(?=a)`, `(?!a)`,
		`(?<=a)b`, `(?>a)`, `\1`, `(a)\1`, `(?#x)a`, `(?x) a`, `(*UTF)a`, `(*ACCEPT)`, `a(*COMMIT)`, `\Ka`, `\Ra`, `\h`, `\v`, `\N`, `\e`, `\cA`, `\a`, `\f`, `\t`, `\07`, `é`, `[é]`, `.`, `..`, `é.`, `[^a]`, `ü+`, `(?i)É`, `\Z`, `\G`, `\k<n>`, `a#b`, `a;b`, `a"b'c`, `%[x]`, `${x}`,
		`(?i)[k]`, `(?i)s`, `[a-\d]`, `[a-z&&[b]]`, `a{1}{2}`, `(|a)*`, `(a*)*`, `(a|ab)(c|bcd)(d*)`,
	}
	inputs := []string{
		"a", "b", "c", "ab", "abc", "ABC", "Ab", "aa", "aaa", "aaaa", "bc", "abcd", "acd", "a.b", "a.c", "a.bc", "axb", "a-c", "-", "]", "^", "1", "12", "A", "B", "_", ".", "*", `\`, "/", `"`, "'", "#", "x", "a b", "a#b", "a;b",
		`a"b'c`, "%[x]", "${x}", "K", "k", "s", "S", "kk", "(*UTF)a", "a{,3}", "N", strings.Repeat("x", 1000), "e", "cA", "abd", "AA", "0", "7",
	}
	expressions = append(expressions, odd...)
	var routes strings.Builder
	for i, expression := range expressions {
		routes.WriteString(route(fmt.Sprintf("r%d", i), fmt.Sprintf("rules:\n- matches: [{path: {value: /%d}, headers: [{name: x, type: RegularExpression, value: %s}]}]\n  backendRefs: [{name: one, port: 80}]", i, yamlText(expression))))
	}
	w := Run(t, gateway+routes.String(), pods("one", 1), problems())
	client := w.keepAlive(t)
	for i, expression := range expressions {
		accepted := w.condition(t, fmt.Sprintf("HTTPRoute default/r%d", i), "Accepted").Status == "True"
		re2, err := regexp.Compile("^(?:" + expression + ")$")
		if err != nil && accepted {
			t.Errorf("%s is taken, although RE2 says %v", expression, err)
		}
		for _, input := range inputs {
			want := "404"
			switch {
			case !accepted:
			case slices.Contains(odd, expression):
				want = "500"
			case re2.MatchString(input):
				want = "one"
			}
			if got := client.ask(t, get(fmt.Sprintf("x.example/%d", i), "X: "+input)).outcome(); got != want {
				t.Errorf("%s on %.20q: %s, want %s", expression, input, got, want)
			}
			if !accepted {
				break
			}
		}
	}
}
