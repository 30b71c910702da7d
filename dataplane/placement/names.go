package placement

import (
	"cmp"
	"slices"

	"github.com/limpet-gateway/limpet/controller/model"
)

// literalNames is how many cookie and how many header names the configuration holds: each costs every session a look.
const literalNames = 8

// Names are the session names that are used most: the ones worth writing into the configuration when it is written anyway
// (docs/decisions/0007).
func Names(config model.Config) (cookies, headers []string) {
	counts := map[model.Carrier]map[string]int{model.Cookie: {}, model.HeaderLine: {}}
	for _, e := range config.Rules.Sorted() {
		for _, share := range e.Value.Split {
			if share.Session != nil {
				counts[share.Session.Carrier][share.Session.Name]++
			}
		}
	}
	return most(counts[model.Cookie]), most(counts[model.HeaderLine])
}

// most returns the names with the highest counts, in the order of the alphabet.
func most(counts map[string]int) []string {
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	names = names[:min(len(names), literalNames)]
	slices.Sort(names)
	return names
}
