// Package haproxy speaks with an HAProxy: it starts, finds, checks, reloads and stops the process, and sends commands to
// its sockets.
//
// What comes in are files on disk and typed commands, what goes out is what HAProxy said, as values and as errors that
// tell a refusal from a silence. It is the only importer of client-native. It must never send a word that was not quoted
// for the socket, take silence for success, put key material into an error, or signal a process that it cannot prove to
// be its own.
package haproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/haproxytech/client-native/v5/runtime"
	"github.com/haproxytech/client-native/v5/runtime/options"
)

const (
	// maxBatch bounds what is sent at once: HAProxy takes 16 KiB for one command with its payload.
	maxBatch = 15_000
	// roundTrip bounds a round trip, whatever its context allows.
	roundTrip = 10 * time.Second
	// sentinel is a command that always answers. It stands before and after each batch, because success is silent in
	// most commands, and client-native reports a connection that broke or timed out as an empty reply.
	sentinel = "show version"
)

// clientNative guards the version of HAProxy that client-native keeps in a variable of its package, without a lock.
var clientNative sync.RWMutex

// Client sends commands to the runtime socket of the current worker. Each round trip is a connection of its own, so that
// none outlives a reload in the old worker. It is safe for concurrent use.
type Client struct {
	socket string

	mu      sync.Mutex
	runtime runtime.Runtime
	flying  atomic.Int32 // calls that client-native has not returned from
}

// NewClient returns a client for a socket. It does not connect yet.
func NewClient(socket string) *Client { return &Client{socket: socket} }

// Exec runs the commands in their order, in as few round trips as possible, and checks every reply. A command that
// was refused does not stop those after it; the error holds a *RejectedError for the first ones. ErrUnavailable means that
// it is not known what was run.
func (c *Client) Exec(ctx context.Context, commands ...Command) error {
	refused, err := c.Try(ctx, commands...)
	return errors.Join(Refusals(refused), err)
}

// Refusals makes one error of what Try returned, nil if nothing was refused.
func Refusals(refused []*RejectedError) error {
	const enough = 3
	var all []error
	for _, e := range refused {
		if e != nil {
			all = append(all, e)
		}
	}
	if more := len(all) - enough; more > 0 {
		all = append(all[:enough], fmt.Errorf("and %d more", more))
	}
	return errors.Join(all...)
}

// Try is Exec that tells what became of each command: nil, or its refusal.
func (c *Client) Try(ctx context.Context, commands ...Command) ([]*RejectedError, error) {
	for _, command := range commands {
		if command.err != nil {
			return nil, command.err
		}
	}
	refused := make([]*RejectedError, 0, len(commands))
	for len(commands) > 0 {
		batch := fit(commands)
		texts := make([]string, len(batch))
		for i, command := range batch {
			texts[i] = command.text
		}
		replies, err := c.line(ctx, texts...)
		if err != nil {
			return refused, err
		}
		for i, command := range batch {
			refused = append(refused, command.check(replies[i]))
		}
		commands = commands[len(batch):]
	}
	return refused, nil
}

// fit returns the first commands, as many as go into one round trip.
func fit(commands []Command) []Command {
	size := 0
	for i, command := range commands {
		size += len(command.text) + 1
		if i > 0 && size > maxBatch {
			return commands[:i]
		}
	}
	return commands
}

// query runs one command and returns all that it said.
func (c *Client) query(ctx context.Context, command string) (string, error) {
	replies, err := c.line(ctx, command)
	if err != nil {
		return "", err
	}
	if severity, words := parseReply(replies[0]); severity >= 0 && severity <= worstNotice || isUnknownCommand(words) {
		return "", &RejectedError{Command: command, Reply: words}
	}
	return replies[0], nil
}

// line runs commands as one line and returns the reply of each.
func (c *Client) line(ctx context.Context, commands ...string) ([]string, error) {
	text := sentinel + ";" + strings.Join(commands, ";") + ";" + sentinel
	answer, err := c.send(ctx, text)
	if err != nil {
		return nil, err
	}
	replies := split(answer)
	last := len(replies) - 1
	if last != len(commands)+1 || replies[0] == "" || replies[0] != replies[last] {
		return nil, fmt.Errorf("%w: it broke off after %d of %d replies", ErrUnavailable, max(0, last), len(commands))
	}
	return replies[1:last], nil
}

// split takes an answer apart: each reply ends with an empty line, and a silent one is nothing but that.
func split(answer string) []string {
	var replies, reply []string
	for _, line := range strings.Split(answer, "\n") {
		if line != "" {
			reply = append(reply, line)
			continue
		}
		replies = append(replies, strings.Join(reply, "\n"))
		reply = nil
	}
	return append(replies, strings.Join(reply, "\n"))
}

// send is one round trip. client-native knows no context: when it ends, the call is left to its own timeout.
func (c *Client) send(ctx context.Context, text string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, roundTrip)
	defer cancel()
	c.mu.Lock()
	known := c.runtime
	c.mu.Unlock()

	type outcome struct {
		client runtime.Runtime
		answer string
		err    error
	}
	done := make(chan outcome, 1)
	c.flying.Add(1)
	go func() {
		defer c.flying.Add(-1)
		client, err := known, error(nil)
		if client == nil {
			client, err = connect(ctx, c.socket)
		}
		if err != nil {
			done <- outcome{err: err}
			return
		}
		answers, err := client.ExecuteRaw(text)
		done <- outcome{client, strings.Join(answers, "\n"), err}
	}()
	select {
	case <-ctx.Done():
		c.forget()
		return "", fmt.Errorf("%w: no reply in time: %w", ErrUnavailable, ctx.Err())
	case result := <-done:
		if result.err != nil {
			c.forget()
			return "", fmt.Errorf("%w: %w", ErrUnavailable, withoutCommand(result.err))
		}
		c.mu.Lock()
		c.runtime = result.client
		c.mu.Unlock()
		return result.answer, nil
	}
}

// forget makes the next call use a connection of client-native that no other call waits for.
func (c *Client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runtime = nil
}

// Settle waits until no earlier call that was given up can change anything any more.
func (c *Client) Settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundTrip)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for c.flying.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: an earlier command is still on its way: %w", ErrUnavailable, ctx.Err())
		}
	}
	return nil
}

// connect makes a client of client-native. It asks HAProxy for its version, with a timeout of 30 seconds; so we find out
// ourselves first whether anybody answers.
func connect(ctx context.Context, socket string) (runtime.Runtime, error) {
	if _, err := dialogue(ctx, socket, sentinel); err != nil {
		return nil, err
	}
	clientNative.Lock()
	defer clientNative.Unlock()
	return runtime.New(ctx, options.Socket(socket), options.DoNotCheckRuntimeOnInit)
}

// dialogue sends one line on a connection of its own and returns what comes back until HAProxy closes it.
func dialogue(ctx context.Context, socket, line string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, roundTrip)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(conn, line+"\n"); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if len(answer) == 0 {
		return "", fmt.Errorf("%w: it closed the connection without a word", ErrUnavailable)
	}
	return string(answer), nil
}
