package cluster

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

func (e *encoded) scalar(node *yaml.Node, depth int) error {
	if err := e.spend(len(node.Value), node, depth); err != nil {
		return err
	}
	switch tag := node.ShortTag(); tag {
	case "!!null":
		e.json = append(e.json, "null"...)
	case "!!str", "!!timestamp", "!!merge":
		e.text(node)
	case "!!bool":
		e.json = strconv.AppendBool(e.json, node.Value != "" && strings.ContainsRune("tTyY", rune(node.Value[0])))
	case "!!int", "!!float":
		return e.number(node)
	case "!!binary":
		return e.binary(node)
	default:
		return &syntaxError{line: node.Line, message: fmt.Sprintf("the tag %s is not known", tag)}
	}
	return nil
}

// yaml11 are the words that YAML 1.1, and so kubectl, takes for booleans where they are not quoted.
var yaml11 = map[string]bool{
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"n": false, "N": false, "no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false,
}

func (e *encoded) text(node *yaml.Node) {
	if value, is := yaml11[node.Value]; is && node.Style == 0 {
		e.json = strconv.AppendBool(e.json, value)
		return
	}
	e.json = appendString(e.json, node.Value)
}

func (e *encoded) number(node *yaml.Node) error {
	if node.Style == yaml.DoubleQuotedStyle { // It comes from JSON, and is in its form already.
		e.json = append(e.json, node.Value...)
		return nil
	}
	var value any
	if err := node.Decode(&value); err != nil {
		return &syntaxError{line: node.Line, message: "is no number"}
	}
	switch value := value.(type) {
	case int:
		e.json = strconv.AppendInt(e.json, int64(value), 10)
	case int64:
		e.json = strconv.AppendInt(e.json, value, 10)
	case uint64:
		e.json = strconv.AppendUint(e.json, value, 10)
	case float64:
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return &syntaxError{line: node.Line, message: "is not a finite number"}
		}
		e.json = appendFloat(e.json, value)
	default:
		return &syntaxError{line: node.Line, message: "is no number"}
	}
	return nil
}

// appendFloat writes whole numbers without an exponent: an integer may be written 80.0.
func appendFloat(to []byte, value float64) []byte {
	if value == math.Trunc(value) && math.Abs(value) < 1e15 {
		return strconv.AppendInt(to, int64(value), 10)
	}
	return strconv.AppendFloat(to, value, 'g', -1, 64)
}

func (e *encoded) binary(node *yaml.Node) error {
	value, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(node.Value), ""))
	if err != nil || !utf8.Valid(value) {
		return &syntaxError{line: node.Line, message: "is !!binary, but not the base64 of a text"}
	}
	e.json = appendString(e.json, string(value))
	return nil
}

const hexDigits = "0123456789abcdef"

// appendString appends a JSON string. The text is valid UTF-8.
func appendString(to []byte, text string) []byte {
	to = append(to, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			to = append(to, '\\', c)
		case c < ' ' || c == 0x7f:
			to = append(to, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			to = append(to, c)
		}
	}
	return append(to, '"')
}
