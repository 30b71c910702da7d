// Package serve runs `limpet serve` on the objects of an apiserver.Server, as if it were the controller of a cluster: objects go to
// a folder that Limpet reads, and the statuses that it writes to a file go back to the objects.
//
// Limpet needs to be told nothing but what files cannot say: where each Gateway listens, which in a cluster is found out by its
// Service. So each Gateway that asks for no address gets a loopback address of its own, in Limpet's copy alone.
package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/limpet-gateway/limpet/e2e/apiserver"
)

// Options are what running Limpet needs.
type Options struct {
	Server *apiserver.Server
	// Limpet and HAProxy are the programs.
	Limpet, HAProxy string
	// Dir is an empty folder.
	Dir string
	// Gateways are the addresses that Gateways get.
	Gateways netip.Prefix
	Log      *slog.Logger
}

// Limpet is a running `limpet serve`.
type Limpet struct {
	options Options
	command *exec.Cmd
	// gone is closed when it has ended.
	gone chan struct{}

	next      netip.Addr
	addresses map[types.NamespacedName]netip.Addr
	// written are the objects as Limpet has them, by the name of their file; reported those whose status it told last.
	written  map[string]written
	reported map[string]bool
	// modified is when the status file was written that was read last.
	modified time.Time
}

// Start starts Limpet. Run keeps it informed, until Stop.
func Start(options Options) (*Limpet, error) {
	l := &Limpet{options: options, gone: make(chan struct{}), next: options.Gateways.Masked().Addr().Next(),
		addresses: map[types.NamespacedName]netip.Addr{}, written: map[string]written{}, reported: map[string]bool{}}
	if err := os.MkdirAll(l.objects(), 0o700); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(options.Dir, "limpet.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// Stop ends it, softly.
	l.command = exec.CommandContext(context.Background(), options.Limpet, "serve", "-f", l.objects(),
		"--dir", filepath.Join(options.Dir, "state"), "--haproxy", options.HAProxy, "--status-file", l.statuses(),
		"--port-offset", "0", "--grace", "1s")
	l.command.Stdout, l.command.Stderr = log, log
	if err := l.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(l.gone)
		_ = l.command.Wait()
	}()
	return l, nil
}

func (l *Limpet) objects() string  { return filepath.Join(l.options.Dir, "objects") }
func (l *Limpet) statuses() string { return filepath.Join(l.options.Dir, "status.yaml") }

// Run carries objects to Limpet and statuses back, until ctx ends. It returns an error when Limpet ends before.
func (l *Limpet) Run(ctx context.Context) error {
	changed, look := l.options.Server.Watch(), time.NewTicker(20*time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.gone:
			return fmt.Errorf("limpet serve ended: %s", l.command.ProcessState)
		case <-changed:
			if err := l.writeObjects(); err != nil {
				return err
			}
		case <-look.C:
			if err := l.readStatuses(); err != nil {
				return err
			}
		}
	}
}

// Stop ends Limpet and its HAProxy.
func (l *Limpet) Stop() {
	_ = l.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-l.gone:
	case <-time.After(10 * time.Second):
		_ = l.command.Process.Kill()
		<-l.gone
	}
}
