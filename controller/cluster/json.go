package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// looksLikeJSON holds for text that begins like a JSON object.
func looksLikeJSON(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && text[0] == '{'
}

// splitJSON cuts a file into its JSON values: mostly one, but several in a row are fine.
func splitJSON(text []byte) ([]part, *syntaxError) {
	var parts []part
	decoder := json.NewDecoder(bytes.NewReader(text))
	line, counted := 1, 0
	for {
		var value json.RawMessage
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, jsonError(text, 0, err)
		}
		start := int(decoder.InputOffset()) - len(value)
		line += bytes.Count(text[counted:start], []byte("\n"))
		counted = start
		parts = append(parts, part{line, value})
	}
}

// jsonError finds the line of an error of a parser that began at offset.
func jsonError(text []byte, offset int64, err error) *syntaxError {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = syntax.Offset
	} else if errors.Is(err, io.ErrUnexpectedEOF) {
		offset = int64(len(bytes.TrimRight(text, " \t\r\n")))
	}
	offset = min(max(offset, 0), int64(len(text)))
	message := strings.TrimPrefix(err.Error(), "json: ")
	return &syntaxError{line: 1 + bytes.Count(text[:offset], []byte("\n")), message: "the JSON is broken here: " + message}
}

// parseJSON reads one JSON value into a node, so that everything behind treats JSON and YAML alike, lines included.
func parseJSON(text []byte) (*yaml.Node, error) {
	r := &jsonReader{text: text, decoder: json.NewDecoder(bytes.NewReader(text)), line: 1}
	r.decoder.UseNumber()
	node, err := r.value(0)
	if err != nil {
		return nil, jsonError(text, r.decoder.InputOffset(), err)
	}
	return node, nil
}

type jsonReader struct {
	text    []byte
	decoder *json.Decoder
	// line is that of the token read last, which ends at offset.
	line   int
	offset int
}

func (r *jsonReader) token() (json.Token, error) {
	token, err := r.decoder.Token()
	offset := int(r.decoder.InputOffset())
	r.line += bytes.Count(r.text[r.offset:offset], []byte("\n"))
	r.offset = offset
	return token, err
}

func (r *jsonReader) value(depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	token, err := r.token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		return r.collection(token, depth)
	case string:
		return r.scalar("!!str", token), nil
	case json.Number:
		return r.number(token.String()), nil
	case bool:
		return r.scalar("!!bool", fmt.Sprint(token)), nil
	default:
		return r.scalar("!!null", "null"), nil
	}
}

func (r *jsonReader) collection(open json.Delim, depth int) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: r.line}
	if open == '{' {
		node.Kind, node.Tag = yaml.MappingNode, "!!map"
	}
	for r.decoder.More() {
		if open == '{' {
			key, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, key)
		}
		value, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, value)
	}
	_, err := r.token()
	return node, err
}

func (r *jsonReader) scalar(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value, Line: r.line, Style: yaml.DoubleQuotedStyle}
}

func (r *jsonReader) number(text string) *yaml.Node {
	if strings.ContainsAny(text, ".eE") {
		return r.scalar("!!float", text)
	}
	return r.scalar("!!int", text)
}
