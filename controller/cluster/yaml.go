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
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return nodes, nil
		}
		if err != nil {
			return nil, asSyntaxError(text, err)
		}
		nodes = append(nodes, &node)
	}
}

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// asSyntaxError finds the line in the words of the parser, which may count one past the end.
func asSyntaxError(in []byte, err error) *syntaxError {
	text := err.Error()
	found := yamlError.FindStringSubmatch(text)
	if found == nil {
		return &syntaxError{line: 1, message: text}
	}
	line := 1
	if found[1] != "" {
		line, _ = strconv.Atoi(found[1])
	}
	last := 1 + bytes.Count(bytes.TrimSuffix(in, []byte("\n")), []byte("\n"))
	return &syntaxError{line: min(max(line, 1), last), message: "the YAML is broken here or just before: " + text[len(found[0]):]}
}
