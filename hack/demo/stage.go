package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stage is the folder with the manifests, the back ends, and Limpet.
type stage struct {
	dir      string
	limpet   *exec.Cmd
	backends []*backend
	port     int
	extra    int
	draining string
}

func newStage() (*stage, error) {
	dir, err := os.MkdirTemp("", "limpet-demo")
	if err != nil {
		return nil, err
	}
	s := &stage{dir: dir}
	if err := os.Mkdir(s.manifests(), 0o700); err != nil {
		return nil, err
	}
	s.port, s.extra = freePort(), freePort()
	return s, nil
}

func (s *stage) manifests() string     { return filepath.Join(s.dir, "manifests") }
func (s *stage) state() string         { return filepath.Join(s.dir, "state") }
func (s *stage) configuration() string { return filepath.Join(s.state(), "current", "haproxy.cfg") }
func (s *stage) address() string       { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// open writes the manifests, starts Limpet and waits until a request is answered.
func (s *stage) open(ctx context.Context) error {
	for range 3 {
		if err := s.addBackend(); err != nil {
			return err
		}
	}
	if err := errors.Join(
		s.write("gateway.yaml", s.gateway(s.port)), s.write("routes.yaml", routes), s.writeSlices(), s.start(ctx)); err != nil {
		return err
	}
	return s.answers(ctx, s.address())
}

func (s *stage) addBackend() error {
	b, err := newBackend(fmt.Sprintf("shop-%d", len(s.backends)+1))
	if err != nil {
		return err
	}
	s.backends = append(s.backends, b)
	return nil
}

func (s *stage) write(name, text string) error {
	path := filepath.Join(s.manifests(), name)
	if err := os.WriteFile(path+"~", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+"~", path)
}

func (s *stage) writeSlices() error {
	var all strings.Builder
	for _, b := range s.backends {
		all.WriteString(b.slice())
	}
	return s.write("endpoints.yaml", all.String())
}

func (s *stage) start(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(s.dir, "limpet.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	binary := os.Getenv("LIMPET")
	if binary == "" {
		binary = "bin/limpet"
	}
	// Not ctx: Ctrl-C must reach the phases first, strike ends it.
	s.limpet = exec.CommandContext(context.WithoutCancel(ctx), binary, "serve", "-f", s.manifests(), "--dir", s.state(),
		"--port-offset", "0", "--status-file", filepath.Join(s.dir, "status.yaml"))
	s.limpet.Stdout, s.limpet.Stderr = log, log
	s.limpet.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return s.limpet.Start()
}

// answers waits until the address answers with 200.
func (s *stage) answers(ctx context.Context, address string) error {
	c := &http.Client{Timeout: time.Second, Transport: &http.Transport{DialContext: dialTo(address), DisableKeepAlives: true}}
	return s.wait(ctx, "an answer at "+address, func() bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://shop.example/", nil)
		if err != nil {
			return false
		}
		res, err := c.Do(req)
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

func (s *stage) wait(ctx context.Context, what string, done func() bool) error {
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) && ctx.Err() == nil {
		if done() {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.tell()
	return errors.Join(fmt.Errorf("no %s in 20 seconds", what), ctx.Err())
}

// scale changes the number of endpoints.
func (s *stage) scale(ctx context.Context, n int) error {
	for len(s.backends) < n {
		if err := s.addBackend(); err != nil {
			return err
		}
	}
	if err := s.writeSlices(); err != nil {
		return err
	}
	return pause(ctx)
}

func (s *stage) unrelated(ctx context.Context) error {
	if err := s.write("unrelated.yaml", unrelated); err != nil {
		return err
	}
	if err := s.wait(ctx, "answer from the unrelated route", s.serves("other.example", http.StatusOK)); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(s.manifests(), "unrelated.yaml")); err != nil {
		return err
	}
	return s.wait(ctx, "end of the unrelated route", s.serves("other.example", http.StatusNotFound))
}

// serves asks for a host and compares the status.
func (s *stage) serves(host string, status int) func() bool {
	c := &http.Client{Timeout: time.Second, Transport: &http.Transport{DialContext: dialTo(s.address()), DisableKeepAlives: true}}
	return func() bool {
		res, err := c.Get("http://" + host + "/")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == status
	}
}

func (s *stage) addListener(ctx context.Context) error {
	if err := s.write("gateway.yaml", s.gateway(s.port, s.extra)); err != nil {
		return err
	}
	return s.answers(ctx, fmt.Sprintf("127.0.0.1:%d", s.extra))
}

func (s *stage) killLimpet(ctx context.Context) error {
	if err := s.limpet.Process.Kill(); err != nil {
		return err
	}
	_ = s.limpet.Wait()
	time.Sleep(settle)
	if err := s.start(ctx); err != nil {
		return err
	}
	// It is back when an edit takes effect.
	if err := s.unrelated(ctx); err != nil {
		return err
	}
	return ctx.Err()
}

func (s *stage) drain(ctx context.Context) error {
	last := s.backends[0]
	last.state, s.draining = draining, last.name
	if err := s.writeSlices(); err != nil {
		return err
	}
	return pause(ctx)
}

func (s *stage) remove(ctx context.Context) error {
	gone := s.backends[0]
	s.backends = s.backends[1:]
	if err := s.writeSlices(); err != nil {
		return err
	}
	if err := pause(ctx); err != nil {
		return err
	}
	gone.stop()
	return pause(ctx)
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(settle):
		return nil
	}
}

// tell prints the end of Limpet's log: something went wrong.
func (s *stage) tell() {
	text, err := os.ReadFile(filepath.Join(s.dir, "limpet.log"))
	if err != nil {
		return
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	fmt.Fprintf(os.Stderr, "Limpet's last words:\n%s\n", strings.Join(lines[max(0, len(lines)-15):], "\n"))
}

// strike ends everything that was started.
func (s *stage) strike() {
	if s.limpet != nil && s.limpet.Process != nil {
		_ = s.limpet.Process.Signal(syscall.SIGTERM)
		_ = s.limpet.Wait()
	}
	for _, b := range s.backends {
		b.stop()
	}
	_ = os.RemoveAll(s.dir)
}

// keep says what to try, and waits for the person to have enough.
func (s *stage) keep(ctx context.Context) error {
	fmt.Printf(`
Everything is still running. Try:

  curl -si --resolve shop.example:%[1]d:127.0.0.1 http://shop.example:%[1]d/               # a Set-Cookie, and who answered
  curl -s -c jar -b jar --resolve shop.example:%[1]d:127.0.0.1 http://shop.example:%[1]d/  # again and again: the same endpoint
  curl -si -H 'Host: shop.example' http://127.0.0.1:%[1]d/api                              # the same with a header
  $EDITOR %[2]s      # every edit is live within a second
  less %[3]s         # what HAProxy was given
  less %[4]s         # the status of every object

Ctrl-C ends it.
`, s.port, s.manifests(), s.configuration(), filepath.Join(s.dir, "status.yaml"))
	<-ctx.Done()
	return nil
}

func freePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}
