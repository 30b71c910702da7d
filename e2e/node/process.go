package node

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// process is a running pod.
type process struct {
	command *exec.Cmd
	output  *output
	// started is closed when the program has printed something, and time to bind its ports; ended when it has ended.
	started, ended chan struct{}
	unwanted       atomic.Bool
}

func begin(program string, environment []string) (*process, error) {
	p := &process{output: &output{}, started: make(chan struct{}), ended: make(chan struct{})}
	p.command = exec.CommandContext(context.Background(), program) // Whoever began it ends it.
	p.command.Env = environment
	reader, writer := io.Pipe()
	p.command.Stdout, p.command.Stderr = writer, writer
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.command.Wait()
		_ = writer.Close()
	}()
	go p.read(reader)
	return p, nil
}

// read takes what the program prints, line by line.
func (p *process) read(from io.Reader) {
	defer close(p.ended)
	lines := bufio.NewScanner(from)
	for first := true; lines.Scan(); first = false {
		p.output.add(lines.Text())
		if first {
			time.AfterFunc(binding, func() { close(p.started) })
		}
	}
}

// binding is the time from echo-basic's first line, which says that it is about to listen, until it does.
const binding = 50 * time.Millisecond

func (p *process) end() {
	p.unwanted.Store(true)
	_ = p.command.Process.Kill()
}

func (p *process) wanted() bool { return !p.unwanted.Load() }

// output is what a program printed, and when.
type output struct {
	mu    sync.Mutex
	lines []line
}

type line struct {
	at   time.Time
	text string
}

func (o *output) add(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, line{time.Now(), text})
}

func (o *output) write(since time.Time, to io.Writer) error {
	o.mu.Lock()
	var text bytes.Buffer
	for _, l := range o.lines {
		if !l.at.Before(since) {
			fmt.Fprintln(&text, l.text)
		}
	}
	o.mu.Unlock()
	_, err := to.Write(text.Bytes())
	return err
}

func (o *output) all() string {
	var text bytes.Buffer
	_ = o.write(time.Time{}, &text)
	return text.String()
}
