package translate

import (
	"net/netip"

	"github.com/google/go-cmp/cmp"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/internal/table"
)

// difference compares by value: tables by their sorted entries, addresses by their text.
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
	return cmp.Transformer("entries", func(t table.Table[V]) []table.Entry[V] { return t.Sorted() })
}
