package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/expose"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/health"
	"github.com/limpet-gateway/limpet/controller/leader"
	"github.com/limpet-gateway/limpet/controller/metrics"
	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/controller/replicas"
	"github.com/limpet-gateway/limpet/controller/status"
	"github.com/limpet-gateway/limpet/controller/translate"
	"github.com/limpet-gateway/limpet/dataplane"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/internal/keys"
	"github.com/limpet-gateway/limpet/templates"
)

// KubernetesOptions are what serving from an API server needs.
type KubernetesOptions struct {
	// Config leads to the API server.
	Config *rest.Config
	// Dir is the folder that is shared with HAProxy: its files and sockets.
	Dir string
	// HAProxy is the path of one, which checks configurations; it is started here too unless another container of the pod runs
	// one (Neighbour).
	HAProxy   string
	Neighbour bool
	// Ready are where HAProxy tells whether it is ready for traffic; HealthAddress is where Limpet tells how it is, "" for nowhere.
	Ready         []netip.AddrPort
	HealthAddress string
	// Threads and Connections are HAProxy's; 0 leaves them to it.
	Threads, Connections int
	// Version is this Limpet's.
	Version string
	// Namespace and Pod are where this replica is.
	Namespace, Pod string
	// WatchNamespaces are those whose objects are read; all if empty.
	WatchNamespaces []string
	// PodSelector finds our replicas in our namespace.
	PodSelector labels.Selector
	// Names of objects in our namespace: a Secret, a ConfigMap and a Lease.
	KeysSecret, PortsConfigMap, Lease string
	// ServiceType is that of the Services of Gateways. There are some if Graph says in what pod we are.
	ServiceType    corev1.ServiceType
	Graph          graph.Options
	TrustedProxies []netip.Prefix
	// AccessLog is the form of the access log, which is written to AccessLogTo.
	AccessLog   model.AccessLog
	AccessLogTo io.Writer
	Log         *slog.Logger
	// Originator is the command that speaks TLS to endpoints for HAProxy, for this folder; none if another container runs it.
	Originator []string
}

// Kubernetes reads objects from an API server and drives an HAProxy, until ctx ends. It waits for an API server that is
// not there, and HAProxy goes on with what it has when one goes away.
func Kubernetes(ctx, grace context.Context, o KubernetesOptions) error {
	k, err := newKube(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unwell := k.tellHealth(ctx, cancel)
	if err := k.engine.Start(ctx); err != nil {
		return err
	}
	if o.Neighbour {
		err = k.run(ctx)
		cancel()
		return errors.Join(err, k.engine.Close(), <-unwell)
	}
	stopLog, err := writeAccessLog(k.settings, o.AccessLogTo)
	if err != nil {
		return errors.Join(err, k.engine.Close())
	}
	defer stopLog()
	err = k.run(ctx)
	o.Log.Info("ending: HAProxy finishes what is under way")
	cancel()
	return errors.Join(err, k.engine.Shutdown(grace), <-unwell)
}

// tellHealth tells how this replica is until ctx ends; what it cannot is an end of all.
func (k *kube) tellHealth(ctx context.Context, end func()) <-chan error {
	unwell := make(chan error, 1)
	if k.options.HealthAddress == "" {
		close(unwell)
		return unwell
	}
	go func() {
		unwell <- health.Run(ctx, health.Options{
			Address: k.options.HealthAddress, Alive: k.alive, Started: k.started, Ready: k.ready, Log: k.options.Log,
			Served: replicas.Handler(k.served), Metrics: metrics.Handler(prometheus.Gatherers{k.registry, clientmetrics.Registry}),
		})
		end()
	}()
	return unwell
}

// alive says which loop hangs. Before the keys are known there is only the Engine's.
func (k *kube) alive() error {
	err := k.engine.Alive()
	if loop := k.loop.Load(); loop != nil {
		err = errors.Join(err, loop.Alive())
	}
	return err
}

func (k *kube) served() replicas.Served {
	if loop := k.loop.Load(); loop != nil {
		return loop.Served()
	}
	return replicas.Served{}
}

func (k *kube) started() error {
	if !dataplane.HasGeneration(k.options.Dir) {
		return errors.New("there is no configuration for HAProxy to start with yet")
	}
	return nil
}

func (k *kube) ready() error {
	if loop := k.loop.Load(); loop != nil {
		return loop.Ready()
	}
	return errors.New("the API server is not reached yet")
}

// kube is what runs in a cluster.
type kube struct {
	options  KubernetesOptions
	client   client.Client
	settings templates.Settings
	render   *lateRenderer
	engine   *dataplane.Engine
	source   *cluster.API
	election *leader.Election
	writer   *status.Writer
	registry *prometheus.Registry
	metrics  *metrics.Metrics
	replicas *replicas.Watch
	// events writes Events until its context ends.
	events func(context.Context)
	// loop is there as soon as the keys are.
	loop atomic.Pointer[Controller]
}

func newKube(o KubernetesOptions) (*kube, error) {
	k := &kube{options: o, registry: prometheus.NewRegistry()}
	var err error
	if k.client, err = client.New(o.Config, client.Options{Scheme: scheme.Scheme, Mapper: cluster.Mapper()}); err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	k.source, err = cluster.NewAPI(cluster.APIOptions{
		Config: o.Config, Namespaces: o.WatchNamespaces, Namespace: o.Namespace, PodSelector: o.PodSelector,
		PortsConfigMap: o.PortsConfigMap, KeysSecret: o.KeysSecret, Log: o.Log,
		OnLive: func(name cluster.Name) { k.writer.Seen(name) },
	})
	if err != nil {
		return nil, err
	}
	k.election, err = leader.New(leader.Options{
		Config: o.Config, Namespace: o.Namespace, Lease: o.Lease, Identity: o.Pod, Log: o.Log,
		OnStart: func() { k.writer.All(); k.replicas.Wake() },
	})
	if err != nil {
		return nil, err
	}
	var events *eventSource
	if events, k.events, err = newEventSource(o.Config, o.Graph.ControllerName, k.source, o.Log); err != nil {
		return nil, err
	}
	k.metrics = metrics.New(k.registry, o.Version, k.election.Leads)
	k.writer = status.NewWriter(status.WriterOptions{
		Client: statusClient{k.client, k.metrics}, View: k.source, Controller: o.Graph.ControllerName,
		Leads: k.election.Leads, Events: events.tell, Log: o.Log,
	})
	k.replicas = replicas.New(replicas.Options{Port: healthPort(o.HealthAddress), Leads: k.election.Leads, OnChange: k.news, Log: o.Log})
	return k, k.newEngine()
}

// news wakes the loop for what the Exposer or the replicas have to tell.
func (k *kube) news() {
	if loop := k.loop.Load(); loop != nil {
		loop.News()
	}
}

// healthPort is where all replicas tell how they are.
func healthPort(address string) uint16 {
	_, port, _ := net.SplitHostPort(address)
	number, _ := strconv.ParseUint(port, 10, 16) // what is no port is refused where it is listened at
	return uint16(number)
}

func (k *kube) newEngine() error {
	o := k.options
	k.settings = Settings(o.Dir, nil)
	k.settings.AccessLog = o.AccessLog
	if o.Neighbour {
		k.settings.LogTarget = "stdout" // of its own container: a controller that ends takes no line with it
	}
	k.settings.Ready, k.settings.Threads, k.settings.MaxConnections = o.Ready, o.Threads, o.Connections
	// Until the keys are known no session is either: any key does.
	early, err := keys.Parse(keys.Generate())
	if err != nil {
		return err
	}
	k.render = &lateRenderer{}
	if err := k.useKeys(early); err != nil {
		return err
	}
	k.engine, err = dataplane.New(dataplane.Options{
		Dir: o.Dir, Binary: o.HAProxy, Neighbour: o.Neighbour, Render: k.render.render, Logger: o.Log, Originator: o.Originator,
		OnResult: func(r dataplane.Result) {
			if loop := k.loop.Load(); loop != nil {
				loop.Report(r)
			}
		},
	})
	if err != nil {
		return err
	}
	return k.registry.Register(metrics.NewCollector(k.engine, o.Log))
}

// useKeys renders with these keys from now on.
func (k *kube) useKeys(of keys.Keys) error {
	settings := k.settings
	settings.SignKeys = signKeys(of.Sign)
	return k.render.use(settings)
}

// run does everything that needs the API server.
func (k *kube) run(ctx context.Context) error {
	o := k.options
	secret := &keySecret{
		client: k.client, name: types.NamespacedName{Namespace: o.Namespace, Name: o.KeysSecret}, log: o.Log,
	}
	secrets, err := secret.load(ctx)
	if err != nil {
		return ignoreCanceled(err)
	}
	if err := k.useKeys(secrets); err != nil {
		return err
	}
	beside := []func(context.Context){secret.keep, k.events, k.writer.Run, k.elect, k.replicas.Run}
	var exposer Exposer
	if o.Graph.Pod != nil {
		x := k.newExposer()
		exposer, beside = x, append(beside, x.Run)
	}
	loop := New(Options{
		Source: k.source, Engine: k.engine, Status: k.writer, Exposer: exposer, Graph: o.Graph, Log: o.Log, Features: status.Features(),
		Translate: translate.Options{NamesKey: secrets.Names, TrustedProxies: o.TrustedProxies},
		Replicas:  k.replicas, Metrics: k.metrics, Pod: o.Pod,
	})
	k.loop.Store(loop)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for _, run := range beside {
		running.Go(func() { run(ctx) })
	}
	return loop.Run(ctx)
}

func (k *kube) newExposer() *expose.Exposer {
	o := k.options
	return expose.New(
		expose.Options{Namespace: o.Namespace, PortsConfigMap: o.PortsConfigMap, Pod: o.Pod, ServiceType: o.ServiceType},
		expose.WriterOptions{Client: k.client, Leading: k.election.Leads, Log: o.Log, Changed: k.news},
	)
}

func (k *kube) elect(ctx context.Context) {
	if err := k.election.Run(ctx); err != nil {
		k.options.Log.Error("this replica will never lead", "error", err)
	}
}

// lateRenderer renders with settings that are known later.
type lateRenderer struct {
	mutex sync.Mutex
	with  dataplane.Render
}

func (l *lateRenderer) use(settings templates.Settings) error {
	with, err := renderer(settings)
	if err != nil {
		return err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.with = with
	return nil
}

func (l *lateRenderer) render(config model.Config, place placement.Placement) (files.Set, []dataplane.Fault, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.with(config, place)
}
