package translate

import (
	"net/netip"
	"reflect"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/internal/table"
)

// differentConfigs is difference for Configs, quick where there is none.
func differentConfigs(want, got model.Config) string {
	if reflect.DeepEqual(want.Frame, got.Frame) && sameEntries(want.Hosts, got.Hosts) && sameEntries(want.Parents, got.Parents) &&
		sameEntries(want.Paths, got.Paths) && sameEntries(want.Rules, got.Rules) && sameEntries(want.Backends, got.Backends) {
		return ""
	}
	return difference(want, got)
}

func sameEntries[V any](a, b table.Table[*V]) bool {
	return slices.EqualFunc(a.Sorted(), b.Sorted(), func(a, b table.Entry[*V]) bool {
		return a.Key == b.Key && reflect.DeepEqual(a.Value, b.Value)
	})
}

// difference compares by value: tables by their entries, addresses by their text.
func difference(want, got any) string {
	return cmp.Diff(want, got,
		byEntries[*model.Host](), byEntries[*model.Parent](), byEntries[*model.Path](), byEntries[*model.Rule](),
		byEntries[*model.Backend](),
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	)
}

func byEntries[V comparable]() cmp.Option {
	return cmp.Transformer("entries", func(t table.Table[V]) map[string]V {
		all := map[string]V{}
		for _, entry := range t.Sorted() {
			all[entry.Key] = entry.Value
		}
		return all
	})
}
