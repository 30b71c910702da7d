package graph

import (
	"fmt"
	"strings"
)

// problem is one thing that is wrong with an object: the condition's reason, and a message that names the field.
type problem[R ~string] struct {
	reason  R
	message string
}

// problems are found in the order of the spec; a condition has room for one reason: the first one's.
type problems[R ~string] []problem[R]

func (p *problems[R]) add(reason R, format string, args ...any) {
	*p = append(*p, problem[R]{reason, fmt.Sprintf(format, args...)})
}

func (p problems[R]) any() bool { return len(p) > 0 }

func (p problems[R]) reason() R { return p[0].reason }

func (p problems[R]) text() string {
	messages := make([]string, len(p))
	for i := range p {
		messages[i] = p[i].message
	}
	return sentences(messages)
}

// sentences makes one message of several.
func sentences(messages []string) string { return strings.Join(messages, "; ") + "." }
