package cluster

import (
	"errors"

	"go.yaml.in/yaml/v3"
)

// What one document may be at most. Manifests are far below; what is above would be a way to exhaust us.
const (
	maxDepth = 500
	// maxGrowth is how much larger than its text a document may become by aliases and merges.
	maxGrowth = 8
)

var errTooDeep = errors.New("is nested too deeply")

// encoded is a document as JSON with sorted keys, which remembers where each value was written.
type encoded struct {
	json  []byte
	marks []mark
	// members are the top-level ones, by key.
	members []member
	// budget is what aliases and merges may still cost.
	budget int
}

// member is a top-level member's value, as a piece of the JSON.
type member struct {
	key        string
	start, end int
}

// encode turns a node into JSON the way kubectl would: aliases and merges resolved, YAML 1.1 words for booleans.
// textSize is that of the text it was read from.
func encode(node *yaml.Node, textSize int) (*encoded, error) {
	e := &encoded{budget: maxGrowth*textSize + 4096}
	if err := e.value(node, place{parent: -1}, 0); err != nil {
		return nil, err
	}
	return e, nil
}

// place is where a value stands in the one that holds it.
type place struct {
	parent int
	key    string
	index  int
}

func (e *encoded) value(node *yaml.Node, at place, depth int) error {
	if err := e.spend(1, node, depth); err != nil {
		return err
	}
	switch node.Kind {
	case yaml.DocumentNode:
		return e.value(node.Content[0], at, depth)
	case yaml.AliasNode:
		return e.value(node.Alias, at, depth+1)
	}
	self := len(e.marks)
	e.marks = append(e.marks, mark{len(e.json), node.Line, at})
	switch node.Kind {
	case yaml.MappingNode:
		return e.mapping(node, self, depth)
	case yaml.SequenceNode:
		return e.sequence(node, self, depth)
	default:
		return e.scalar(node, depth)
	}
}

func (e *encoded) spend(cost int, node *yaml.Node, depth int) error {
	if depth > maxDepth {
		return &syntaxError{line: node.Line, message: errTooDeep.Error()}
	}
	if e.budget -= cost; e.budget < 0 {
		return &syntaxError{line: node.Line, message: "grows too large by its aliases (*name) or merges (<<)"}
	}
	return nil
}

func (e *encoded) sequence(node *yaml.Node, self, depth int) error {
	e.json = append(e.json, '[')
	for i, item := range node.Content {
		if i > 0 {
			e.json = append(e.json, ',')
		}
		if err := e.value(item, place{parent: self, index: i}, depth+1); err != nil {
			return err
		}
	}
	e.json = append(e.json, ']')
	return nil
}

func (e *encoded) mapping(node *yaml.Node, self, depth int) error {
	pairs, err := e.pairs(node, depth)
	if err != nil {
		return err
	}
	e.json = append(e.json, '{')
	for i, p := range pairs {
		if i > 0 {
			e.json = append(e.json, ',')
		}
		e.json = append(appendString(e.json, p.key), ':')
		start := len(e.json)
		if err := e.value(p.value, place{parent: self, key: p.key}, depth+1); err != nil {
			return err
		}
		if self == 0 {
			e.members = append(e.members, member{p.key, start, len(e.json)})
		}
	}
	e.json = append(e.json, '}')
	return nil
}

// keyOf returns a key as text: a number or a boolean is what it was written as.
func keyOf(key *yaml.Node) (string, error) {
	if key.Kind == yaml.AliasNode {
		key = key.Alias
	}
	if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!binary" {
		return "", &syntaxError{line: key.Line, message: "a key must be a plain word"}
	}
	return key.Value, nil
}
