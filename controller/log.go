package controller

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/dataplane"
)

// logPanic never lets a mistake of ours pass silently: with its stack, and the objects that may have led to it.
func (c *Controller) logPanic(err error, effect string, changed []string) {
	attributes := []any{"error", err, "effect", effect}
	if len(changed) > 0 {
		attributes = append(attributes, "changed", changed)
	}
	var panicked *PanicError
	if errors.As(err, &panicked) {
		attributes = append(attributes, "stack", panicked.Stack)
	}
	c.log.Error("a mistake in Limpet: please report it", attributes...)
}

func (c *Controller) logResult(r dataplane.Result, took time.Duration) {
	attributes := []any{"generation", r.Generation, "commands", r.Commands}
	if took > 0 {
		attributes = append(attributes, "took", took.Round(time.Microsecond))
	}
	if len(r.Reasons) > 0 {
		attributes = append(attributes, "reasons", r.Reasons)
	}
	switch {
	case r.Err != nil:
		c.log.Error("HAProxy does not serve the latest objects", append(attributes, "error", r.Err)...)
	case r.Reloaded:
		c.log.Debug("HAProxy was reloaded", attributes...) // The Engine says so itself.
	case r.Commands > 0:
		c.log.Info("HAProxy was changed at run time", attributes...)
	default:
		c.log.Debug("nothing changed for HAProxy", attributes...)
	}
}

// logListening says where each Gateway that is new or has changed listens: with an offset, nobody would guess.
func (c *Controller) logListening(old, now *graph.Graph) {
	for _, gateway := range now.Gateways {
		if !gateway.Valid || old != nil && slices.Contains(old.Gateways, gateway) {
			continue
		}
		for _, listener := range gateway.Listeners {
			if listener.Valid {
				c.log.Info("listening", "gateway", gateway.Key().String(), "listener", listener.Name, "addresses", bound(gateway, listener))
			}
		}
	}
}

func bound(gateway *graph.Gateway, listener *graph.Listener) []string {
	var all []string
	for _, address := range gateway.Addresses {
		all = append(all, netip.AddrPortFrom(address, listener.Bind).String())
	}
	return all
}
