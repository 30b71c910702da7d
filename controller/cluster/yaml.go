package cluster

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// syntaxError is text that is not YAML, or not JSON. Its lines count from the part's first, as 1.
type syntaxError struct {
	line    int
	message string
	// other is a second line, with which the message ends; 0 if there is none.
	other int
}

// Error is what is wrong.
func (e *syntaxError) Error() string { return e.message }

// parseYAML reads a part of a file into one node for each document; their lines count from the part's first, as 1.
func parseYAML(text []byte) (nodes []*yaml.Node, err error) {
	// The parser is another's, and what it reads is anybody's.
	defer func() {
		if recovered := recover(); recovered != nil {
			nodes, err = nil, &syntaxError{line: 1, message: "the YAML parser gives up on this document"}
		}
	}()
	from := &lineReader{text: text}
	decoder := yaml.NewDecoder(from)
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return nodes, nil
		}
		if err != nil {
			return nil, from.explain(err)
		}
		nodes = append(nodes, &node)
	}
}

// lineReader gives the parser one line at a time, and so knows how far it came.
type lineReader struct {
	text         []byte
	given, lines int
}

// Read gives what is left of the current line.
func (r *lineReader) Read(to []byte) (int, error) {
	rest := r.text[r.given:]
	if len(rest) == 0 {
		return 0, io.EOF
	}
	if r.given == 0 || r.text[r.given-1] == '\n' {
		r.lines++
	}
	if end := bytes.IndexByte(rest, '\n'); end >= 0 {
		rest = rest[:end+1]
	}
	n := copy(to, rest)
	r.given += n
	return n, nil
}

var (
	yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
	anchor    = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
	// counted are errors whose lines the parser counts from 0.
	counted = regexp.MustCompile(`^did not find expected (node content|',' or|<)|^found (a tab|undefined tag|duplicate %|incompatible)`)
	// nested are those for which it names the line where the mapping or list begins that the mistake is in.
	nested = regexp.MustCompile(`^did not find expected (key|'-' indicator)`)
)

// explain makes the parser's error one that names the line of the mistake, or the one after it.
func (r *lineReader) explain(err error) *syntaxError {
	found := yamlError.FindStringSubmatch(err.Error())
	if found == nil {
		return &syntaxError{line: 1, message: err.Error()}
	}
	message := err.Error()[len(found[0]):]
	line, _ := strconv.Atoi(found[1])
	switch unknown := anchor.FindStringSubmatch(message); {
	case unknown != nil:
		before, _, _ := bytes.Cut(r.text, []byte("*"+unknown[1]))
		line = 1 + bytes.Count(before, []byte("\n"))
	case nested.MatchString(message):
		line = r.lines
	case counted.MatchString(message):
		line++
	}
	last := 1 + bytes.Count(bytes.TrimSuffix(r.text, []byte("\n")), []byte("\n"))
	return &syntaxError{line: min(max(line, 1), last), message: "the YAML is broken here or just before: " + message}
}
