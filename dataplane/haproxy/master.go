package haproxy

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/haproxytech/client-native/v5/runtime"
	"github.com/haproxytech/client-native/v5/runtime/options"
)

// reloadTimeout is client-native's own, and more than any reload takes.
const reloadTimeout = 30 * time.Second

// processes are what a master says of itself and its workers.
type processes struct {
	master       int
	workers, old []int
}

// showProc asks a master.
func showProc(ctx context.Context, socket string) (processes, error) {
	answer, err := dialogue(ctx, socket, "show proc;quit")
	if err != nil {
		return processes{}, err
	}
	var found processes
	old := false
	for line := range strings.SplitSeq(answer, "\n") {
		if strings.HasPrefix(line, "# old workers") {
			old = true
		}
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		pid, err := strconv.Atoi(fields[0])
		switch {
		case err != nil:
		case fields[1] == "master":
			found.master = pid
		case fields[1] == "worker" && old:
			found.old = append(found.old, pid)
		case fields[1] == "worker":
			found.workers = append(found.workers, pid)
		}
	}
	if found.master == 0 {
		return found, fmt.Errorf("%w: what answers at %s is no HAProxy master", ErrUnavailable, socket)
	}
	return found, nil
}

// reload makes a master start a new worker with the files as they are now, and returns what HAProxy printed. A
// *RefusedError means that the old worker goes on; ErrUnavailable that it is not known what happened.
func reload(ctx context.Context, socket string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	if _, err := showProc(ctx, socket); err != nil {
		return "", err
	}
	type outcome struct {
		logs string
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		logs, err := nativeReload(ctx, socket)
		done <- outcome{logs, err}
	}()
	select {
	case <-ctx.Done():
		return "", fmt.Errorf("%w: the reload does not end: %w", ErrUnavailable, ctx.Err())
	case result := <-done:
		return result.logs, result.err
	}
}

func nativeReload(ctx context.Context, socket string) (string, error) {
	client, err := connectMaster(ctx, socket)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, withoutCommand(err))
	}
	clientNative.RLock()
	defer clientNative.RUnlock()
	logs, err := client.Reload()
	if err == nil {
		return logs, nil
	}
	// client-native has no other sign of which it was.
	if strings.Contains(err.Error(), "failed to reload configuration") {
		return logs, refused(logs)
	}
	return logs, errors.Join(ErrUnavailable, err)
}

func connectMaster(ctx context.Context, socket string) (runtime.Runtime, error) {
	clientNative.Lock()
	defer clientNative.Unlock()
	return runtime.New(ctx, options.MasterSocket(socket, 1), options.DoNotCheckRuntimeOnInit)
}
