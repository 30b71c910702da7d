package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Marshal returns Updates as a List in YAML, in the given order.
func Marshal(updates []*Update) ([]byte, error) {
	items := make([][]byte, len(updates))
	for i, update := range updates {
		var err error
		if items[i], err = update.item(); err != nil {
			return nil, err
		}
	}
	return list(items), nil
}

// list is a List with these items.
func list(items [][]byte) []byte {
	const head = "apiVersion: v1\nkind: List\nitems:"
	if len(items) == 0 {
		return []byte(head + " []\n")
	}
	return append([]byte(head+"\n"), bytes.Join(items, nil)...)
}

// item is an Update as one item of a YAML list.
func (u *Update) item() ([]byte, error) {
	metadata := map[string]string{"name": u.Name}
	if u.Namespace != "" {
		metadata["namespace"] = u.Namespace
	}
	status, err := plain(u.Status.Value())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.Object, err)
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": u.APIVersion, "kind": u.Kind, "metadata": metadata, "status": status})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.Object, err)
	}
	lines := strings.TrimSuffix(string(text), "\n")
	return []byte("- " + strings.ReplaceAll(lines, "\n", "\n  ") + "\n"), nil
}

// plain is a status as maps and lists, without what is null: the times of a status that nobody has got yet.
func plain(status any) (any, error) {
	text, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return withoutNull(value), nil
}

func withoutNull(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			if member == nil {
				delete(value, key)
			} else {
				value[key] = withoutNull(member)
			}
		}
	case []any:
		for i := range value {
			value[i] = withoutNull(value[i])
		}
	}
	return value
}
