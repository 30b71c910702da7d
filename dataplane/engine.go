// Package dataplane makes the running HAProxy be what a model.Config says: by commands where possible, else by a reload.
//
// What comes in is a Config, what goes out is a Result: what is served now, and what was left out and why. In between
// are the rendered files.Set, the Plan that Diff makes of it, and HAProxy itself. It must never let a configuration that
// HAProxy refuses replace the last good one, drop a live connection for a change that is not about it, or take longer
// than what a change touches.
package dataplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
	"github.com/limpet-gateway/limpet/dataplane/placement"
)

// Fault is a piece that could not be rendered, or that HAProxy does not take.
type Fault struct {
	Owner   model.Owner
	Message string
}

// Render makes the files for a configuration whose backends are all placed. It must be pure; it may remember what it
// rendered last to save work.
type Render func(model.Config, placement.Placement) (files.Set, []Fault, error)

// Options are an Engine's; Dir, Binary and Render are required.
type Options struct {
	// Dir holds generations, sockets and the log of HAProxy. Its path must be short enough for a socket's.
	Dir string
	// Binary is HAProxy 3.0 or newer, a path or a name in PATH.
	Binary string
	Render Render
	// Neighbour says that another container runs HAProxy (haproxy.Run, the folder is shared): it is never started or ended here.
	// Until there is a configuration, Render is asked for one that is Incomplete. Binary checks configurations all the same.
	Neighbour bool
	Logger    *slog.Logger
	// Timeout bounds what is asked of HAProxy at run time when a context has no deadline; 5 s by default.
	Timeout time.Duration
	// ReloadEvery is the least time between two reloads; 1 s by default.
	ReloadEvery time.Duration
	// Drain is how long a removed server's live connections are left alone before they are cut; 1 h by default, as long as
	// a reload leaves an old worker.
	Drain time.Duration
	// Retry is how often it is looked whether what HAProxy could not load can be loaded now, such as a port that another
	// process held; 5 s by default.
	Retry time.Duration
	// Originator is the command that speaks TLS for HAProxy where assets say how; it is started then. Without one, such
	// backends are not reached.
	Originator []string
	// OnResult is told what came of work that no Apply waits for: recovery, refilled slots, another try. It must not call
	// the Engine.
	OnResult func(Result)
}

// Result is what came of an Apply.
type Result struct {
	// Generation is the one that HAProxy runs; what was changed since at run time is in its files, or will be soon.
	Generation int
	// Revision counts the changes of what HAProxy serves.
	Revision uint64
	// Reloaded says that it took a reload or a start, and Reasons why.
	Reloaded bool
	Reasons  []string
	// Commands is the number of run-time commands.
	Commands int
	// LeftOut says, by owner, what could not be served and why, in HAProxy's words.
	LeftOut map[string]string
	// Err is why the configuration is not served, or not all of it; the last good one then is.
	Err error
}

// ErrClosed is what a closed Engine answers.
var ErrClosed = errors.New("the data plane is closed")

// Engine drives one HAProxy. Its methods may be called concurrently.
type Engine struct {
	options  Options
	mailbox  *mailbox
	stopping context.Context
	stop     context.CancelFunc
	stopped  chan struct{}
	ending   sync.Once
	driver   *driver
	turned   atomic.Int64 // when the loop turned last
	naming   atomic.Pointer[naming]
}

// New prepares an Engine. It does nothing before Start.
func New(options Options) (*Engine, error) {
	if options.Dir == "" || options.Binary == "" || options.Render == nil {
		return nil, errors.New("dataplane: a folder, an HAProxy and a renderer are needed")
	}
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, fmt.Errorf("dataplane: %w", err)
	}
	options.Dir = dir
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	options.Timeout = or(options.Timeout, 5*time.Second)
	options.ReloadEvery = or(options.ReloadEvery, time.Second)
	options.Drain = or(options.Drain, time.Hour)
	options.Retry = or(options.Retry, 5*time.Second)
	stopping, stop := context.WithCancel(context.Background())
	return &Engine{
		options: options, mailbox: newMailbox(), stopping: stopping, stop: stop, stopped: make(chan struct{}),
	}, nil
}

func or(given, otherwise time.Duration) time.Duration {
	if given > 0 {
		return given
	}
	return otherwise
}

// AdminSocket is where the configuration must have HAProxy's runtime socket.
func AdminSocket(dir string) string { return haproxy.AdminSocket(dir) }

// RunHAProxy replaces this process by the HAProxy that a Neighbour's Engine drives, as soon as there is a configuration for it.
// It only returns when it cannot, or when ctx ends before.
func RunHAProxy(ctx context.Context, binary, dir string) error {
	full, err := resolvedFolder(dir)
	if err != nil {
		return err
	}
	return haproxy.Run(ctx, binary, full)
}

// resolvedFolder makes a folder, and gives it one name, however it is spelled: HAProxy is known by it.
func resolvedFolder(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("dataplane: %w", err)
	}
	full, err := filepath.EvalSymlinks(dir)
	if err == nil {
		full, err = filepath.Abs(full)
	}
	if err != nil {
		return "", fmt.Errorf("dataplane: %w", err)
	}
	return full, nil
}

// HasGeneration tells whether a folder has a configuration that HAProxy can start with.
func HasGeneration(dir string) bool { return haproxy.HasCurrent(dir) }

// Start adopts the HAProxy that serves the folder, or starts one from the last good files if there are any. Afterwards
// the Engine keeps it running until Close or Shutdown.
func (e *Engine) Start(ctx context.Context) error {
	binary, err := exec.LookPath(e.options.Binary)
	if err != nil {
		return fmt.Errorf("dataplane: no HAProxy: %w: install HAProxy 3.0 or newer, or say where it is", err)
	}
	if binary, err = filepath.Abs(binary); err != nil {
		return fmt.Errorf("dataplane: %w", err)
	}
	e.options.Binary = binary
	if e.options.Dir, err = resolvedFolder(e.options.Dir); err != nil {
		return err
	}
	if e.driver, err = newDriver(e.options); err != nil {
		return err
	}
	e.driver.begin(ctx)
	go e.loop()
	return nil
}

// Apply makes HAProxy serve a configuration and returns when it does, or why it doesn't. Several at once are one: the
// newest counts, and all get its Result. When ctx ends first, the work goes on.
func (e *Engine) Apply(ctx context.Context, config model.Config) Result {
	reply := e.mailbox.put(ctx, config)
	select {
	case result := <-reply:
		return result
	case <-e.stopped:
		return Result{Err: ErrClosed}
	case <-ctx.Done():
		select {
		case result := <-reply:
			return result
		default:
			return Result{Err: fmt.Errorf("%w: the configuration is not served yet: %w", haproxy.ErrUnavailable, ctx.Err())}
		}
	}
}

// Alive says that the loop hangs, if it does.
func (e *Engine) Alive() error {
	last := e.turned.Load()
	if since := time.Since(time.Unix(0, last)); last != 0 && since > stuckAfter {
		return fmt.Errorf("dataplane: the loop has not turned for %s", since.Round(time.Second))
	}
	return nil
}

// Close ends the Engine; HAProxy goes on, and the files are what it runs.
func (e *Engine) Close() error {
	if !e.end() {
		return nil
	}
	err := e.driver.writeBehind()
	e.driver.release()
	return err
}

// Shutdown ends the Engine, and HAProxy softly: what is under way is finished, until ctx ends.
func (e *Engine) Shutdown(ctx context.Context) error {
	if !e.end() {
		return nil
	}
	err := e.driver.writeBehind()
	err = errors.Join(err, e.driver.process.Stop(ctx))
	e.driver.originator.Stop()
	e.driver.release()
	return err
}

// end stops the loop, and says whether this call did.
func (e *Engine) end() bool {
	ended := false
	e.ending.Do(func() {
		e.stop()
		if e.driver != nil {
			<-e.stopped
			ended = true
		}
	})
	return ended
}
