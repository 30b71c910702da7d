// Package haproxytest finds the HAProxy that tests run, and gives them folders whose sockets have short enough paths.
//
// What comes in is a test, what goes out is cleaned up when it ends. It must never be imported by anything but tests.
package haproxytest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Binary is $HAPROXY, or what hack/haproxy.sh left in the checkout, or haproxy in PATH. Without one the test fails: what
// it shows is only true of the real HAProxy.
func Binary(t testing.TB) string {
	t.Helper()
	for _, candidate := range []string{os.Getenv("HAPROXY"), filepath.Join(root(t), ".cache/bin/haproxy"), "haproxy"} {
		if candidate == "" {
			continue
		}
		if found, err := exec.LookPath(candidate); err == nil {
			absolute, err := filepath.Abs(found)
			if err != nil {
				t.Fatal(err)
			}
			return absolute
		}
	}
	t.Fatal("there is no HAProxy to test with: run the tests with make test, or set $HAPROXY")
	return ""
}

// root is the folder of go.mod.
func root(t testing.TB) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			t.Fatal("there is no go.mod above the test")
		}
		folder = parent
	}
}

// Dir is a temporary folder with a short path: a socket's has at most 107 bytes.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Pause stops a process with all its threads, and returns when it has stopped. It goes on at the latest when the test ends.
func Pause(t testing.TB, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		for !strings.Contains(state(pid, thread.Name()), "State:\tT") {
			time.Sleep(time.Millisecond)
		}
	}
}

func state(pid int, thread string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/status", pid, thread))
	if err != nil {
		return "State:\tT, or gone"
	}
	return string(text)
}
