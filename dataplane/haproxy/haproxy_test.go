package haproxy

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy/haproxytest"
	"github.com/limpet-gateway/limpet/dataplane/placement"
)

// lab is an HAProxy that a test runs, with its folder.
type lab struct {
	*testing.T
	dir     string
	store   *files.Store
	process *Process
	client  *Client
}

// prepare writes a set as the current generation of a new folder; nothing runs yet.
func prepare(t *testing.T, render func(dir string) files.Set) *lab {
	t.Helper()
	dir := haproxytest.Dir(t)
	store, err := files.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{T: t, dir: dir, store: store, client: NewClient(AdminSocket(dir))}
	l.write(render(dir))
	l.process = l.another()
	t.Cleanup(func() {
		for _, pid := range leftovers(dir) {
			if process, err := os.FindProcess(pid); err == nil {
				_ = process.Kill()
			}
		}
		l.process.Alive()
	})
	return l
}

// run is prepare, and starts HAProxy.
func run(t *testing.T, render func(dir string) files.Set) *lab {
	t.Helper()
	l := prepare(t, render)
	if err := l.process.Start(l.ctx(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return l
}

// another is a Process for the same folder, as a Limpet that was started again has it.
func (l *lab) another() *Process {
	l.Helper()
	process, err := NewProcess(haproxytest.Binary(l), l.dir, slog.New(slog.DiscardHandler))
	if err != nil {
		l.Fatal(err)
	}
	return process
}

func (l *lab) write(set files.Set) {
	l.Helper()
	number, faults, err := l.store.Write(set, placement.Placement{})
	if err != nil || len(faults) > 0 {
		l.Fatal(err, faults)
	}
	if err := l.store.Switch(number); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) ctx(limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(l.Context(), limit)
	l.Cleanup(cancel)
	return ctx
}

func skeleton(dir string) files.Set {
	return haproxytest.Skeleton{Dir: dir, Slots: 4}.Set()
}

func (l *lab) log() string {
	text, _ := os.ReadFile(filepath.Join(l.dir, logFile))
	return string(text)
}

// within waits until something holds.
func (l *lab) within(limit time.Duration, what string, holds func() bool) {
	l.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if holds() {
			return
		}
	}
	l.Fatalf("not within %s: %s\n%s", limit, what, l.log())
}
