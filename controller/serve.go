package controller

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/controller/status"
	"github.com/limpet-gateway/limpet/controller/translate"
	"github.com/limpet-gateway/limpet/dataplane"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/internal/accesslog"
	"github.com/limpet-gateway/limpet/internal/keys"
	"github.com/limpet-gateway/limpet/internal/originator"
	"github.com/limpet-gateway/limpet/templates"
)

// ServeOptions are what serving from files needs.
type ServeOptions struct {
	// Paths are the files and folders with the objects.
	Paths []string
	// Dir is the installation's folder: keys, HAProxy's files and sockets.
	Dir string
	// HAProxy is the path of one that is 3.0 or newer.
	HAProxy string
	// StatusFile gets the statuses; "" for none.
	StatusFile     string
	Graph          graph.Options
	TrustedProxies []netip.Prefix
	// AccessLog is the form of the access log, which is written to AccessLogTo.
	AccessLog   model.AccessLog
	AccessLogTo io.Writer
	Log         *slog.Logger
	// Originator is the command that speaks TLS to endpoints for HAProxy, for this folder.
	Originator []string
}

// Serve reads objects from files, watches them and drives an HAProxy of its own, until ctx ends. Then HAProxy is stopped
// softly: what is under way is finished until grace ends too.
func Serve(ctx, grace context.Context, o ServeOptions) error {
	secrets, err := keys.Load(filepath.Join(o.Dir, "keys"))
	if err != nil {
		return err
	}
	settings := Settings(o.Dir, secrets.Sign)
	settings.AccessLog = o.AccessLog
	render, err := renderer(settings)
	if err != nil {
		return err
	}
	var c *Controller
	engine, err := dataplane.New(dataplane.Options{
		Dir: o.Dir, Binary: o.HAProxy, Render: render, Logger: o.Log,
		OnResult:   func(r dataplane.Result) { c.Report(r) },
		Originator: o.Originator,
	})
	if err != nil {
		return err
	}
	c = New(Options{
		Source: cluster.NewFiles(cluster.FilesOptions{Paths: o.Paths, Log: o.Log}),
		Engine: engine,
		Status: status.NewStore(status.StoreOptions{File: o.StatusFile, Log: o.Log}),
		Graph:  o.Graph, Log: o.Log,
		Translate: translate.Options{NamesKey: secrets.Names, TrustedProxies: o.TrustedProxies},
	})
	if err := engine.Start(ctx); err != nil {
		return err
	}
	stopLog, err := writeAccessLog(settings, o.AccessLogTo)
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	defer stopLog()
	err = c.Run(ctx)
	o.Log.Info("ending: HAProxy finishes what is under way")
	return errors.Join(err, engine.Shutdown(grace))
}

// writeAccessLog copies HAProxy's access log, if there is any, until the returned function is called.
func writeAccessLog(settings templates.Settings, to io.Writer) (stop func(), err error) {
	log, err := accesslog.Listen(settings.LogTarget)
	if err != nil {
		return nil, err
	}
	go log.Copy(to)
	return func() { _ = log.Close() }, nil
}

// Settings are what the files need to know of an installation in a folder.
func Settings(dir string, sign []keys.SignKey) templates.Settings {
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	socket := dataplane.AdminSocket(dir)
	name := sha256.Sum256([]byte(dir))
	return templates.Settings{
		AdminSocket:      socket,
		HealthSocket:     filepath.Join(filepath.Dir(socket), "health.sock"),
		LogTarget:        filepath.Join(filepath.Dir(socket), "log.sock"),
		OriginatorSocket: originator.Socket(dir),
		Instance:         hex.EncodeToString(name[:6]),
		HardStopAfter:    hardStopAfter,
		SignKeys:         signKeys(sign),
	}
}

// signKeys are the keys as templates want them.
func signKeys(sign []keys.SignKey) []templates.SignKey {
	var all []templates.SignKey
	for _, key := range sign {
		all = append(all, templates.SignKey{ID: key.ID, Secret: base64.StdEncoding.EncodeToString(key.Secret)})
	}
	return all
}

// hardStopAfter is how long connections may outlive a reload.
const hardStopAfter = "1h"

// renderer is templates.Render as the Engine wants it. A panic becomes an error, and rendering begins anew: the Engine
// has a goroutine of its own, and would take the process with it.
func renderer(settings templates.Settings) (dataplane.Render, error) {
	r, err := templates.NewRenderer(settings)
	if err != nil {
		return nil, err
	}
	return func(config model.Config, place placement.Placement) (set files.Set, faults []dataplane.Fault, err error) {
		var found []templates.Fault
		panicked := protect(func() { set, found, err = r.Render(config, place) })
		if panicked != nil {
			fresh, freshErr := templates.NewRenderer(settings)
			if freshErr == nil {
				r = fresh
			}
			return files.Set{}, nil, fmt.Errorf("rendering: %w", panicked)
		}
		for _, fault := range found {
			faults = append(faults, dataplane.Fault{Owner: fault.Owner, Message: fault.Message})
		}
		return set, faults, err
	}, nil
}

// GraceTimeout is how long HAProxy may take to finish what is under way, unless told otherwise.
const GraceTimeout = 10 * time.Second
