package dataplane

import (
	"context"
	"time"
)

// tickEvery is how soon a death of HAProxy is noticed.
const tickEvery = 100 * time.Millisecond

// stuckAfter is longer than any turn takes.
const stuckAfter = 2 * changeTimeout

// loop is the one goroutine that changes anything. Four things can happen: a configuration comes, time passes, files were
// written, or the Engine ends.
func (e *Engine) loop() {
	defer close(e.stopped)
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	var waiting []request
	again := false
	for {
		e.turned.Store(time.Now().UnixNano())
		select {
		case <-e.mailbox.bell:
			if config, more := e.mailbox.take(); config != nil {
				e.driver.want(*config)
				waiting, again = append(waiting, more...), true
			}
		case now := <-tick.C:
			again = e.driver.tick(now) || again
		case w := <-e.driver.behind.done:
			e.driver.behind.finish(e.driver, w)
			continue
		case <-e.stopping.Done():
			return
		}
		if again {
			waiting, again = e.work(waiting)
		}
	}
}

// work runs a round. It returns who still waits, and whether it has to go on.
func (e *Engine) work(waiting []request) ([]request, bool) {
	ctx, cancel := e.context(waiting)
	defer cancel()
	result, done := e.driver.round(ctx)
	e.naming.Store(&naming{e.driver.config, e.driver.placement})
	if !done {
		return waiting, true
	}
	heard := false
	for _, r := range waiting {
		heard = heard || r.ctx.Err() == nil // before the reply: it ends the wait, and with that the context
		r.reply <- result
	}
	if !heard && e.options.OnResult != nil {
		e.options.OnResult(result)
	}
	return nil, false
}

// context is the newest request's while that still waits.
func (e *Engine) context(waiting []request) (context.Context, context.CancelFunc) {
	parent := context.Background()
	if len(waiting) > 0 && waiting[len(waiting)-1].ctx.Err() == nil {
		parent = waiting[len(waiting)-1].ctx
	}
	ctx, cancel := context.WithTimeout(parent, e.options.Timeout)
	stop := context.AfterFunc(e.stopping, cancel)
	return ctx, func() { stop(); cancel() }
}
