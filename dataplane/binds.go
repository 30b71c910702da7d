package dataplane

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
)

// A worker that cannot bind an address makes the old one let go of all of its listeners, and tries again for two seconds in
// which nobody is served. So HAProxy is never asked for an address that cannot be had. What remains is an address that
// is taken between the look and the reload.

// leaveOutTaken leaves out those whose addresses cannot be had, and says whether there are any. What the running HAProxy
// holds is its own.
func (d *driver) leaveOutTaken(set files.Set) bool {
	var running []files.Bind
	certain := d.known && d.process.Alive() && len(d.running.Sections) > 0
	if certain {
		if sameSlice(d.running.Sections, set.Sections) {
			return false
		}
		running = d.running.Binds()
	}
	held := map[netip.AddrPort]bool{}
	for _, bind := range running {
		held[bind.Address] = true
	}
	words, waits := map[string][]string{}, map[string][]netip.AddrPort{}
	var owners []string
	for _, bind := range set.Binds() {
		if bind.Owner == "" || held[bind.Address] {
			continue
		}
		err := haproxy.TryBind(bind.Address, !certain || overlaps(running, bind.Address))
		why := cannotBind(bind.Address, err)
		if why == "" {
			continue
		}
		if len(waits[bind.Owner]) == 0 {
			owners = append(owners, bind.Owner)
		}
		words[bind.Owner] = append(words[bind.Owner], why)
		waits[bind.Owner] = append(waits[bind.Owner], bind.Address)
	}
	for _, owner := range owners {
		said := strings.Join(words[owner], "; ")
		d.logger.Warn("left out, because its address cannot be bound", "owner", owner, "words", clip(said))
		d.left.leave(owner, refusal{words: clip(said), loading: true, waits: waits[owner]})
	}
	return len(owners) > 0
}

// overlaps tells whether HAProxy holds a part of an address, or the whole that it is a part of.
func overlaps(running []files.Bind, at netip.AddrPort) bool {
	for _, bind := range running {
		if bind.Address.Port() == at.Port() && (bind.Address.Addr().IsUnspecified() || at.Addr().IsUnspecified()) {
			return true
		}
	}
	return false
}

// cannotBind says in plain words why an address cannot be had and what to do; "" if it can, or if only HAProxy can tell.
func cannotBind(at netip.AddrPort, err error) string {
	what, todo := "", ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		what = "is in use by another process on this machine"
		todo = "stop that process, or give the listener another port or the Gateway another address"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		what = fmt.Sprintf("cannot be bound, because this machine has no address %s", at.Addr())
		todo = "give it the address, or the Gateway another one"
	case errors.Is(err, syscall.EACCES):
		what = "cannot be bound, because Limpet's user may not"
		todo = "allow it to (CAP_NET_BIND_SERVICE), or give the listener a port above 1023"
	case errors.Is(err, syscall.EAFNOSUPPORT):
		what, todo = "cannot be bound, because this machine has no address of its family", "give the Gateway another one"
	default:
		return ""
	}
	return fmt.Sprintf("%s %s: %s", at, what, todo)
}
