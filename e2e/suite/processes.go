package suite

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// background is for what is cleaned up after a test: its own context has ended then.
func background() context.Context { return context.Background() }

// pause stops the node's process of that name as if it hung, until the returned function is called or the test ends.
func pause(t *testing.T, name string) (resume func()) {
	t.Helper()
	found := processes(name)
	if len(found) != 1 {
		t.Fatalf("there are %d processes %s here, one was expected", len(found), name)
	}
	if err := syscall.Kill(found[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	resume = sync.OnceFunc(func() { _ = syscall.Kill(found[0], syscall.SIGCONT) })
	t.Cleanup(resume)
	return resume
}

// processes are the numbers of all processes in this network namespace, the node's, whose program has that name.
func processes(name string) []int {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	here, _ := os.Readlink("/proc/self/ns/net")
	var found []int
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		program, _, _ := bytes.Cut(line, []byte{0})
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		there, _ := os.Readlink(filepath.Join(filepath.Dir(path), "ns/net"))
		if err == nil && there == here && filepath.Base(string(program)) == name {
			found = append(found, pid)
		}
	}
	return found
}
