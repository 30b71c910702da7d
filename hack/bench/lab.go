package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lab is a folder with the HAProxys that run in it.
type lab struct {
	dir     string
	haproxy string
	wrk     string
	running []*process
}

type process struct {
	cmd  *exec.Cmd
	port int
}

func newLab() (*lab, error) {
	wrk, err := exec.LookPath("wrk")
	if err != nil {
		return nil, errors.New("wrk is needed: apt-get install wrk")
	}
	haproxy := os.Getenv("HAPROXY")
	if haproxy == "" {
		haproxy = ".cache/bin/haproxy"
	}
	if haproxy, err = exec.LookPath(haproxy); err != nil {
		return nil, fmt.Errorf("haproxy is needed: make bench gets it: %w", err)
	}
	if haproxy, err = filepath.Abs(haproxy); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "limpet-bench")
	if err != nil {
		return nil, err
	}
	return &lab{dir: dir, haproxy: haproxy, wrk: wrk}, nil
}

func (l *lab) close() {
	for _, p := range l.running {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		_ = p.cmd.Wait()
	}
	_ = os.RemoveAll(l.dir)
}

// start runs HAProxy in a folder, on files there, and waits for port.
func (l *lab) start(ctx context.Context, port int, folder string, files ...string) (*process, error) {
	args := []string{"-db", "-C", folder}
	for _, f := range files {
		args = append(args, "-f", f)
	}
	cmd := exec.CommandContext(ctx, l.haproxy, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd, port}
	l.running = append(l.running, p)
	for range 100 {
		if conn, err := net.Dial("tcp", address(port)); err == nil {
			return p, conn.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, fmt.Errorf("haproxy does not listen on %d:\n%s", port, stderr.String())
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func freePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// ticks is the CPU time that a process used, in clock ticks of 10 ms.
func ticks(pid int) (int, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return user + system, errors.Join(err1, err2)
}

var (
	requestsLine = regexp.MustCompile(`(\d+) requests in`)
	badLine      = regexp.MustCompile(`Non-2xx or 3xx responses: (\d+)|Socket errors: (.*)`)
)

// cpu loads p with script for a while and returns the CPU microseconds that HAProxy used for each request.
func (l *lab) cpu(ctx context.Context, p *process, script string, span time.Duration) (float64, error) {
	before, err := ticks(p.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	out, err := exec.CommandContext(ctx, l.wrk, "-t1", "-c8", "-d", fmt.Sprintf("%.0fs", span.Seconds()), "-s", script,
		"http://"+address(p.port)+"/").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("wrk: %w\n%s", err, out)
	}
	after, err := ticks(p.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	if bad := badLine.Find(out); bad != nil {
		return 0, fmt.Errorf("requests failed, so nothing was measured: %s", bad)
	}
	match := requestsLine.FindSubmatch(out)
	if match == nil {
		return 0, fmt.Errorf("wrk said nothing that could be read:\n%s", out)
	}
	requests, err := strconv.Atoi(string(match[1]))
	if err != nil || requests == 0 {
		return 0, fmt.Errorf("no request was answered: %w", err)
	}
	return float64(after-before) * 10_000 / float64(requests), nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// report is what was measured, against its limits.
type report struct{ failures []error }

// ratio prints one row and notes whether it holds.
func (r *report) ratio(what string, got, limit float64, detail string) {
	verdict := "ok"
	if got > limit {
		verdict = "OVER"
		r.failures = append(r.failures, fmt.Errorf("%s: %.2f, at most %.2f", what, got, limit))
	}
	fmt.Printf("%-66s %5.2f  at most %.2f  %-4s  %s\n", what, got, limit, verdict, detail)
}

func (r *report) verdict() error { return errors.Join(r.failures...) }
