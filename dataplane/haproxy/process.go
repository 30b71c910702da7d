package haproxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/files"
)

// Names in an installation's folder.
const (
	runFolder   = "run"
	masterFile  = "master.sock"
	adminFile   = "admin.sock"
	pidFile     = "haproxy.pid"
	logFile     = "haproxy.log"
	currentLink = "current"
)

const (
	// maxSocketPath is HAProxy's: it binds under a longer name first.
	maxSocketPath = 97
	// startTimeout bounds a start. HAProxy itself tries to bind for two seconds.
	startTimeout = 30 * time.Second
	// killAfter is how long a process may take to end after it was told to.
	killAfter = 2 * time.Second
	pollEvery = 20 * time.Millisecond
)

// AdminSocket is where the configuration must have the runtime socket of an installation.
func AdminSocket(dir string) string { return filepath.Join(dir, runFolder, adminFile) }

func masterSocket(dir string) string { return filepath.Join(dir, runFolder, masterFile) }

// Process is the HAProxy of one folder, in master-worker mode. It is started in a session of its own and outlives
// Limpet. It is not safe for concurrent use.
type Process struct {
	binary, dir string
	logger      *slog.Logger
	master      *os.Process // nil if none is known
	ours        bool        // master is our child
	// busy and unreached are since when the master or the worker has not answered.
	busy, unreached time.Time
}

// NewProcess prepares a folder. The binary and the folder are absolute paths.
func NewProcess(binary, dir string, logger *slog.Logger) (*Process, error) {
	if err := makeRunFolder(dir); err != nil {
		return nil, err
	}
	return &Process{binary: binary, dir: dir, logger: logger}, nil
}

// makeRunFolder makes the folder of the sockets.
func makeRunFolder(dir string) error {
	if longest := AdminSocket(dir); len(longest) > maxSocketPath {
		return fmt.Errorf("haproxy: the socket's path %s has %d bytes, and may have %d: use a folder with a shorter path",
			longest, len(longest), maxSocketPath)
	}
	if err := os.MkdirAll(filepath.Join(dir, runFolder), 0o700); err != nil {
		return fmt.Errorf("haproxy: %w", err)
	}
	return nil
}

// PID is the master's; 0 if none is known.
func (p *Process) PID() int {
	if p.master == nil {
		return 0
	}
	return p.master.Pid
}

// Incarnation changes when HAProxy was started anew, and not by a reload; 0 if none is known.
func (p *Process) Incarnation() uint64 { return uint64(p.PID()) }

// Find adopts the HAProxy that serves this folder, and says whether there is one. It is known by its master socket; a
// socket file that nobody listens at, and a pid file whose number has gone to another process, are nothing to it. A
// master that lives and does not answer, or has no worker, is in the middle of a reload, most likely: it is asked again
// until its patience is over, and until then nothing is concluded. ErrUnavailable means that there is one that hangs, or
// is busy still when ctx ends.
func (p *Process) Find(ctx context.Context) (bool, error) {
	p.forget()
	for {
		found, err := showProc(ctx, masterSocket(p.dir))
		if err == nil {
			if err = p.adopt(found); err == nil {
				p.busy = time.Time{}
				return true, nil
			}
		}
		if !p.mayBeBusy(err, &p.busy) {
			if IsUnreachable(err) || errors.Is(err, errNoWorker) {
				return false, nil
			}
			return false, err
		}
		if !sleep(ctx, pollEvery) {
			return false, fmt.Errorf("%w: it is busy, with a reload most likely: %w", ErrUnavailable, err)
		}
	}
}

// How long an HAProxy that lives may be busy before it is taken for one that cannot be reached any more: while it reads
// its configuration, nobody listens at the master's socket. The file of the socket is there all the same.
const (
	busyPatience = 10 * time.Second
	gonePatience = 2 * time.Second
)

// mayBeBusy tells an error that waiting may mend from one that it does not, given since when there have been any.
func (p *Process) mayBeBusy(err error, since *time.Time) bool {
	patience := busyPatience
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errForeign) {
		patience = gonePatience
	}
	if masterOf(p.dir) == 0 {
		*since = time.Time{}
		return false
	}
	if since.IsZero() {
		*since = time.Now()
	}
	if time.Since(*since) < patience {
		return true
	}
	*since = time.Time{}
	return false
}

// Busy tells whether a worker that could not be reached may only be busy, so that nothing is to be concluded yet.
func (p *Process) Busy(err error) bool { return p.mayBeBusy(err, &p.unreached) }

// Reached notes that the worker answered.
func (p *Process) Reached() { p.unreached = time.Time{} }

// sleep waits, and says whether ctx did not end.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

var (
	errNoWorker = errors.New("the master has no worker")
	errForeign  = errors.New("stop it, or use another folder")
)

func (p *Process) adopt(found processes) error {
	if ours, known := proven(found.master, p.dir); known && !ours {
		return fmt.Errorf("haproxy: process %d answers at %s but was started for another folder: %w",
			found.master, masterSocket(p.dir), errForeign)
	}
	if len(found.workers) == 0 {
		return errNoWorker
	}
	master, err := os.FindProcess(found.master)
	if err != nil {
		return fmt.Errorf("haproxy: %w", err)
	}
	p.master, p.ours = master, false
	p.writePID()
	return nil
}

// Start starts HAProxy with the current generation, after whatever is left of an earlier one has been ended, and returns
// when it serves. A *RefusedError has its words if it does not take the configuration.
func (p *Process) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := p.end(ctx); err != nil {
		return err
	}
	log, begin, err := openLog(filepath.Join(p.dir, logFile))
	if err != nil {
		return fmt.Errorf("haproxy: %w", err)
	}
	defer func() { _ = log.Close() }()
	// Not the caller's context, which would kill it: it is to outlive us.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), p.binary, arguments(p.dir)...)
	cmd.Dir, cmd.Env = p.dir, environment()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("haproxy: %w: is %s an HAProxy 3.0 or newer?", err, p.binary)
	}
	p.master, p.ours = cmd.Process, true
	p.writePID()
	if err := p.ready(ctx); err != nil {
		p.abort()
		if output := logSince(filepath.Join(p.dir, logFile), begin); errors.Is(err, errExited) {
			return refused(output)
		}
		return err
	}
	return nil
}

// arguments are what HAProxy is started with for a folder.
func arguments(dir string) []string {
	arguments := []string{"-W", "-S", "unix@" + masterSocket(dir) + ",mode,600"}
	return append(arguments, configArguments(filepath.Join(dir, currentLink))...)
}

// currentConfig is the first file of the generation that HAProxy starts with.
func currentConfig(dir string) string { return filepath.Join(dir, currentLink, files.ConfigFile) }

var errExited = errors.New("HAProxy ended right after its start")

// ready waits until the master and a worker answer.
func (p *Process) ready(ctx context.Context) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if !p.Alive() {
			return errExited
		}
		if found, err := showProc(ctx, masterSocket(p.dir)); err == nil && found.master == p.PID() && p.listens(ctx) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w after its start: %w", ErrUnavailable, ctx.Err())
		case <-tick.C:
		}
	}
}

// listens tells whether a worker listens at the runtime socket; one that hangs does.
func (p *Process) listens(ctx context.Context) bool {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", AdminSocket(p.dir))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// Alive tells whether the known master still runs. The master ends when its worker dies.
func (p *Process) Alive() bool {
	if p.master == nil {
		return false
	}
	// One that we started stays a zombie until we ask for its end, also when another Process has adopted it since.
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(p.master.Pid, &status, syscall.WNOHANG, nil)
	switch {
	case err == nil && pid == 0, errors.Is(err, syscall.EINTR):
		return true
	case err == nil, p.ours, isZombie(p.master.Pid), errors.Is(p.master.Signal(syscall.Signal(0)), os.ErrProcessDone):
		p.forget()
		return false
	}
	return true
}

// Reload makes HAProxy serve the current generation, seamlessly. A *RefusedError means that the old worker goes on. A
// master that is busy is waited for.
func (p *Process) Reload(ctx context.Context) error {
	var since time.Time
	for {
		_, err := reload(ctx, masterSocket(p.dir))
		if !IsUnreachable(err) || !p.mayBeBusy(err, &since) || !sleep(ctx, pollEvery) {
			return err
		}
	}
}

// Settled tells whether the master answers and has a worker, so that no reload is under way.
func (p *Process) Settled(ctx context.Context) bool { return settled(ctx, p.dir) }

func settled(ctx context.Context, dir string) bool {
	found, err := showProc(ctx, masterSocket(dir))
	return err == nil && len(found.workers) > 0
}

// Stop lets HAProxy finish what is under way, and ends it when ctx does.
func (p *Process) Stop(ctx context.Context) error {
	if p.Alive() {
		if err := p.signal(syscall.SIGUSR1); err != nil {
			return err
		}
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for p.Alive() && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}
	return p.end(context.WithoutCancel(ctx))
}

// Forget lets go of the process, which goes on.
func (p *Process) Forget() { p.forget() }

func (p *Process) forget() {
	if p.master != nil {
		_ = p.master.Release()
	}
	p.master, p.ours = nil, false
}

// signal reaches the known master only if it is proven to be ours at this moment.
func (p *Process) signal(signal syscall.Signal) error {
	if proof, _ := proven(p.PID(), p.dir); !p.ours && !proof {
		return fmt.Errorf("haproxy: process %d cannot be proven to serve %s: stop it yourself", p.PID(), p.dir)
	}
	return p.master.Signal(signal)
}

func (p *Process) writePID() {
	path := filepath.Join(p.dir, runFolder, pidFile)
	if err := os.WriteFile(path, []byte(strconv.Itoa(p.PID())+"\n"), 0o600); err != nil {
		p.logger.Warn("the pid file was not written", "error", err)
	}
}

// TrimLog keeps the log file of HAProxy in bounds.
func (p *Process) TrimLog() {
	if err := trimLog(filepath.Join(p.dir, logFile)); err != nil {
		p.logger.Warn("HAProxy's log file was not trimmed", "error", err)
	}
}

// String names the process in messages.
func (p *Process) String() string {
	return strings.TrimSpace(fmt.Sprintf("HAProxy %d of %s", p.PID(), p.dir))
}
