package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/haproxy/haproxytest"
)

// server is a running limpet serve.
type server struct {
	command *exec.Cmd
	log     *lockedBuffer
	ended   chan struct{}
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func serve(t *testing.T, args ...string) *server {
	t.Helper()

	s := &server{command: exec.Command(binary, append([]string{"serve", "--haproxy", haproxytest.Binary(t)}, args...)...), log: &lockedBuffer{}, ended: make(chan struct{})}
	s.command.Stdout, s.command.Stderr = s.log, s.log
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.command.Wait(); close(s.ended) }()
	t.Cleanup(func() {
		s.end(t, syscall.SIGTERM)
		if t.Failed() {
			t.Log(s.log)
		}
	})
	return s
}

// end sends a signal and waits for the exit code.
func (s *server) end(t *testing.T, signal syscall.Signal) int {
	t.Helper()

	_ = s.command.Process.Signal(signal)
	select {
	case <-s.ended:
	case <-time.After(20 * time.Second):
		_ = s.command.Process.Kill()
		t.Fatal("it does not end")
	}
	return s.command.ProcessState.ExitCode()
}

// eventually waits until something holds. Time that a busy machine did not give us does not count.
func eventually(t *testing.T, what string, within time.Duration, holds func() bool) {
	t.Helper()

	const pause = 5 * time.Millisecond
	for used := time.Duration(0); !holds(); {
		if used > within {
			t.Fatalf("after %v there is no %s", within, what)
		}
		start := time.Now()
		time.Sleep(pause)
		used += min(time.Since(start), 2*pause)
	}
}

// get is the status code and the body for a host at a port, 0 without an answer.
func get(port int, host string) (int, string) {
	request, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", port), nil)
	if err != nil {
		return 0, err.Error()
	}
	request.Host = host
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

func backend(t *testing.T) int {
	t.Helper()

	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	t.Cleanup(s.Close)
	return freeOf(s.URL)
}

func freeOf(url string) int {
	var port int
	_, _ = fmt.Sscanf(url, "http://127.0.0.1:%d", &port)
	return port
}

func TestServeServesFilesAndOutlivesWhatHappens(t *testing.T) {
	t.Parallel()

	dir, port := haproxytest.Dir(t), freePort(t)
	manifests, state, statusFile := filepath.Join(dir, "m", "shop.yaml"), filepath.Join(dir, "s"), filepath.Join(dir, "status.yaml")
	text := shopWith(port, backend(t))
	write(t, manifests, text)
	args := []string{"-f", filepath.Dir(manifests), "--dir", state, "--port-offset", "0", "--status-file", statusFile, "--log-format", "json"}
	first := serve(t, args...)
	answers := func(host string) func() bool {
		return func() bool { code, body := get(port, host); return code == 200 && body == "hello" }
	}
	eventually(t, "answer", 20*time.Second, answers("shop.example"))
	eventually(t, "status", 5*time.Second, func() bool {
		text, _ := os.ReadFile(statusFile)
		return strings.Contains(string(text), "HAProxy serves the Gateway.")
	})

	// A second one refuses, and says why.
	limpetIn(t, os.Environ(), "", append([]string{"serve", "--haproxy", haproxytest.Binary(t)}, args...)...).
		want(t, exitRefused, "another Limpet drives "+state)

	// An edit is live within a second; a broken one changes nothing and is reported.
	write(t, manifests, strings.ReplaceAll(text, "shop.example", "new.example"))
	eventually(t, "answer for the new host", time.Second, answers("new.example"))
	write(t, manifests, strings.ReplaceAll(text, "shop.example", "newer.example")+"---\n}\n")
	eventually(t, "report of the broken file", time.Second, func() bool { return strings.Contains(first.log.String(), "shop.yaml:35") })
	if !answers("new.example")() {
		t.Error("a broken file changed something")
	}

	// Killed, HAProxy goes on, and the next one takes it over.
	write(t, manifests, text)
	eventually(t, "answer", time.Second, answers("shop.example"))
	if code := first.end(t, syscall.SIGKILL); code == 0 {
		t.Error("killed, it ends with 0")
	}
	if !answers("shop.example")() {
		t.Error("HAProxy did not outlive Limpet")
	}
	second := serve(t, args...)
	eventually(t, "adoption", 10*time.Second, func() bool { return strings.Contains(second.log.String(), "adopted") })
	write(t, manifests, strings.ReplaceAll(text, "shop.example", "last.example"))
	eventually(t, "answer of the adopted HAProxy", 3*time.Second, answers("last.example"))

	// Told to end, it takes HAProxy with it.
	if code := second.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if code, _ := get(port, "last.example"); code != 0 {
		t.Errorf("HAProxy is still there: %d", code)
	}
	for line := range strings.Lines(first.log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

func TestServeTellsWhenAPortIsTaken(t *testing.T) {
	t.Parallel()

	dir := haproxytest.Dir(t)
	taken := backend(t)
	path := write(t, filepath.Join(dir, "m", "shop.yaml"), shopWith(taken, taken))
	s := serve(t, "-f", path, "--dir", filepath.Join(dir, "s"), "--port-offset", "0", "--status-file", filepath.Join(dir, "status.yaml"))
	eventually(t, "Programmed=False", 30*time.Second, func() bool {
		text := s.log.String()
		return strings.Contains(text, `object="Gateway default/gw" condition=Programmed change="- → False" reason=AddressNotUsable`) && strings.Contains(text, "is in use by another process")
	})
	if text := s.log.String(); strings.Contains(text, "msg=listening") {
		t.Errorf("it says that it listens:\n%s", text)
	}
}
