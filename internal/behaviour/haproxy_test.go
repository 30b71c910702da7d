package behaviour

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/dataplane"
)

// processes are what HAProxy's master says of itself and its workers.
type processes struct {
	master, worker, reloads int
	old                     []int
}

// askMaster asks the master: lines of "<pid> <type> <reloads> <uptime> <version>" under headings.
func (w *World) askMaster(ctx context.Context) (processes, error) {
	text, err := dialogue(ctx, filepath.Join(w.limpet.dir, "run", "master.sock"), "show proc;quit")
	if err != nil {
		return processes{}, err
	}
	var found processes
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		pid, err := strconv.Atoi(fields[0])
		reloads, _ := strconv.Atoi(fields[2])
		switch {
		case err != nil:
		case fields[1] == "master":
			found.master, found.reloads = pid, reloads
		case fields[1] == "worker" && found.worker == 0:
			found.worker = pid
		case fields[1] == "worker":
			found.old = append(found.old, pid)
		}
	}
	if found.master == 0 || found.worker == 0 {
		return found, errors.New("HAProxy's master knows no worker")
	}
	return found, nil
}

// processes are what the master says; while it reloads, it does not answer.
func (w *World) processes(t testing.TB) processes {
	t.Helper()
	var found processes
	var err error
	for range 100 {
		if found, err = w.askMaster(t.Context()); err == nil {
			return found
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal(err)
	return found
}

// Reloads is how often HAProxy was reloaded since its start.
func (w *World) Reloads(t testing.TB) int {
	t.Helper()
	return w.processes(t).reloads
}

// kill kills HAProxy, master and worker, and returns when Limpet has started another.
func (w *World) kill(t testing.TB) {
	t.Helper()
	before := w.processes(t)
	for _, pid := range []int{before.master, before.worker} {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	for range 500 {
		if now, err := w.askMaster(t.Context()); err == nil && now.master != before.master {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("HAProxy is not back in ten seconds")
}

// counter is what HAProxy counts for a server, or the BACKEND itself.
func (w *World) counter(t testing.TB, backend, server, name string) int {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(w.command(t, "show stat"), "# "))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := slices.Index(rows[0], name)
	for _, row := range rows[1:] {
		if row[0] == backend && row[1] == server && column >= 0 {
			n, _ := strconv.Atoi(row[column])
			return n
		}
	}
	t.Fatalf("HAProxy does not count %s of %s/%s", name, backend, server)
	return 0
}

// command asks HAProxy itself, where no request can tell.
func (w *World) command(t testing.TB, line string) string {
	t.Helper()
	answer, err := dialogue(t.Context(), dataplane.AdminSocket(w.limpet.dir), line)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func dialogue(ctx context.Context, socket, line string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintln(conn, line); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}
