package cluster

import (
	gojson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	strictjson "sigs.k8s.io/json"
)

// object takes in one object.
func (r *reader) object(node *yaml.Node, is typeMeta) {
	e, err := encode(node, r.textSize)
	if err != nil {
		r.fail(err)
		return
	}
	k, err := kindOf(is.apiVersion, is.kind)
	if err != nil {
		r.fail(&syntaxError{line: e.line("apiVersion"), message: err.Error()})
		return
	}
	decode := untyped
	if k != nil {
		decode = k.decode
	}
	value, unknown, err := decode(e.json)
	var old oldSessions
	if err == nil {
		old, unknown, err = readOldSessions(e.json, value, unknown)
	}
	if err != nil {
		r.problems = append(r.problems, typeProblem(e, is, err))
		return
	}
	id := identify(value, is, k)
	for _, err := range unknown {
		r.problems = append(r.problems, unknownField(e, id, err))
	}
	r.problems = append(r.problems, unknownAnnotations(e, id, value)...)
	if p := checkNames(e, id, value, k); p != nil {
		r.problems = append(r.problems, *p)
		return
	}
	if k != nil {
		value.GetObjectKind().SetGroupVersionKind(k.schema())
		if k.finish != nil {
			k.finish(value)
		}
	}
	read := newObject(id, e, value)
	read.sessions = old
	r.objects = append(r.objects, read)
}

// identify gives the object its namespace if it has none, and says what it is known by.
func identify(value anyObject, is typeMeta, k *kind) objectID {
	version, _ := schema.ParseGroupVersion(is.apiVersion)
	id := objectID{version.Group, is.kind, value.GetNamespace(), value.GetName()}
	switch {
	case k != nil && k.clusterScoped:
		id.namespace = ""
	case id.namespace == "" && (k != nil || gatewayAPI(id.group) && id.kind != "XMesh"):
		id.namespace = "default"
	}
	if id.namespace != value.GetNamespace() {
		value.SetNamespace(id.namespace)
	}
	return id
}

// gatewayAPI holds for the groups of the Gateway API and for our own, in which nearly every kind has a namespace.
func gatewayAPI(group string) bool {
	return strings.HasPrefix(group, "gateway.networking.") || group == "limpet.dev"
}

// checkNames refuses names that no API server would let pass: what they reach need not be ready for more.
func checkNames(e *encoded, id objectID, value anyObject, k *kind) *Problem {
	names := content.IsPathSegmentName
	if k != nil {
		names = k.names
	}
	field, wrong := "metadata.name", names(id.name)
	switch {
	case id.name == "" && value.GetGenerateName() != "":
		field, wrong = "metadata.generateName", []string{"only an API server can make a name of this: give metadata.name"}
	case id.name == "":
		wrong = []string{"the object has no name"}
	case len(wrong) == 0 && id.namespace != "":
		field, wrong = "metadata.namespace", label(id.namespace)
	}
	if len(wrong) == 0 {
		return nil
	}
	return &Problem{
		Severity: Error, Line: e.line(field), Object: id.kind + " " + clip(strings.TrimPrefix(id.namespace+"/"+id.name, "/")),
		Field: field, Message: strings.Join(wrong, "; "),
	}
}

// clip makes what a hostile writer may have written fit for a line of a log.
func clip(text string) string {
	const most = 100
	if len(text) > most {
		text = text[:most] + "…"
	}
	quoted := fmt.Sprintf("%q", text)
	if quoted == `"`+text+`"` {
		return text
	}
	return quoted
}

// typeProblem is about a value that is not of the field's type.
func typeProblem(e *encoded, is typeMeta, err error) Problem {
	p := Problem{Severity: Error, Line: e.line("metadata.name"), Object: is.kind, Message: strings.TrimPrefix(err.Error(), "json: ")}
	if name := nameIn(e.json); name != "" {
		p.Object = is.kind + " " + clip(name)
	}
	var wrong *gojson.UnmarshalTypeError
	if errors.As(err, &wrong) {
		p.Line, p.Field = e.at(int(wrong.Offset) - 1)
		// What else it says of the value may be the value itself, and that may be a secret.
		given, _, _ := strings.Cut(wrong.Value, " ")
		p.Message = fmt.Sprintf("must be %s, but %s is given", wanted(wrong.Type), article(given))
		if given == "bool" || given == "number" && wrong.Type.Kind() == reflect.String {
			p.Message += ": put it in quotes"
		}
	}
	return p
}

// nameIn finds the name of an object that could not be read.
func nameIn(data []byte) string {
	var of struct {
		Metadata struct {
			Namespace any `json:"namespace"`
			Name      any `json:"name"`
		} `json:"metadata"`
	}
	_ = strictjson.UnmarshalCaseSensitivePreserveInts(data, &of)
	name, _ := of.Metadata.Name.(string)
	if namespace, _ := of.Metadata.Namespace.(string); namespace != "" {
		return namespace + "/" + name
	}
	return name
}

// wanted says what a field's type is, in words of YAML.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16,
		reflect.Uint32, reflect.Uint64:
		return "a whole number that fits"
	case reflect.Slice, reflect.Array:
		return "a list"
	default:
		return "a mapping"
	}
}

func article(given string) string {
	switch given {
	case "array":
		return "a list"
	case "object":
		return "a mapping"
	case "bool":
		return "a boolean"
	default:
		return "a " + given
	}
}
