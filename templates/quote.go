package templates

import (
	"fmt"
	"strings"
)

// The quoting functions, one for each context in which HAProxy reads a value. Research and the test in quote_test.go
// have sent hostile values through each (configuration.txt, 2.2 and 2.3).

// word quotes s as one word of a configuration line. Single quotes keep everything literal but themselves; control
// characters leave the quotes as escapes, because a line ends at LF whatever surrounds it.
func word(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, c := range []byte(s) {
		switch {
		case c == '\'':
			b.WriteString(`'\''`)
		case c == '\n':
			b.WriteString(`'\n'`)
		case c == '\r':
			b.WriteString(`'\r'`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `'\x%02x'`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// logFormat makes s literal within a log-format string; the result is still to be quoted as a word.
func logFormat(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// argument quotes s as an argument of a sample expression; the expression is still to be quoted as a word.
func argument(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// pattern makes s literal within a regular expression.
func pattern(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c < 0x80 && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}
