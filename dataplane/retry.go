package dataplane

import (
	"context"
	"net"
	"regexp"
	"time"
)

// retry takes those in again that may have healed, and adds slots when few are left. It says whether a round is needed.
func (d *driver) retry(now time.Time) bool {
	if !d.known || !d.given || now.Sub(d.reloaded) < d.ReloadEvery {
		return false
	}
	if now.After(d.nextRetry) {
		d.nextRetry = now.Add(d.Retry)
		if d.left.restoreHealed() {
			return true
		}
	}
	if now.After(d.nextGrow) && d.placement.Grown().Capacity > d.placement.Capacity {
		d.grow = true
	}
	return d.grow
}

// restoreHealed takes those in again that HAProxy could not load for something outside that has changed, and says whether
// there were any.
func (l *leaveOuts) restoreHealed() bool {
	some := false
	for owner, refusal := range l.refused {
		if refusal.loading && canBind(refusal.words) {
			l.restore(owner)
			some = true
		}
	}
	return some
}

// boundAddress is what HAProxy's words about a failed bind end with.
var boundAddress = regexp.MustCompile(`cannot bind socket .* for \[(.+?)\]`)

// canBind tells whether the address that HAProxy could not bind is free now: a reload that fails again would hold up
// everybody for seconds. Where the words name no address, trying is all there is.
func canBind(words string) bool {
	match := boundAddress.FindStringSubmatch(words)
	if match == nil {
		return true
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", match[1])
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}
