package main

import (
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/limpet-gateway/limpet/controller"
	"github.com/limpet-gateway/limpet/controller/graph"
)

type controllerFlags struct {
	log             logFlags
	dir             string
	haproxy         string
	kubeconfig      string
	namespace       string
	name            string
	pod             podFlags
	controllerName  string
	watchNamespaces []string
	keysSecret      string
	portsConfigMap  string
	lease           string
	podSelector     string
	serviceType     string
	trusted         []string
	accessLog       string
	grace           time.Duration
}

func newController() *cobra.Command {
	var f controllerFlags
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Serve what a Kubernetes cluster says, with the HAProxy beside it",
		Long: `Controller reads Gateway API objects from a Kubernetes API server and drives the HAProxy in the next
container of its pod. The Helm chart starts it.

An API server that is not there is waited for, and HAProxy goes on with what it has when one goes away.`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.dir, "dir", "/run/limpet", "folder that is shared with HAProxy, for its files and sockets")
	flags.StringVar(&f.namespace, "namespace", os.Getenv("POD_NAMESPACE"), "namespace of this pod; $POD_NAMESPACE")
	flags.StringVar(&f.name, "pod-name", os.Getenv("POD_NAME"), "name of this pod; $POD_NAME")
	flags.StringVar(&f.controllerName, "controller-name", graph.DefaultControllerName, "controllerName of the GatewayClasses to serve")
	flags.StringSliceVar(&f.watchNamespaces, "watch-namespaces", nil, "namespaces whose objects are read (a,b); all if empty")
	flags.StringVar(&f.keysSecret, "keys-secret", "limpet-keys", "Secret in this namespace with the keys of sessions; made if it is not there")
	flags.StringVar(&f.portsConfigMap, "ports-configmap", "limpet-ports", "ConfigMap in this namespace with the container ports of Gateways")
	flags.StringVar(&f.lease, "lease", "limpet", "Lease in this namespace that says which replica writes statuses")
	flags.StringVar(&f.podSelector, "pod-selector", "app.kubernetes.io/name=limpet", "labels of Limpet's pods in this namespace")
	flags.StringVar(&f.serviceType, "service-type", string(corev1.ServiceTypeClusterIP),
		"type of the Services of Gateways: ClusterIP, NodePort or LoadBalancer")
	flags.StringSliceVar(&f.trusted, "trusted-proxies", nil,
		"addresses (10.0.0.0/8) of proxies in front, whose X-Forwarded-* headers are believed; can be repeated")
	flags.StringVar(&f.accessLog, "access-log", "off", "a line for each request on HAProxy's standard output: off, text or json")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "file that leads to the API server; empty in a pod")
	flags.StringVar(&f.haproxy, "haproxy", "", "start this HAProxy (3.0 or newer) instead of driving that of the next container")
	flags.DurationVar(&f.grace, "grace", controller.GraceTimeout, "how long an HAProxy started here may take to finish at the end")
	f.pod.add(flags)
	f.log.add(cmd)
	return cmd
}

func (f *controllerFlags) run(cmd *cobra.Command) error {
	log, err := f.log.logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	klog.SetSlogLogger(log)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	options, err := f.options()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), append(endSignals, syscall.SIGHUP)...)
	defer stop()
	if options.HAProxy, err = findHAProxy(ctx, f.haproxy); err != nil {
		return err
	}
	options.Log, options.AccessLogTo, options.Version = log, cmd.OutOrStdout(), version
	if self, err := os.Executable(); err == nil && !options.Neighbour {
		options.Originator = []string{self, "originate", "--dir", options.Dir}
	}
	log.Info("limpet controller", "version", version, "server", options.Config.Host, "namespace", options.Namespace, "dir", options.Dir)
	grace, cancel := graceContext(ctx, f.grace)
	defer cancel()
	return controller.Kubernetes(ctx, grace, options)
}

func (f *controllerFlags) options() (controller.KubernetesOptions, error) {
	o := controller.KubernetesOptions{
		Dir: f.dir, Namespace: f.namespace, Pod: f.name, WatchNamespaces: f.watchNamespaces,
		KeysSecret: f.keysSecret, PortsConfigMap: f.portsConfigMap, Lease: f.lease,
		Graph: graph.Options{
			ControllerName: f.controllerName, DefaultAddress: netip.AddrFrom4([4]byte{127, 0, 0, 1}), PortOffset: defaultOffset(),
		},
	}
	if err := f.pod.apply(&o); err != nil {
		return o, err
	}
	o.Neighbour = f.haproxy == ""
	if o.Namespace == "" {
		return o, usage("no namespace: give --namespace, or set POD_NAMESPACE")
	}
	if o.Pod == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, usage("no name of this pod: give --pod-name, or set POD_NAME")
		}
		o.Pod = host
	}
	switch o.ServiceType = corev1.ServiceType(f.serviceType); o.ServiceType {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer:
	default:
		return o, usage("--service-type %q: give ClusterIP, NodePort or LoadBalancer", f.serviceType)
	}
	var err error
	if o.PodSelector, err = labels.Parse(f.podSelector); err != nil {
		return o, usage("--pod-selector %q selects nothing: %v", f.podSelector, err)
	}
	if o.TrustedProxies, err = prefixes("--trusted-proxies", f.trusted); err != nil {
		return o, err
	}
	if o.AccessLog, err = accessLogForm(f.accessLog); err != nil {
		return o, err
	}
	o.Config, err = clusterConfig(f.kubeconfig)
	return o, err
}

// clusterConfig leads to the API server.
func clusterConfig(kubeconfig string) (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("no way to the API server: %w: give --kubeconfig, or run in a pod", err)
	}
	// The API server itself shares out its time, and better than a client can.
	config.QPS = -1
	config.UserAgent = strings.TrimSpace("limpet/" + version)
	return config, nil
}
