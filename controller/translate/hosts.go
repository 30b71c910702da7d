package translate

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// A request belongs to the listener with the most specific hostname on its port, and then only that listener's routes
// count. Within them the route's own hostname decides, as the route spells it (GatewayRouteHostnameIntersectionPrecedence):
// a listener and one hostname of its routes are a virtual host.
//
// A connection at layer 4 is like a request whose host is its server name, and whose path is "/".
//
// A pattern is what hosts.map is asked for: a listener's own hostname, and what it has in common with each of its routes'
// hostnames. It leads to the most specific virtual host that covers it; from there, the parents are the listener's next
// broader ones. A listener's own hostname is a pattern even without a route: else a broader listener would serve it.

// listeners are those that serve, with the virtual hosts that their routes make.
type listeners struct {
	byName map[listenerName]*listener
	// touched are the virtual hosts whose users changed since the last settle.
	touched []*virtualHost
	// fresh says that nothing has settled yet: every pattern is due.
	fresh bool
}

// listenerName is what a listener is known by: its Gateway, its ListenerSet if it stands in one, and its own name there.
type listenerName struct {
	gateway, set types.NamespacedName
	listener     string
}

func nameOf(source *graph.Listener) listenerName {
	name := listenerName{gateway: source.Gateway.Key(), listener: source.Name}
	if source.Set != nil {
		name.set = source.Set.Key()
	}
	return name
}

type listener struct {
	name     listenerName
	hostname string
	// passthrough listeners do not see what is within TLS.
	passthrough bool
	// places are where it listens, one for each of the Gateway's addresses.
	places []place
	// peers are the listeners on the same port, itself included, by hostname.
	peers map[string]*listener
	// hosts are its virtual hosts by the routes' hostname.
	hosts map[string]*virtualHost
}

// place is a listener's port on one address, and its TLS server there; "" on a plain port.
type place struct{ port, server string }

type virtualHost struct {
	listener *listener
	hostname string
	id       string
	users    int
	// live says that it was there when hosts settled last.
	live, touched bool
}

func newListeners() listeners { return listeners{byName: map[listenerName]*listener{}, fresh: true} }

// addPort adds the listeners that share a port of a Gateway.
func (ls *listeners) addPort(gateway *graph.Gateway, port gatewayPort) {
	peers := map[string]*listener{}
	for _, source := range port.listeners {
		l := &listener{
			name: nameOf(source), hostname: source.Hostname, passthrough: source.Protocol == graph.TLSPassthrough,
			peers: peers, hosts: map[string]*virtualHost{},
		}
		for _, address := range gateway.Addresses {
			at := place{port: portID(gateway.Key(), address.String(), port.number)}
			if source.Protocol.TLS() {
				at.server = tlsServerID(source, address.String())
			}
			l.places = append(l.places, at)
		}
		peers[l.hostname], ls.byName[l.name] = l, l
	}
}

// attach returns the virtual hosts that a route is part of, each once, and counts the route as their user.
func (ls *listeners) attach(source *graph.Route) []*virtualHost {
	hostnames := source.Hostnames
	if len(hostnames) == 0 {
		if source.NoHostname {
			return nil // none of its hostnames is valid: that is not every host
		}
		hostnames = []string{""}
	}
	var all []*virtualHost
	seen := map[*virtualHost]bool{}
	for _, l := range ls.of(source) {
		for _, hostname := range hostnames {
			if host := l.host(hostname); host != nil && !seen[host] {
				seen[host] = true
				all = append(all, host)
				host.users++
				ls.touch(host)
			}
		}
	}
	return all
}

// of returns the serving listeners that a route attaches to, or that it is kept from while nothing of it can be honoured:
// there it answers with 500, so that no broader route answers for it.
func (ls *listeners) of(source *graph.Route) []*listener {
	var all []*listener
	for _, parent := range source.Parents {
		for _, attached := range slices.Concat(parent.Listeners, parent.Blocked) {
			if l := ls.byName[nameOf(attached)]; l != nil {
				all = append(all, l)
			}
		}
	}
	return all
}

// release ends a route's use of a virtual host.
func (ls *listeners) release(host *virtualHost) {
	host.users--
	ls.touch(host)
}

func (ls *listeners) touch(host *virtualHost) {
	if !host.touched {
		host.touched = true
		ls.touched = append(ls.touched, host)
	}
}

// settle brings hosts and parents in line with the virtual hosts that have users now.
func (ls *listeners) settle(changed *changes) {
	var differ []*virtualHost
	for _, host := range ls.touched {
		host.touched = false
		if live := host.users > 0; live != host.live {
			host.live = live
			differ = append(differ, host)
		}
		if !host.live {
			delete(host.listener.hosts, host.hostname)
		}
	}
	ls.touched = ls.touched[:0]
	if ls.fresh {
		ls.settleAll(changed)
		return
	}
	for _, host := range differ {
		host.settle(changed)
	}
}

func (ls *listeners) settleAll(changed *changes) {
	ls.fresh = false
	for _, l := range ls.byName {
		l.settlePattern(l.hostname, changed)
		for _, host := range l.hosts {
			host.settleOwn(changed)
		}
	}
}

// host returns the virtual host for a route's hostname; nil if a request for it never comes to this listener, because
// the two have no host in common or a more specific listener takes all of them.
func (l *listener) host(hostname string) *virtualHost {
	pattern, common := intersection(l.hostname, hostname)
	if !common || !l.governs(pattern) {
		return nil
	}
	host := l.hosts[hostname]
	if host == nil {
		host = &virtualHost{listener: l, hostname: hostname, id: l.hostID(hostname)}
		l.hosts[hostname] = host
	}
	return host
}

func (l *listener) hostID(hostname string) string {
	return virtualHostID(l.name, hostname)
}

// governs says that no listener on the port is more specific for a pattern that l covers.
func (l *listener) governs(pattern string) bool {
	for hostname, more := pattern, true; more && hostname != l.hostname; hostname, more = broader(hostname) {
		if l.peers[hostname] != nil {
			return false
		}
	}
	return true
}

// covering returns the most specific virtual host that covers a hostname, nil if there is none.
func (l *listener) covering(hostname string) *virtualHost {
	for more := true; more; hostname, more = broader(hostname) {
		if host := l.hosts[hostname]; host != nil {
			return host
		}
	}
	return nil
}

// settlePattern says where a pattern leads to: at least to a virtual host with nothing in it, which answers 404.
func (l *listener) settlePattern(pattern string, changed *changes) {
	id := ""
	if covering := l.covering(pattern); covering != nil {
		id = covering.id
	} else if pattern == l.hostname {
		id = l.hostID(l.hostname)
	}
	if pattern != l.hostname && l.hosts[pattern] == nil {
		id = ""
	}
	key := pattern
	if key == "" {
		key = "*"
	}
	for _, at := range l.places {
		var host *model.Host
		if id != "" {
			host = &model.Host{Owner: gatewayOwner(l.name.gateway), VirtualHost: id, Server: at.server}
		}
		set(&changed.hosts, model.HostKey(at.port, key), host)
	}
}

// settle brings in line what depends on whether the virtual host is there: its own pattern and parent, and those of the
// virtual hosts that it covers.
func (h *virtualHost) settle(changed *changes) {
	h.settleOwn(changed)
	if exact(h.hostname) {
		return
	}
	for _, other := range h.listener.hosts {
		if other != h && covers(h.hostname, other.hostname) {
			other.settleOwn(changed)
		}
	}
}

func (h *virtualHost) settleOwn(changed *changes) {
	pattern, _ := intersection(h.listener.hostname, h.hostname)
	h.listener.settlePattern(pattern, changed)
	var parent *model.Parent
	if next, more := broader(h.hostname); more && h.live {
		if covering := h.listener.covering(next); covering != nil {
			parent = &model.Parent{Owner: gatewayOwner(h.listener.name.gateway), VirtualHost: covering.id}
		}
	}
	set(&changed.parents, h.id, parent)
}
