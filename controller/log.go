package controller

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/controller/status"
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

// logListening says where each listener is served, when that is new or has changed: with an offset, nobody would guess.
func (c *Controller) logListening(now *graph.Graph, leftOut map[model.Owner]string) {
	listening := map[*graph.Gateway]string{}
	for _, gateway := range now.Gateways {
		if !gateway.Valid {
			continue
		}
		var all []string
		for _, listener := range gateway.AllListeners() {
			if at := status.Listening(listener, leftOut); listener.Valid && len(at) > 0 {
				all = append(all, fmt.Sprint(listener, at))
			}
		}
		listening[gateway] = strings.Join(all, " ")
		if was, there := c.listening[gateway]; there && was == listening[gateway] {
			continue
		}
		for _, listener := range gateway.AllListeners() {
			if at := status.Listening(listener, leftOut); listener.Valid && len(at) > 0 {
				c.log.Info("listening", listeningAt(listener, at)...)
			}
		}
	}
	c.listening = listening
}

func listeningAt(listener *graph.Listener, at []netip.AddrPort) []any {
	of := []any{"gateway", listener.Gateway.Key().String(), "listener", listener.Name, "addresses", at}
	if listener.Set != nil {
		of = append(of, "set", listener.Set.Key().String())
	}
	return of
}

// logExpired warns once of each certificate whose time is over: the status says so too, but nothing of it fails.
func (c *Controller) logExpired(now *graph.Graph, at time.Time) {
	expired, expiries := map[*graph.Certificate]bool{}, map[string]time.Time{}
	for _, gateway := range now.Gateways {
		for _, listener := range gateway.AllListeners() {
			for _, certificate := range listener.Certificates {
				expiries[certificate.Secret.String()] = certificate.NotAfter
				if expired[certificate] || !at.After(certificate.NotAfter) {
					continue
				}
				expired[certificate] = true
				if !c.expired[certificate] {
					c.log.Warn("a certificate has expired: it is served all the same, replace it",
						"secret", certificate.Secret.String(), "expired", certificate.NotAfter.UTC().Format(time.RFC3339))
				}
			}
		}
	}
	c.expired = expired
	c.options.Metrics.Expiries(expiries)
}
