package cluster

import (
	"fmt"
	"log/slog"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Severity says what a Problem means for what it is about.
type Severity int

const (
	// Warning is about something that is not as its writer meant it, and taken nevertheless.
	Warning Severity = iota
	// Error is about something that is not taken.
	Error
)

// String is the severity in one word.
func (s Severity) String() string {
	if s == Error {
		return "error"
	}
	return "warning"
}

// Problem is one thing that is wrong with what was read, in words for its writer.
type Problem struct {
	Severity Severity
	// File as it was named, and the Line in it, 0 if it is about the whole file.
	File string
	Line int
	// Object as "HTTPRoute default/shop", and the path of a Field in it; empty where neither is known.
	Object, Field string
	Message       string

	// other is a second line, with which the message ends; 0 if there is none.
	other int
}

// placed is the problem of a part, as one of the file in which the part begins at the given line.
func (p Problem) placed(file string, start int) Problem {
	p.File = file
	p.Line += start - 1
	if p.other > 0 {
		p.Message = fmt.Sprintf("%s %d", p.Message, p.other+start-1)
		p.other = 0
	}
	return p
}

// String is the problem in one line, the way compilers do it. Whatever a file holds, it stays one line, and nothing in it
// speaks to a terminal.
func (p Problem) String() string {
	parts := []string{p.Place(), p.Severity.String()}
	for _, part := range []string{p.Object, p.Field, p.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, strings.Join(parts, ": "))
}

// Place is file and line.
func (p Problem) Place() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

func (p Problem) log(log *slog.Logger) {
	attributes := []any{"file", p.Place()}
	if p.Object != "" {
		attributes = append(attributes, "object", p.Object)
	}
	if p.Field != "" {
		attributes = append(attributes, "field", p.Field)
	}
	if p.Severity == Error {
		log.Error(p.Message, attributes...)
		return
	}
	log.Warn(p.Message, attributes...)
}
