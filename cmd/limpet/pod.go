package main

import (
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/limpet-gateway/limpet/controller"
	"github.com/limpet-gateway/limpet/controller/graph"
)

// podFlags say what the pod is that the controller runs in.
type podFlags struct {
	ips       string
	health    string
	readyPort uint16
	cpu       string
	memory    string
}

func (f *podFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.ips, "pod-ips", os.Getenv("POD_IPS"), "addresses of this pod (a,b), which say what families it has; $POD_IPS")
	flags.StringVar(&f.health, "health-address", "",
		"where to answer for /livez, /startedz, /readyz, /served and /metrics (:8081); empty is nowhere")
	flags.Uint16Var(&f.readyPort, "ready-port", 8404, "port at which HAProxy answers whether it is ready, at /ready; 0 is none")
	flags.StringVar(&f.cpu, "haproxy-threads", os.Getenv("LIMPET_HAPROXY_CPU"),
		"CPUs of HAProxy's container (2, 500m), from which its threads follow; $LIMPET_HAPROXY_CPU")
	flags.StringVar(&f.memory, "haproxy-memory", os.Getenv("LIMPET_HAPROXY_MEMORY"),
		"memory of HAProxy's container (512Mi), from which its number of connections follows; $LIMPET_HAPROXY_MEMORY")
}

// apply fills in the options.
func (f *podFlags) apply(o *controller.KubernetesOptions) error {
	o.HealthAddress = f.health
	addresses, err := f.addresses()
	if err != nil {
		return err
	}
	if len(addresses) > 0 {
		o.Graph.Pod = graph.NewPod(addresses)
	}
	o.Ready = f.ready(o.Graph.Pod)
	cpu, err := quantity("--haproxy-threads", f.cpu)
	if err != nil {
		return err
	}
	memory, err := quantity("--haproxy-memory", f.memory)
	if err != nil {
		return err
	}
	o.Threads, o.Connections = controller.Sizing(cpu.MilliValue(), memory.Value())
	return nil
}

func quantity(flag, text string) (resource.Quantity, error) {
	if text == "" {
		return resource.Quantity{}, nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() < 0 {
		return q, usage("%s %q is no quantity: give one such as 2 or 512Mi", flag, text)
	}
	return q, nil
}

// addresses are those of the pod; none where it is no pod.
func (f *podFlags) addresses() ([]netip.Addr, error) {
	var all []netip.Addr
	for text := range strings.SplitSeq(f.ips, ",") {
		if text == "" {
			continue
		}
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return nil, usage("--pod-ips %q: %q is no IP address", f.ips, text)
		}
		all = append(all, ip)
	}
	return all, nil
}

// ready are the addresses of the readiness listener: every one of each family that the pod has.
func (f *podFlags) ready(pod *graph.Pod) []netip.AddrPort {
	if f.readyPort == 0 {
		return nil
	}
	families := []netip.Addr{netip.IPv4Unspecified()}
	if pod != nil {
		families = pod.Addresses
	}
	var all []netip.AddrPort
	for _, every := range families {
		all = append(all, netip.AddrPortFrom(every, f.readyPort))
	}
	return all
}
