package cluster

import (
	"errors"
	"maps"
	"slices"
	"strings"

	strictjson "sigs.k8s.io/json"
)

// unknownField is about a field that the object's kind does not have. The object is taken without it.
func unknownField(e *encoded, id objectID, err error) Problem {
	p := Problem{Severity: Warning, Object: id.String(), Message: "there is no such field: it is ignored"}
	var field strictjson.FieldError
	if errors.As(err, &field) {
		p.Field = field.FieldPath()
	}
	p.Line = e.line(p.Field)
	if hint := renamed(id, p.Field); hint != "" {
		p.Message += "; " + hint
	}
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

// renamed says what a field of older versions of the Gateway API is called now. Users of session persistence would
// otherwise have a route that is accepted and keeps no session.
func renamed(id objectID, field string) string {
	_, member, inside := strings.Cut(field, ".sessionPersistence.")
	if !inside || id.kind != "HTTPRoute" {
		return ""
	}
	switch {
	case member == "sessionName":
		return "since v1.7 of the Gateway API the name is cookie.name or, with type: Header, header.name"
	case member == "cookieConfig" || strings.HasPrefix(member, "cookieConfig."):
		return "since v1.7 of the Gateway API it is cookie: cookie.lifetimeType, cookie.name, cookie.path"
	case member == "idleTimeout":
		return "v1.7 of the Gateway API has absoluteTimeout alone"
	default:
		return ""
	}
}
