package cluster

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is what a part of a file says. It depends on the part's text alone, and is kept while that is the same.
type document struct {
	hash    [sha256.Size]byte
	objects []*object
	// problems have lines that count from the part's first, as 1.
	problems []Problem
}

// typeMeta is what an object says to be.
type typeMeta struct{ apiVersion, kind string }

// reader reads one part.
type reader struct {
	*document
	textSize int
}

// readDocument reads a part. Whatever it holds, there is a document.
func readDocument(text []byte, isJSON bool) *document {
	r := reader{&document{}, len(text)}
	defer func() {
		if value := recover(); value != nil {
			r.objects = nil
			r.fail(fmt.Errorf("a mistake in Limpet, please report it: %v", value))
		}
	}()
	if len(text) > maxPart {
		r.fail(fmt.Errorf("the document is larger than %d MiB: put its objects into documents of their own, separated by ---", maxPart>>20))
		return r.document
	}
	nodes, err := parse(text, isJSON)
	if err != nil {
		r.fail(err)
	}
	for _, node := range nodes {
		r.node(node, typeMeta{}, 0)
	}
	return r.document
}

func parse(text []byte, isJSON bool) ([]*yaml.Node, error) {
	if !isJSON {
		return parseYAML(text)
	}
	node, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	return []*yaml.Node{node}, nil
}

// maxLists is how deep lists may hold lists.
const maxLists = 4

// node takes in an object, or the objects of a list. Items of a list of one kind need not say which kind they are.
func (r *reader) node(node *yaml.Node, item typeMeta, depth int) {
	for node.Kind == yaml.DocumentNode || node.Kind == yaml.AliasNode {
		if node.Kind == yaml.AliasNode {
			node = node.Alias
		} else {
			node = node.Content[0]
		}
	}
	if node.ShortTag() == "!!null" {
		return
	}
	if node.Kind != yaml.MappingNode {
		r.fail(&syntaxError{line: node.Line, message: "is no object: there must be apiVersion, kind and metadata"})
		return
	}
	members, err := (&encoded{budget: maxGrowth * r.textSize}).pairs(node, 0)
	if err != nil {
		r.fail(err)
		return
	}
	is := typeOf(members, item)
	if is.kind == "" || is.apiVersion == "" {
		r.fail(&syntaxError{line: node.Line, message: "is no object: it must say its apiVersion and kind"})
		return
	}
	if items := find(members, "items"); items != nil && strings.HasSuffix(is.kind, "List") {
		r.list(items, is, depth)
		return
	}
	r.object(node, is)
}

func (r *reader) list(items *yaml.Node, is typeMeta, depth int) {
	if depth == maxLists {
		r.fail(&syntaxError{line: items.Line, message: "is a list of lists of lists"})
		return
	}
	item := typeMeta{is.apiVersion, strings.TrimSuffix(is.kind, "List")}
	for _, node := range items.Content {
		r.node(node, item, depth+1)
	}
}

func typeOf(members []pair, otherwise typeMeta) typeMeta {
	is := otherwise
	if node := find(members, "apiVersion"); node != nil {
		is.apiVersion = node.Value
	}
	if node := find(members, "kind"); node != nil {
		is.kind = node.Value
	}
	return is
}

func find(pairs []pair, key string) *yaml.Node {
	for _, p := range pairs {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

// fail notes an error about the part.
func (r *reader) fail(err error) {
	p := Problem{Severity: Error, Line: 1, Message: err.Error()}
	var syntax *syntaxError
	if errors.As(err, &syntax) {
		p.Line, p.Message, p.other = syntax.line, syntax.message, syntax.other
	}
	r.problems = append(r.problems, p)
}
