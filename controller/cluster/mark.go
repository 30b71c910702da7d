package cluster

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// mark is where a value begins in the JSON, and where it came from.
type mark struct {
	offset, line int
	// place.parent is the index of the mark of the value that holds this one, -1 at the top.
	place
}

// at returns line and path of the value that holds the given offset of the JSON.
func (e *encoded) at(offset int) (line int, path string) {
	i, found := slices.BinarySearchFunc(e.marks, offset, func(m mark, offset int) int { return cmp.Compare(m.offset, offset) })
	if !found {
		i--
	}
	if i < 0 {
		return 1, ""
	}
	return e.marks[i].line, e.path(i)
}

// line returns the line of the value with the given path, or that of the nearest one around it.
func (e *encoded) line(path string) int {
	line, best := 1, -1
	for i, m := range e.marks {
		of := e.path(i)
		if len(of) > best && (of == "" || path == of || strings.HasPrefix(path, of+".") || strings.HasPrefix(path, of+"[")) {
			line, best = m.line, len(of)
		}
	}
	return line
}

// path is a value's place as "spec.rules[0].name".
func (e *encoded) path(i int) string {
	var steps []string
	for ; e.marks[i].parent >= 0; i = e.marks[i].parent {
		m := e.marks[i]
		switch {
		case e.json[e.marks[m.parent].offset] == '[':
			steps = append(steps, "["+strconv.Itoa(m.index)+"]")
		case e.marks[m.parent].parent < 0:
			steps = append(steps, m.key)
		default:
			steps = append(steps, "."+m.key)
		}
	}
	slices.Reverse(steps)
	return strings.Join(steps, "")
}
