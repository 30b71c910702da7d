package templates

import (
	"strings"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
)

// ruleLabel leads from a rule to its route and its name within that, for the access log.
func ruleLabel(rule *model.Rule) line {
	route, name, found := strings.Cut(rule.Display, " rule ")
	if !found {
		route, name = string(rule.Owner), "-"
	}
	return line{labelsMap, rule.ID, files.Entry{Owner: string(rule.Owner), Value: route + ";" + name}}
}

// backendLabels lead from a slot to its backend, and from the slot's servers to what they are.
func backendLabels(slot string, backend *model.Backend) []line {
	lines := []line{{labelsMap, slot, files.Entry{Owner: string(backend.Owner), Value: backend.Name}}}
	if backend.External != "" {
		entry := files.Entry{Owner: string(backend.Owner), Value: backend.External}
		lines = append(lines, line{labelsMap, files.ServerKey(slot, externalName), entry})
	}
	for _, endpoint := range backend.Endpoints {
		value := endpoint.Display
		if value == "" {
			value = endpoint.Address.String()
		}
		lines = append(lines, line{labelsMap, files.ServerKey(slot, endpoint.Name), files.Entry{Owner: string(backend.Owner), Value: value}})
	}
	return lines
}
