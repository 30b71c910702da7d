package dataplane

import (
	"net/netip"
	"regexp"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/haproxy"
)

const (
	// lookEvery is how often it is looked whether an address is free: that costs nobody anything.
	lookEvery = time.Second
	// A load that HAProxy refuses holds up everybody for two seconds: one that failed is tried again less and less often,
	// at the latest after Retry doubled that many times.
	maxDoublings = 6
)

// retry takes those in again that may have healed, and adds slots when few are left. It says whether a round is needed.
func (d *driver) retry(now time.Time) bool {
	if !d.known || !d.given || now.Sub(d.reloaded) < d.ReloadEvery {
		return false
	}
	if now.After(d.nextRetry) {
		d.nextRetry = now.Add(min(d.Retry, lookEvery))
		if d.left.restoreHealed(now) {
			return true
		}
	}
	if now.After(d.nextGrow) && d.placement.Full() {
		d.grow = true
	}
	return d.grow
}

// postpone notes when an owner whose load HAProxy refused may be tried again.
func (d *driver) postpone(owner string) {
	if d.failures == nil {
		d.failures = map[string]int{}
	}
	why := d.left.refused[owner]
	why.after = time.Now().Add(d.Retry << min(d.failures[owner], maxDoublings))
	d.left.refused[owner] = why
	d.failures[owner]++
}

// forgive forgets the failures of those that are served now.
func (d *driver) forgive() {
	for owner := range d.failures {
		if !d.left.isRefused(owner) {
			delete(d.failures, owner)
		}
	}
}

// restoreHealed takes those in again that HAProxy could not load for something outside that has changed, and says whether
// there were any.
func (l *leaveOuts) restoreHealed(now time.Time) bool {
	some := false
	for owner, refusal := range l.refused {
		if refusal.loading && refusal.because == "" && now.After(refusal.after) && refusal.canBind() {
			l.restore(owner)
			some = true
		}
	}
	return some
}

// boundAddress is what HAProxy's words about a failed bind end with.
var boundAddress = regexp.MustCompile(`cannot bind socket .* for \[(.+?)\]`)

// canBind tells whether the addresses that could not be bound are free now. Where none is known, trying is all there is.
func (r refusal) canBind() bool {
	waits := r.waits
	if match := boundAddress.FindStringSubmatch(r.words); match != nil && len(waits) == 0 {
		if at, err := netip.ParseAddrPort(match[1]); err == nil {
			waits = append(waits, at)
		}
	}
	for _, at := range waits {
		if haproxy.TryBind(at, false) != nil {
			return false
		}
	}
	return true
}
