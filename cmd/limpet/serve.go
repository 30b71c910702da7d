package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-gateway/limpet/controller"
	"github.com/limpet-gateway/limpet/controller/model"
)

type serveFlags struct {
	objects    objectFlags
	log        logFlags
	dir        string
	haproxy    string
	statusFile string
	grace      time.Duration
	accessLog  string
}

func newServe() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve -f PATH...",
		Short: "Serve what files say with an HAProxy of its own, without Kubernetes",
		Long: `Serve reads Gateway API objects from files and watches them: an edit is live within a second. A broken
file is reported with its line and changes nothing.

It starts an HAProxy (3.0 or newer) and ends it softly with Ctrl-C or SIGTERM: what is under way is finished
first. A second Ctrl-C ends it at once. When Limpet itself is killed, HAProxy goes on, and the next limpet serve
with the same --dir takes it over: no request fails and no session moves.

Without root, ports are offset by 8000: a listener on port 80 is at 127.0.0.1:8080.`,
		Example: `  limpet serve -f ./manifests
  limpet serve -f gateway.yaml -f routes.yaml --status-file status.yaml
  sudo limpet serve -f /etc/limpet --address 0.0.0.0`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd) },
	}
	f.objects.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.dir, "dir", defaultDir(), "folder for keys, and for HAProxy's files and sockets; one limpet serve at a time")
	flags.StringVar(&f.haproxy, "haproxy", os.Getenv("HAPROXY"), "HAProxy 3.0 or newer; $HAPROXY, else haproxy in PATH")
	flags.StringVar(&f.statusFile, "status-file", "", "file that gets the status of every object, as YAML")
	flags.DurationVar(&f.grace, "grace", controller.GraceTimeout, "how long HAProxy may take to finish what is under way at the end")
	flags.StringVar(&f.accessLog, "access-log", "off", "a line for each request on standard output: off, text or json")
	f.log.add(cmd)
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

// defaultDir is where a service keeps its state, or a person's programs keep theirs.
func defaultDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/limpet"
	}
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "limpet")
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "limpet")
}

func (f *serveFlags) serve(cmd *cobra.Command) error {
	log, err := f.log.logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	options, err := f.options()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), append(endSignals, syscall.SIGHUP)...)
	defer stop()
	if options.HAProxy, err = findHAProxy(ctx, f.haproxy); err != nil {
		return err
	}
	options.Log = log
	if self, err := os.Executable(); err == nil {
		options.Originator = []string{self, "originate", "--dir", options.Dir}
	}
	log.Info("limpet serve", "version", version, "files", f.objects.paths, "dir", options.Dir, "haproxy", options.HAProxy,
		"portOffset", options.Graph.PortOffset)
	grace, cancel := graceContext(ctx, f.grace)
	defer cancel()
	return controller.Serve(ctx, grace, options)
}

func (f *serveFlags) options() (controller.ServeOptions, error) {
	graph, err := f.objects.graph()
	if err != nil {
		return controller.ServeOptions{}, err
	}
	trusted, err := f.objects.trustedProxies()
	if err != nil {
		return controller.ServeOptions{}, err
	}
	for _, path := range f.objects.paths {
		if path == "-" {
			return controller.ServeOptions{}, usage("-f -: standard input cannot be watched: give files or folders")
		}
	}
	if err := f.objects.existing(); err != nil {
		return controller.ServeOptions{}, err
	}
	if err := f.objects.apart("--dir", f.dir); err != nil {
		return controller.ServeOptions{}, err
	}
	if f.statusFile != "" {
		if err := f.objects.apart("--status-file", f.statusFile); err != nil {
			return controller.ServeOptions{}, err
		}
		if folder := filepath.Dir(f.statusFile); !isFolder(folder) {
			return controller.ServeOptions{}, usage("--status-file %s: there is no folder %s", f.statusFile, folder)
		}
	}
	accessLog, err := accessLogForm(f.accessLog)
	if err != nil {
		return controller.ServeOptions{}, err
	}
	return controller.ServeOptions{
		AccessLog: accessLog, AccessLogTo: os.Stdout,
		Paths: f.objects.paths, Dir: f.dir, StatusFile: f.statusFile, Graph: graph, TrustedProxies: trusted,
	}, nil
}

// graceContext ends a time after ctx, or with the second signal.
func graceContext(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	grace, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		second := make(chan os.Signal, 1)
		signal.Notify(second, syscall.SIGINT, syscall.SIGTERM)
		select {
		case <-second:
		case <-time.After(after):
		case <-grace.Done():
		}
		cancel()
	})
	return grace, cancel
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// accessLogForm reads --access-log.
func accessLogForm(text string) (model.AccessLog, error) {
	form, known := map[string]model.AccessLog{
		"off": model.AccessLogNone, "text": model.AccessLogText, "json": model.AccessLogJSON,
	}[text]
	if !known {
		return form, usage("--access-log %s: give off, text or json", text)
	}
	return form, nil
}
