package haproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
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
}

// NewProcess prepares a folder. The binary and the folder are absolute paths.
func NewProcess(binary, dir string, logger *slog.Logger) (*Process, error) {
	if longest := AdminSocket(dir); len(longest) > maxSocketPath {
		return nil, fmt.Errorf("haproxy: the socket's path %s has %d bytes, and may have %d: use a folder with a shorter path",
			longest, len(longest), maxSocketPath)
	}
	if err := os.MkdirAll(filepath.Join(dir, runFolder), 0o700); err != nil {
		return nil, fmt.Errorf("haproxy: %w", err)
	}
	return &Process{binary: binary, dir: dir, logger: logger}, nil
}

// PID is the master's; 0 if none is known.
func (p *Process) PID() int {
	if p.master == nil {
		return 0
	}
	return p.master.Pid
}

// Find adopts the HAProxy that serves this folder, and says whether there is one. It is known by its master socket; a
// socket file that nobody listens at, and a pid file whose number has gone to another process, are nothing to it.
// ErrUnavailable means that there is one that hangs.
func (p *Process) Find(ctx context.Context) (bool, error) {
	p.forget()
	found, err := showProc(ctx, masterSocket(p.dir))
	switch {
	case err == nil:
		return p.adopt(found)
	case IsUnreachable(err):
		return false, nil
	}
	return false, fmt.Errorf("the HAProxy of %s: %w", p.dir, err)
}

func (p *Process) adopt(found processes) (bool, error) {
	if ours, known := proven(found.master, p.dir); known && !ours {
		return false, fmt.Errorf("haproxy: process %d answers at %s but was started for another folder: stop it, or use another folder",
			found.master, masterSocket(p.dir))
	}
	if len(found.workers) == 0 {
		return false, nil
	}
	master, err := os.FindProcess(found.master)
	if err != nil {
		return false, fmt.Errorf("haproxy: %w", err)
	}
	p.master, p.ours = master, false
	p.writePID()
	return true, nil
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
	cmd := exec.CommandContext(context.WithoutCancel(ctx), p.binary, p.arguments()...)
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

func (p *Process) arguments() []string {
	arguments := []string{"-W", "-S", "unix@" + masterSocket(p.dir) + ",mode,600"}
	return append(arguments, configArguments(filepath.Join(p.dir, currentLink))...)
}

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

// Reload makes HAProxy serve the current generation, seamlessly. A *RefusedError means that the old worker goes on.
func (p *Process) Reload(ctx context.Context) error {
	_, err := reload(ctx, masterSocket(p.dir))
	return err
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
