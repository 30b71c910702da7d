package originator

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

// lockName is a file that a running originator holds a lock on and has its process number in. The lock ends with the process.
const lockName = "originate.lock"

// errRuns says that there is one.
var errRuns = errors.New("an originator runs for this folder already")

// Run is the process: it serves until ctx ends.
func Run(ctx context.Context, dir string, log *slog.Logger) error {
	held, err := lock(dir)
	for end := time.Now().Add(restartAfter); errors.Is(err, errRuns) && time.Now().Before(end); time.Sleep(pollEvery) {
		held, err = lock(dir) // whoever looks whether it is held holds it for a moment
	}
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }()
	if err := held.Truncate(0); err != nil {
		return fmt.Errorf("originator: %w", err)
	}
	if _, err := held.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		return fmt.Errorf("originator: %w", err)
	}
	listener, err := Listen(Socket(dir))
	if err != nil {
		return err
	}
	New(dir, log).Serve(ctx, listener)
	return nil
}

func lock(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "run", lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("originator: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("originator: %w", errRuns)
	}
	return file, nil
}

// Supervisor keeps an originator running beside HAProxy. Like HAProxy, it outlives a Limpet that is killed, and is taken over by
// the next one. A nil Supervisor does nothing.
type Supervisor struct {
	// Command is the program with its arguments; it calls Run.
	Command []string
	Dir     string
	Log     *slog.Logger

	nextStart time.Time
}

const (
	restartAfter = 500 * time.Millisecond
	startTimeout = 2 * time.Second
	giveUpFor    = 10 * time.Second
	stopTimeout  = 3 * time.Second
	pollEvery    = 10 * time.Millisecond
)

// Ensure starts the originator if none runs, and waits until it listens.
func (s *Supervisor) Ensure() error {
	if s == nil || PID(s.Dir) != 0 {
		return nil
	}
	now := time.Now()
	if now.Before(s.nextStart) {
		return errors.New("the TLS originator ended, and is started again soon")
	}
	s.nextStart = now.Add(restartAfter)
	if err := s.start(); err != nil {
		return fmt.Errorf("the TLS originator was not started: %w", err)
	}
	for end := now.Add(startTimeout); time.Now().Before(end); time.Sleep(pollEvery) {
		var dialer net.Dialer
		if conn, err := dialer.DialContext(context.Background(), "unix", Socket(s.Dir)); err == nil && PID(s.Dir) != 0 {
			_ = conn.Close()
			s.Log.Info("started the TLS originator", "pid", PID(s.Dir))
			return nil
		}
	}
	s.nextStart = time.Now().Add(giveUpFor)
	return errors.New("the TLS originator was started and does not listen: see originate.log")
}

func (s *Supervisor) start() error {
	log, err := os.OpenFile(filepath.Join(s.Dir, "originate.log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(context.Background(), s.Command[0], s.Command[1:]...) // it is to outlive us
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	return nil
}

// Stop ends the originator.
func (s *Supervisor) Stop() {
	if s == nil {
		return
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for end := time.Now().Add(stopTimeout); time.Now().Before(end); time.Sleep(pollEvery) {
			pid := PID(s.Dir)
			if pid == 0 {
				return
			}
			_ = syscall.Kill(pid, signal)
		}
	}
}

// PID is the process of a folder's originator; 0 if there is none. Whoever holds the lock wrote its number.
func PID(dir string) int {
	file, err := lock(dir)
	if err == nil {
		_ = file.Close()
		return 0
	}
	text, err := os.ReadFile(filepath.Join(dir, "run", lockName))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return 0
	}
	return pid
}
