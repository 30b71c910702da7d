package status

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/limpet-gateway/limpet/controller/conditions"
)

// merger puts what we say of an object into what the API server holds of it. It works on JSON as it is, so that what
// others wrote survives even where we do not know its form.
type merger struct {
	controller string
	now        string
}

// Merge is the status that an object is to have: live with what the Update says in the place of what we said before. It
// is nil if that is what live says already. Without an Update, we have nothing to say of the object any more.
func (m *merger) merge(live []byte, update *Update) (map[string]any, error) {
	was := map[string]any{}
	if len(live) > 0 {
		if err := json.Unmarshal(live, &was); err != nil {
			return nil, fmt.Errorf("the status that is there: %w", err)
		}
	}
	want, err := toJSON(update)
	if err != nil {
		return nil, err
	}
	is := make(map[string]any, len(was))
	for key, value := range was {
		is[key] = value
	}
	switch {
	case update == nil:
		m.withdraw(is)
	case update.Status.Route != nil:
		is["parents"] = m.entries(was["parents"], want["parents"], "parentRef")
	case update.Status.Policy != nil:
		is["ancestors"] = m.entries(was["ancestors"], want["ancestors"], "ancestorRef")
	case update.Status.Class != nil:
		is["conditions"] = m.conditions(was["conditions"], want["conditions"])
		replace(is, want, "supportedFeatures")
	default:
		is["conditions"] = m.conditions(was["conditions"], want["conditions"])
		is["listeners"] = m.listeners(was["listeners"], want["listeners"])
		replace(is, want, "addresses", "attachedListenerSets")
	}
	if reflect.DeepEqual(was, is) {
		return nil, nil //nolint:nilnil // nothing to write
	}
	return is, nil
}

// toJSON is an Update's status as the API server would hold it.
func toJSON(update *Update) (map[string]any, error) {
	if update == nil {
		return nil, nil //nolint:nilnil // nothing to say
	}
	data, err := json.Marshal(update.Status.Value())
	if err != nil {
		return nil, err
	}
	var value map[string]any
	err = json.Unmarshal(data, &value)
	return value, err
}

// replace takes over fields that are ours alone.
func replace(is, want map[string]any, fields ...string) {
	for _, field := range fields {
		if value, there := want[field]; there && value != nil {
			is[field] = value
		} else {
			delete(is, field)
		}
	}
}

// withdraw removes our entries.
func (m *merger) withdraw(is map[string]any) {
	for field, ref := range map[string]string{"parents": "parentRef", "ancestors": "ancestorRef"} {
		if _, there := is[field]; there {
			is[field] = m.entries(is[field], nil, ref)
		}
	}
}

// entries merges a list that controllers share. Each has its own entries, by controllerName; those of others stay in their places.
func (m *merger) entries(was, want any, ref string) []any {
	mine := slices.Clone(items(want))
	merged := []any{}
	for _, item := range items(was) {
		entry, _ := item.(map[string]any)
		if entry["controllerName"] != m.controller {
			merged = append(merged, item)
			continue
		}
		at := slices.IndexFunc(mine, func(one any) bool { return reflect.DeepEqual(member(one, ref), entry[ref]) })
		if at < 0 {
			continue // The reference is gone, or leads to nothing of ours any more.
		}
		merged = append(merged, m.overlay(entry, mine[at]))
		mine = slices.Delete(mine, at, at+1)
	}
	for _, one := range mine {
		merged = append(merged, m.overlay(nil, one))
	}
	return merged
}

// listeners merges by name. What is no listener any more is gone.
func (m *merger) listeners(was, want any) []any {
	merged := []any{}
	for _, one := range items(want) {
		var before map[string]any
		for _, item := range items(was) {
			if entry, _ := item.(map[string]any); entry != nil && entry["name"] == member(one, "name") {
				before = entry
			}
		}
		merged = append(merged, m.overlay(before, one))
	}
	return merged
}

// overlay is an entry of a list with our fields in it.
func (m *merger) overlay(was map[string]any, want any) map[string]any {
	merged := make(map[string]any, len(was))
	for key, value := range was {
		merged[key] = value
	}
	fields, _ := want.(map[string]any)
	for key, value := range fields {
		if value != nil {
			merged[key] = value
		}
	}
	merged["conditions"] = m.conditions(was["conditions"], fields["conditions"])
	return merged
}

// conditions merges by type. A condition gets a new time when its status changes, and only then.
func (m *merger) conditions(was, want any) []any {
	mine := slices.Clone(items(want))
	merged := []any{}
	for _, item := range items(was) {
		kind, _ := member(item, "type").(string)
		at := slices.IndexFunc(mine, func(one any) bool { return member(one, "type") == kind })
		switch {
		case at >= 0:
			merged = append(merged, m.condition(item, mine[at]))
			mine = slices.Delete(mine, at, at+1)
		case !conditions.Ours(kind):
			merged = append(merged, item)
		}
	}
	for _, one := range mine {
		merged = append(merged, m.condition(nil, one))
	}
	return merged
}

// condition: one that was written for a newer generation than ours stays (another replica of ours has seen more; the API:
// "it MUST NOT perform the update on that Condition").
func (m *merger) condition(was, want any) any {
	merged := map[string]any{}
	before, _ := was.(map[string]any)
	fields, _ := want.(map[string]any)
	if generation(before) > generation(fields) {
		return was
	}
	for key, value := range fields {
		merged[key] = value
	}
	merged["lastTransitionTime"] = m.now
	if time, there := before["lastTransitionTime"]; there && before["status"] == merged["status"] {
		merged["lastTransitionTime"] = time
	}
	return merged
}

func generation(condition map[string]any) float64 {
	number, _ := condition["observedGeneration"].(float64)
	return number
}

func items(list any) []any {
	all, _ := list.([]any)
	return all
}

func member(of any, key string) any {
	fields, _ := of.(map[string]any)
	return fields[key]
}

// mentions says whether a status has an entry of ours in a list that controllers share.
func (m *merger) mentions(live []byte) bool {
	var state struct {
		Parents, Ancestors []struct {
			ControllerName string `json:"controllerName"`
		}
	}
	if json.Unmarshal(live, &state) != nil {
		return false
	}
	for _, entry := range slices.Concat(state.Parents, state.Ancestors) {
		if entry.ControllerName == m.controller {
			return true
		}
	}
	return false
}

// changedConditions are those that are not as they were before, with the section that they are in.
func changedConditions(before, after *Update, each func(section string, was *metav1.Condition, is metav1.Condition)) {
	known := map[string][]metav1.Condition{}
	if before != nil {
		for _, section := range before.Sections() {
			known[section.Name] = section.Conditions
		}
	}
	for _, section := range after.Sections() {
		for _, c := range section.Conditions {
			was, there := find(known[section.Name], c.Type)
			switch {
			case !there:
				each(section.Name, nil, c)
			case was.Status != c.Status || was.Reason != c.Reason || was.Message != c.Message:
				each(section.Name, &was, c)
			}
		}
	}
}
