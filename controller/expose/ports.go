package expose

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
)

// rest is how long a container port that was given back is given to nobody else. HAProxy's old workers serve the
// connections of the last holder for up to an hour, and routers of the cluster may know the port for a while.
const rest = 2 * time.Hour

// maxPerNamespace is how many ports the Gateways of one namespace may have, so that nobody takes them all.
const maxPerNamespace = (cluster.LastPort - cluster.FirstPort + 1) / 4

// allocation brings a table up to date.
type allocation struct {
	entries map[uint16]cluster.PortEntry
	// count is how many ports each namespace has.
	count map[string]int
	next  uint16
	now   time.Time
}

// ports brings the table up to date, and says for which Gateways there is no port left, and why.
func (c *computation) ports() map[*graph.Gateway]string {
	table := c.snapshot.Ports
	a := &allocation{entries: make(map[uint16]cluster.PortEntry), count: make(map[string]int), next: cluster.FirstPort, now: c.now}
	a.keep(table, c.holders())
	unplaced := make(map[*graph.Gateway]string)
	for _, gateway := range c.graph.Gateways {
		if !gateway.Accepted {
			continue
		}
		for _, holder := range needed(gateway) {
			if why := a.place(table, gateway.Source.Namespace, holder); why != "" {
				unplaced[gateway] = why
			}
		}
	}
	fresh := cluster.NewPortTable("", a.entries)
	if table.Version() == "" || !table.EqualEntries(fresh) {
		c.change(Change{Verb: Put, Object: c.portsConfigMap(fresh), First: table == nil})
	}
	return unplaced
}

func (c *computation) portsConfigMap(table *cluster.PortTable) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.options.Namespace, Name: c.options.PortsConfigMap, ResourceVersion: c.snapshot.Ports.Version(),
			Labels: map[string]string{cluster.LabelManagedBy: cluster.ManagedBy},
		},
		Data: table.Data(),
	}
}

// holders are all ports that our Gateways name, with their namespaces. One that is refused for the moment keeps its ports.
func (c *computation) holders() map[cluster.PortHolder]string {
	all := make(map[cluster.PortHolder]string)
	for _, gateway := range c.graph.Gateways {
		for _, listener := range gateway.AllListeners() {
			if listener.Port != 0 {
				all[listener.Holder()] = gateway.Source.Namespace
			}
		}
	}
	return all
}

// needed are the ports that a Gateway needs, in order, each once.
func needed(gateway *graph.Gateway) []cluster.PortHolder {
	ports := make(map[uint16]cluster.PortHolder)
	for _, listener := range gateway.AllListeners() {
		if listener.Accepted && listener.Port != 0 {
			ports[listener.Port] = listener.Holder()
		}
	}
	holders := make([]cluster.PortHolder, 0, len(ports))
	for _, port := range slices.Sorted(maps.Keys(ports)) {
		holders = append(holders, ports[port])
	}
	return holders
}

// keep takes over what a table has: what is used as it is, what is not used any more as free from now on, and what has been
// free for long enough not at all. Only that a port could be forgotten is no reason to write.
func (a *allocation) keep(table *cluster.PortTable, used map[cluster.PortHolder]string) {
	dropped := make(map[uint16]cluster.PortEntry)
	changes := 0
	for port, entry := range table.All() {
		namespace, inUse := used[entry.Holder]
		switch {
		case entry.Free.IsZero() && inUse && table.Port(entry.Holder) == port:
			a.count[namespace]++
		case entry.Free.IsZero():
			entry.Free = a.now
			changes++
		case a.now.Sub(entry.Free) > rest:
			dropped[port] = entry
			continue
		}
		a.entries[port] = entry
	}
	if changes == 0 && !a.missing(table, used) {
		maps.Copy(a.entries, dropped)
	}
}

// missing says whether a port is used that the table does not have.
func (a *allocation) missing(table *cluster.PortTable, used map[cluster.PortHolder]string) bool {
	for holder := range used {
		if table.Port(holder) == 0 {
			return true
		}
	}
	return false
}

// place gives a holder a port, if he has none: the one that he had last, else the lowest that nobody has. It says why there
// is none.
func (a *allocation) place(table *cluster.PortTable, namespace string, holder cluster.PortHolder) string {
	if table.Port(holder) != 0 {
		return ""
	}
	if a.count[namespace] >= maxPerNamespace {
		return "the Gateways of namespace " + namespace + " have a quarter of all ports of Limpet's pods, and get no more: delete some listeners."
	}
	port := table.Last(holder)
	if a.entries[port].Holder != holder {
		port = a.lowest()
	}
	if port == 0 {
		return "no port of Limpet's pods is left: those of deleted listeners are given away again after two hours."
	}
	a.count[namespace]++
	a.entries[port] = cluster.PortEntry{Holder: holder}
	return ""
}

func (a *allocation) lowest() uint16 {
	for ; a.next <= cluster.LastPort; a.next++ {
		if _, taken := a.entries[a.next]; !taken {
			return a.next
		}
	}
	return 0
}
