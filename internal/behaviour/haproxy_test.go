package behaviour

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/limpet-gateway/limpet/dataplane"
)

// processes are what HAProxy's master says of itself and its workers.
type processes struct {
	master, worker, reloads int
	old                     []int
}

// processes asks the master: lines of "<pid> <type> <reloads> <uptime> <version>" under headings.
func (w *World) processes(t testing.TB) processes {
	t.Helper()
	var found processes
	lines := bufio.NewScanner(strings.NewReader(dialogue(t, filepath.Join(w.limpet.dir, "run", "master.sock"), "show proc;quit")))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
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
		t.Fatal("HAProxy's master knows no worker")
	}
	return found
}

// Reloads is how often HAProxy was reloaded since its start.
func (w *World) Reloads(t testing.TB) int {
	t.Helper()
	return w.processes(t).reloads
}

// kill kills HAProxy, master and worker. Limpet starts another.
func (w *World) kill(t testing.TB) {
	t.Helper()
	processes := w.processes(t)
	for _, pid := range []int{processes.master, processes.worker} {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// command asks HAProxy itself, where no request can tell.
func (w *World) command(t testing.TB, line string) string {
	t.Helper()
	return dialogue(t, dataplane.AdminSocket(w.limpet.dir), line)
}

func dialogue(t testing.TB, socket, line string) string {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintln(conn, line); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}
