package translate

import (
	"regexp/syntax"
	"strings"
)

// literalBeginning is what every path that a regular expression matches begins with, at least "/": the path key of its
// candidate. The expression must match the whole path, so its beginning is the path's.
func literalBeginning(expression string) string {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return "/"
	}
	literal, _ := beginning(parsed)
	literal = pathOnly(literal)
	if !strings.HasPrefix(literal, "/") {
		return "/"
	}
	return literal
}

// beginning returns the literal that an expression begins with, and whether it is all of the expression.
func beginning(re *syntax.Regexp) (literal string, whole bool) {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginText, syntax.OpBeginLine, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return "", true // takes no character
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return "", false
		}
		return string(re.Rune), true
	case syntax.OpCapture:
		return beginning(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			part, whole := beginning(sub)
			literal += part
			if !whole {
				return literal, false
			}
		}
		return literal, true
	default:
		return "", false
	}
}

// pathOnly cuts a literal where it holds what no request's path does, above all the end mark of exact path keys.
func pathOnly(literal string) string {
	if at := strings.IndexFunc(literal, func(r rune) bool { return r <= ' ' || r > '~' }); at >= 0 {
		return literal[:at]
	}
	return literal
}
