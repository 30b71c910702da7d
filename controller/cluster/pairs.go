package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// pair is one key of a mapping with its value.
type pair struct {
	key   string
	line  int
	value *yaml.Node
}

// pairs returns a mapping's pairs sorted by key, with what it merges in ("<<").
func (e *encoded) pairs(node *yaml.Node, depth int) ([]pair, error) {
	if err := e.spend(len(node.Content)/2, node, depth); err != nil {
		return nil, err
	}
	var own, merged []pair
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.Tag == "!!merge" {
			more, err := e.merged(value, depth+1)
			if err != nil {
				return nil, err
			}
			merged = append(merged, more...)
			continue
		}
		name, err := keyOf(key)
		if err != nil {
			return nil, err
		}
		own = append(own, pair{name, key.Line, value})
	}
	slices.SortStableFunc(own, comparePairs)
	if err := noneTwice(own); err != nil {
		return nil, err
	}
	if merged == nil {
		return own, nil
	}
	// A mapping's own keys win over merged ones, and earlier merged ones over later.
	own = append(own, merged...)
	slices.SortStableFunc(own, comparePairs)
	return slices.CompactFunc(own, func(a, b pair) bool { return a.key == b.key }), nil
}

func comparePairs(a, b pair) int { return cmp.Compare(a.key, b.key) }

func noneTwice(sorted []pair) error {
	for i := 1; i < len(sorted); i++ {
		if first, second := sorted[i-1], sorted[i]; first.key == second.key {
			return &syntaxError{
				line: second.line, message: fmt.Sprintf("the key %q is here a second time, first in line", second.key), other: first.line,
			}
		}
	}
	return nil
}

// merged returns the pairs of what stands behind "<<": a mapping, or several.
func (e *encoded) merged(value *yaml.Node, depth int) ([]pair, error) {
	if err := e.spend(1, value, depth); err != nil {
		return nil, err
	}
	switch value.Kind {
	case yaml.AliasNode:
		return e.merged(value.Alias, depth+1)
	case yaml.MappingNode:
		return e.pairs(value, depth+1)
	case yaml.SequenceNode:
		var all []pair
		for _, item := range value.Content {
			more, err := e.merged(item, depth+1)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
		return all, nil
	default:
		return nil, &syntaxError{line: value.Line, message: "what is merged in (<<) is not a mapping"}
	}
}
