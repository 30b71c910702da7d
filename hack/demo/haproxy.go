package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// processes returns how often HAProxy was reloaded since its start and how many workers it has, as its master says.
func (s *stage) processes(ctx context.Context) (reloads, workers int, err error) {
	_, reloads, workers, err = s.showProc(ctx)
	return reloads, workers, err
}

// showProc reads the master's "show proc": lines of "<pid> <type> <reloads> <uptime> <version>" under headings.
func (s *stage) showProc(ctx context.Context) (pids []int, reloads, workers int, err error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", filepath.Join(s.state(), "run", "master.sock"))
	if err != nil {
		return nil, 0, 0, err
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "show proc\nquit\n"); err != nil {
		return nil, 0, 0, err
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 {
			continue
		}
		pid, err := strconv.Atoi(fields[0])
		if err != nil {
			continue
		}
		switch fields[1] {
		case "master":
			reloads, _ = strconv.Atoi(fields[2])
		case "worker":
			workers++
		}
		pids = append(pids, pid)
	}
	if len(pids) < 2 {
		return nil, 0, 0, fmt.Errorf("HAProxy's master told of %d processes", len(pids))
	}
	return pids, reloads, workers, lines.Err()
}

// killHAProxy kills the master and the worker, and waits until Limpet has started others.
func (s *stage) killHAProxy(ctx context.Context) error {
	pids, _, _, err := s.showProc(ctx)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return s.answers(ctx, s.address())
}
