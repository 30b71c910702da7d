//go:build linux

package conformance

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// insideVariable tells this test, started by itself, that it runs inside a network of its own, and what to do there.
const insideVariable = "LIMPET_CONFORMANCE"

// assignment is what to do inside.
type assignment struct {
	Programs programs
	// Dir is the folder of the run, Tests the names of the tests to run.
	Dir   string
	Tests []string
	// Impatient is for tests that are known to fail: they need not wait long for it.
	Impatient bool
}

// outcome is what came of one test.
type outcome struct {
	verdict string // PASS, FAIL or SKIP
	output  []string
}

// runInside runs tests in a process of its own, which has a loopback interface of its own: every port of every loopback address is
// free there, 80 too, whoever runs it.
func runInside(t *testing.T, todo assignment) map[string]*outcome {
	t.Helper()
	if err := errors.Join(os.RemoveAll(todo.Dir), os.MkdirAll(todo.Dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(todo.Dir, "suite.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	command := insideCommand(t, todo)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = command.Stdout
	// The other end of this pipe closes when this process ends, however it ends, and then the one inside ends too.
	if _, err := command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("a network namespace of its own: %v (needs Linux with user namespaces, or root)", err)
	}
	outcomes := readOutcomes(io.TeeReader(out, log))
	if err := command.Wait(); err != nil {
		t.Logf("inside: %v; logs are in %s", err, todo.Dir)
	}
	return outcomes
}

func insideCommand(t *testing.T, todo assignment) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(todo)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0], "-test.run", "^TestConformance$", "-test.v=test2json", "-test.timeout", "30m", "-test.parallel", "8")
	command.Env = append(os.Environ(), insideVariable+"="+string(text))
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		command.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return command
}

// inside is the assignment of this process; nil outside.
func inside(t *testing.T) *assignment {
	t.Helper()
	text := os.Getenv(insideVariable)
	if text == "" {
		return nil
	}
	todo := &assignment{}
	if err := json.Unmarshal([]byte(text), todo); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		// Limpet ends its HAProxy, which is in a session of its own.
		signal.Ignore(syscall.SIGTERM)
		_ = syscall.Kill(0, syscall.SIGTERM)
		time.Sleep(5 * time.Second)
		_ = syscall.Kill(0, syscall.SIGKILL)
	}()
	if err := loopbackUp(); err != nil {
		t.Fatalf("loopback interface: %v", err)
	}
	return todo
}

// loopbackUp switches on the loopback interface of a new network namespace.
func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}

// readOutcomes reads what a test prints with -test.v=test2json: each test's lines follow one that names it.
func readOutcomes(from io.Reader) map[string]*outcome {
	outcomes := map[string]*outcome{}
	of := func(name string) *outcome {
		_, rest, _ := strings.Cut(name, "/")
		top, _, _ := strings.Cut(rest, "/")
		if outcomes[top] == nil {
			outcomes[top] = &outcome{}
		}
		return outcomes[top]
	}
	current := of("")
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		line := strings.TrimPrefix(lines.Text(), "\x16")
		var word, name string
		switch {
		case scan(line, "=== %s %s", &word, &name):
			current = of(name)
		case scan(strings.TrimSpace(line), "--- %s %s", &word, &name):
			current = of(name)
			if strings.Count(name, "/") == 1 {
				current.verdict = strings.TrimSuffix(word, ":")
			}
		}
		current.output = append(current.output, line)
	}
	return outcomes
}

func scan(line, form string, word, name *string) bool {
	n, _ := fmt.Sscanf(line, form, word, name)
	return n == 2
}

// matches says whether a test was asked for by -run.
func matches(t *testing.T, name string) bool {
	t.Helper()
	_, pattern, _ := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	pattern, _, _ = strings.Cut(pattern, "/")
	matched, err := regexp.MatchString(pattern, name)
	if err != nil {
		t.Fatal(err)
	}
	return matched
}
