package dataplane

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
	"github.com/limpet-gateway/limpet/internal/table"
)

// How often a server that still has connections is tried to be deleted: each try stops all threads for a moment.
const (
	firstTry   = 50 * time.Millisecond
	slowestTry = 10 * time.Second
)

// leaver is a server in maintenance that is deleted as soon as its last connection ends.
type leaver struct {
	server  files.Server
	certain bool // server is what HAProxy has, options included
	pause   time.Duration
	next    time.Time
	cut     time.Time // when its connections are cut
}

// leave notes that a server was put into maintenance.
func (d *driver) leave(s files.Server, certain bool, now time.Time) {
	d.leaving[files.ServerKey(s.Slot, s.Name)] = &leaver{
		server: s, certain: certain, pause: firstTry, next: now.Add(firstTry), cut: now.Add(d.Drain),
	}
}

// leavingWith names a leaving server of the same slot that has the id of s.
func (d *driver) leavingWith(s files.Server) string {
	for key, l := range d.leaving {
		if l.server.Slot == s.Slot && l.server.ID == s.ID {
			return key
		}
	}
	return ""
}

// reap deletes the servers that are due, all in one round trip, and gives back slots that have become empty.
func (d *driver) reap(now time.Time) {
	if !d.known || len(d.leaving) == 0 && len(d.placement.Leaving()) == 0 {
		return
	}
	var due []string
	for key, l := range d.leaving {
		if !now.Before(l.next) {
			due = append(due, key)
		}
	}
	if len(due) > 0 && !d.delete(due, now) {
		return
	}
	d.giveBack()
}

// delete tries to delete servers, and says whether HAProxy answered.
func (d *driver) delete(keys []string, now time.Time) bool {
	slices.Sort(keys)
	var commands []haproxy.Command
	for _, key := range keys {
		l := d.leaving[key]
		if now.After(l.cut) {
			d.logger.Warn("cutting the last connections of a removed server", "server", key)
			commands = append(commands, haproxy.ShutdownSessions(l.server.Slot, l.server.Name))
			l.cut = now.Add(d.Drain)
		}
		commands = append(commands, haproxy.DelServer(l.server.Slot, l.server.Name))
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.Timeout)
	defer cancel()
	refused, err := d.client.Try(ctx, commands...)
	if err != nil {
		d.logger.Warn("removed servers were not deleted", "error", err)
		d.known = false
		return false
	}
	i := 0
	for _, key := range keys {
		if strings.HasPrefix(commands[i].String(), "shutdown") {
			i++
		}
		l := d.leaving[key]
		if refused[i] == nil || strings.Contains(refused[i].Reply, "No such server") {
			delete(d.leaving, key)
		} else {
			l.pause = min(2*l.pause, slowestTry)
			l.next = now.Add(l.pause)
		}
		i++
	}
	return true
}

// giveBack releases the slots of removed backends in which no server is left.
func (d *driver) giveBack() {
	slots := d.placement.Leaving()
	if len(slots) == 0 {
		return
	}
	inUse := map[string]bool{}
	for _, l := range d.leaving {
		inUse[l.server.Slot] = true
	}
	for change := range d.running.Servers.Diff(table.Table[files.Server]{}) {
		inUse[change.New.Slot] = true
	}
	slots = slices.DeleteFunc(slots, func(slot string) bool { return inUse[slot] })
	if len(slots) > 0 {
		d.placement = d.placement.Released(slots...)
		d.behind.dirty(time.Now())
	}
}
