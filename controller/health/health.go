// Package health answers over HTTP how this replica's controller is.
//
// What comes in are functions that look, what goes out are /livez (its loops turn; an API server that is away is no fault
// of ours), /startedz (HAProxy has something to start with), /readyz (HAProxy serves what the cluster says), /served (for the
// other replicas) and /metrics. It must never wait for the loop, and never take traffic away: whether HAProxy takes
// traffic says HAProxy itself.
package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Options are a Server's; what is nil is well, or not there.
type Options struct {
	// Address is where to listen, as ":8081".
	Address string
	// Alive, Started and Ready say what is wrong.
	Alive, Started, Ready func() error
	// Served and Metrics answer for their paths.
	Served, Metrics http.Handler
	Log             *slog.Logger
}

// Bounds of a request: probes and scrapes are small.
const (
	headerTimeout = 5 * time.Second
	answerTimeout = 30 * time.Second
	idleTimeout   = time.Minute
	maxHeader     = 16 << 10
)

// Run listens until ctx ends.
func Run(ctx context.Context, o Options) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return fmt.Errorf("health: %w: give another --health-address", err)
	}
	return Serve(ctx, listener, o)
}

// Serve answers at a listener until ctx ends.
func Serve(ctx context.Context, listener net.Listener, o Options) error {
	server := &http.Server{
		Handler: Handler(o), ReadHeaderTimeout: headerTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("health: %w", err)
	}
	return nil
}

// Handler answers for all paths.
func Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /livez", probe(o.Alive))
	mux.Handle("GET /startedz", probe(o.Started))
	mux.Handle("GET /readyz", probe(o.Ready))
	for path, handler := range map[string]http.Handler{"GET /served": o.Served, "GET /metrics": o.Metrics} {
		if handler != nil {
			mux.Handle(path, handler)
		}
	}
	return mux
}

func probe(look func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if look != nil {
			if err := look(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		_, _ = w.Write([]byte("ok\n"))
	})
}
