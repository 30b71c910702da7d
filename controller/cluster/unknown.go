package cluster

import (
	"maps"
	"slices"
	"strings"
)

// unknownField is about a field that the object's kind does not have. The object is taken without it.
func unknownField(e *encoded, id objectID, err error) Problem {
	p := Problem{Severity: Warning, Object: id.String(), Field: fieldPath(err), Message: "there is no such field: it is ignored"}
	p.Line = e.line(p.Field)
	return p
}

// unknownAnnotations are those that speak to Limpet, which reads none: who wrote one believes that something happens.
func unknownAnnotations(e *encoded, id objectID, value anyObject) []Problem {
	const ours = "limpet.dev/"
	var problems []Problem
	for _, key := range slices.Sorted(maps.Keys(value.GetAnnotations())) {
		if !strings.HasPrefix(key, ours) {
			continue
		}
		p := Problem{Severity: Warning, Object: id.String(), Field: "metadata.annotations"}
		p.Line = e.line(p.Field)
		p.Message = "there is no annotation " + clip(key) + ": it is ignored"
		problems = append(problems, p)
	}
	return problems
}
