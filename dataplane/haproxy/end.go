package haproxy

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// abort kills a master that we started and that does not come up, and its workers.
func (p *Process) abort() {
	if p.master != nil && p.ours {
		_ = p.master.Kill()
	}
	_ = p.end(context.Background())
}

// end makes sure that nothing of this folder's HAProxy is left: a worker that hangs, or whose master died, would go on
// to take a part of the connections. Only processes that are proven to be ours are touched.
func (p *Process) end(ctx context.Context) error {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if p.signalAll(signal) == 0 {
			break
		}
		p.await(ctx, time.Now().Add(killAfter))
	}
	left := p.remaining()
	p.forget()
	if len(left) > 0 {
		return fmt.Errorf("haproxy: processes %v of an earlier start for %s do not end: stop them yourself", left, p.dir)
	}
	return nil
}

// signalAll signals every process of ours, and returns how many there were.
func (p *Process) signalAll(signal syscall.Signal) int {
	count := 0
	if p.Alive() && p.ours {
		_ = p.master.Signal(signal)
		count++
	}
	for _, pid := range leftovers(p.dir) {
		if p.ours && pid == p.PID() {
			continue
		}
		process, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		// The handle is taken before the proof: a number that goes to another process in between is not hit.
		if ours, known := proven(pid, p.dir); known && ours && process.Signal(signal) == nil {
			p.logger.Warn("ended what was left of an earlier HAProxy", "pid", pid, "signal", signal.String())
			count++
		}
		_ = process.Release()
	}
	return count
}

func (p *Process) remaining() []int {
	left := leftovers(p.dir)
	if len(left) == 0 && p.Alive() && p.ours {
		left = []int{p.PID()}
	}
	return left
}

// await waits until nothing is left, the deadline has passed or ctx ends.
func (p *Process) await(ctx context.Context, deadline time.Time) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for len(p.remaining()) > 0 && time.Now().Before(deadline) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
