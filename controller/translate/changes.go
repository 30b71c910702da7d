package translate

import (
	"reflect"
	"slices"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/internal/table"
)

// changes collects what one call may have to change, by key; nil removes the entry.
type changes struct {
	hosts    map[string]*model.Host
	parents  map[string]*model.Parent
	paths    map[string]*model.Path
	rules    map[string]*model.Rule
	backends map[string]*model.Backend

	certificates map[string]*model.Certificate
	authorities  map[string]*model.Authority
}

// everyHost marks all hosts and parents there are: those that nothing sets again are removed.
func (c *changes) everyHost(config model.Config) {
	for _, entry := range config.Hosts.Sorted() {
		set(&c.hosts, entry.Key, nil)
	}
	for _, entry := range config.Parents.Sorted() {
		set(&c.parents, entry.Key, nil)
	}
}

func (c *changes) apply(config *model.Config) {
	config.Hosts = edited(config.Hosts, c.hosts, equal)
	config.Parents = edited(config.Parents, c.parents, equal)
	config.Paths = edited(config.Paths, c.paths, equalPaths)
	config.Rules = edited(config.Rules, c.rules, deepEqual)
	config.Backends = edited(config.Backends, c.backends, deepEqual)
	config.Certificates = edited(config.Certificates, c.certificates, equal)
	config.Authorities = edited(config.Authorities, c.authorities, equal)
}

// set puts a value into a map that is made when it is first needed.
func set[V any](m *map[string]*V, key string, value *V) {
	if *m == nil {
		*m = map[string]*V{}
	}
	(*m)[key] = value
}

// edited returns the table with the changes made. A value that equals the present one keeps the present pointer, so that
// later stages see only what differs; where nothing does, the table itself is returned.
func edited[V any](old table.Table[*V], changed map[string]*V, same func(a, b *V) bool) table.Table[*V] {
	var edit *table.Editor[*V]
	for key, value := range changed {
		now, found := old.Get(key)
		if found == (value != nil) && (!found || same(now, value)) {
			continue
		}
		if edit == nil {
			edit = old.Edit()
		}
		if value == nil {
			edit.Delete(key)
		} else {
			edit.Set(key, value)
		}
	}
	if edit == nil {
		return old
	}
	return edit.Table()
}

func equal[V comparable](a, b *V) bool { return *a == *b }

func deepEqual[V any](a, b *V) bool { return a == b || reflect.DeepEqual(a, b) }

// equalPaths is deepEqual without reflection: paths are what there is most of.
func equalPaths(a, b *model.Path) bool {
	return a.Owner == b.Owner && slices.EqualFunc(a.Candidates, b.Candidates, func(a, b model.Candidate) bool {
		return a.Owner == b.Owner && a.Target == b.Target && slices.Equal(a.Conditions, b.Conditions)
	})
}
