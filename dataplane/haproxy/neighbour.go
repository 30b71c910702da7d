package haproxy

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"
)

// ErrAbsent is an HAProxy of another container that does not run or is ending: that container starts it, from the current
// generation, and nobody else does.
var ErrAbsent = fmt.Errorf("%w: its container starts it from the last good files", ErrUnavailable)

// Neighbour is an HAProxy that another container runs, as Run does. It is reached by its sockets alone: that
// container has processes of its own, whose numbers mean nothing here, so that nothing is ever signalled. It is not safe for
// concurrent use.
type Neighbour struct {
	dir    string
	logger *slog.Logger
	master int
	// admin is the file of the runtime socket. A reload hands it on to the new worker; an HAProxy that was started anew has another.
	admin fs.FileInfo
}

// NewNeighbour prepares a folder that is shared with the other container.
func NewNeighbour(dir string, logger *slog.Logger) (*Neighbour, error) {
	if err := makeRunFolder(dir); err != nil {
		return nil, err
	}
	return &Neighbour{dir: dir, logger: logger}, nil
}

// PID is the master's number in its own container; 0 if none is known.
func (n *Neighbour) PID() int { return n.master }

// Incarnation changes when HAProxy was started anew, and not by a reload; 0 if none is known.
func (n *Neighbour) Incarnation() uint64 {
	if n.admin == nil {
		return 0
	}
	if status, is := n.admin.Sys().(*syscall.Stat_t); is {
		return status.Ino
	}
	return uint64(n.admin.ModTime().UnixNano())
}

// Find looks whether HAProxy serves: its master has a worker, and that listens. An ending one does not.
func (n *Neighbour) Find(ctx context.Context) (bool, error) {
	n.Forget()
	before := fileOf(AdminSocket(n.dir))
	if before == nil || !n.listens() {
		return false, nil
	}
	found, err := showProc(ctx, masterSocket(n.dir))
	switch {
	case IsUnreachable(err):
		return false, nil // it is in the middle of a reload, or just ended
	case err != nil:
		return false, err
	case len(found.workers) == 0:
		return false, nil
	}
	n.master, n.admin = found.master, before
	return true, nil
}

// Alive tells whether the known HAProxy still serves.
func (n *Neighbour) Alive() bool {
	if n.admin == nil {
		return false
	}
	if now := fileOf(AdminSocket(n.dir)); now != nil && os.SameFile(n.admin, now) && n.listens() {
		return true
	}
	n.Forget()
	return false
}

// fileOf is the file at a path; nil if it cannot be looked at.
func fileOf(path string) fs.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}

// listens tells whether somebody listens at the runtime socket; one that hangs does.
func (n *Neighbour) listens() bool {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(context.Background(), "unix", AdminSocket(n.dir))
	if err != nil {
		return !IsUnreachable(err)
	}
	_ = conn.Close()
	return true
}

// Start cannot start it: ErrAbsent, unless it is there already.
func (n *Neighbour) Start(ctx context.Context) error {
	found, err := n.Find(ctx)
	if err == nil && !found {
		err = ErrAbsent
	}
	return err
}

// Reload makes HAProxy serve the current generation, seamlessly. A *RefusedError means that the old worker goes on. One that
// is ending is left alone: a new worker would keep it.
func (n *Neighbour) Reload(ctx context.Context) error {
	for end := time.Now().Add(busyPatience); ; {
		if !n.Alive() {
			return ErrAbsent
		}
		_, err := reload(ctx, masterSocket(n.dir))
		if !IsUnreachable(err) || time.Now().After(end) || !sleep(ctx, pollEvery) {
			return withoutReach(err)
		}
	}
}

// withoutReach is an error of which nobody concludes that HAProxy is to be started.
func withoutReach(err error) error {
	if IsUnreachable(err) {
		return fmt.Errorf("%w: nobody answers at its master's socket", ErrUnavailable)
	}
	return err
}

// Settled tells whether the master answers and has a worker, so that no reload is under way.
func (n *Neighbour) Settled(ctx context.Context) bool { return settled(ctx, n.dir) }

// Busy tells nothing: whoever cannot start it need not know.
func (n *Neighbour) Busy(error) bool { return true }

// Reached notes nothing.
func (n *Neighbour) Reached() {}

// Stop leaves HAProxy alone.
func (n *Neighbour) Stop(context.Context) error {
	n.Forget()
	return nil
}

// Forget lets go of HAProxy, which goes on.
func (n *Neighbour) Forget() { n.master, n.admin = 0, nil }

// TrimLog does nothing: its container's output is its log.
func (n *Neighbour) TrimLog() {}

// Run replaces this process by HAProxy, as soon as the folder has a configuration for it. It only returns when it cannot.
func Run(ctx context.Context, binary, dir string) error {
	if err := makeRunFolder(dir); err != nil {
		return err
	}
	for !HasCurrent(dir) {
		if !sleep(ctx, pollEvery) {
			return nil
		}
	}
	if err := os.Chdir(dir); err != nil {
		return fmt.Errorf("haproxy: %w", err)
	}
	err := syscall.Exec(binary, append([]string{binary}, arguments(dir)...), environment())
	return fmt.Errorf("haproxy: %s: %w", binary, err)
}

// HasCurrent tells whether there is a configuration that HAProxy can start with.
func HasCurrent(dir string) bool {
	_, err := os.Stat(currentConfig(dir))
	return err == nil
}
