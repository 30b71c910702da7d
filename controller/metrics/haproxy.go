package metrics

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limpet-gateway/limpet/dataplane"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
)

const (
	// scrapeTimeout bounds what is asked of HAProxy, and freshFor is how long an answer does for others who ask.
	scrapeTimeout = 5 * time.Second
	freshFor      = time.Second
	// maxEndpoints bounds the endpoints that have series of their own.
	maxEndpoints = 5000
)

// Source has HAProxy's counters.
type Source interface {
	Counters(ctx context.Context) (dataplane.Counters, error)
}

// Collector shows HAProxy's counters. It asks when it is asked.
type Collector struct {
	source Source
	log    *slog.Logger

	mu     sync.Mutex
	last   dataplane.Counters
	err    error
	asked  time.Time
	failed bool // the last one was said in the log
}

// NewCollector returns a Collector.
func NewCollector(source Source, log *slog.Logger) *Collector {
	return &Collector{source: source, log: log}
}

// Describe says nothing: what there is depends on what is served.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// series is a metric, and the counter of HAProxy's that it shows.
type series struct {
	desc    *prometheus.Desc
	kind    prometheus.ValueType
	counter string
	scale   float64
}

func newSeries(kind prometheus.ValueType, counter, name, help string, labels ...string) series {
	return series{prometheus.NewDesc("limpet_"+name, help, labels, nil), kind, counter, 1}
}

func (s series) times(scale float64) series {
	s.scale = scale
	return s
}

const (
	total = prometheus.CounterValue
	now   = prometheus.GaugeValue
)

var (
	up = newSeries(now, "", "haproxy_up", "1 if HAProxy answers, else 0.")

	figures = []series{
		newSeries(now, "Uptime_sec", "haproxy_uptime_seconds", "Since when the worker runs; a reload begins anew, and so do its counters."),
		newSeries(now, "CurrConns", "haproxy_connections", "Connections of clients."),
		newSeries(now, "Maxconn", "haproxy_connections_max", "How many connections of clients there may be."),
		newSeries(total, "CumConns", "haproxy_connections_total", "Connections of clients there were."),
		newSeries(total, "CumReq", "haproxy_requests_total", "Requests there were."),
		newSeries(total, "DroppedLogs", "haproxy_dropped_logs_total", "Lines of the access log that nobody took in time."),
		newSeries(now, "Idle_pct", "haproxy_idle_ratio", "Which part of its time HAProxy has nothing to do.").times(0.01),
		newSeries(now, "PoolAlloc_MB", "haproxy_memory_pool_bytes", "Memory in HAProxy's pools.").times(1 << 20),
	}

	ofListener = []string{"gateway", "port"}
	listeners  = []series{
		newSeries(now, "scur", "listener_connections", "Connections to a listener's port.", ofListener...),
		newSeries(total, "stot", "listener_connections_total", "Connections there were.", ofListener...),
		newSeries(total, "bin", "listener_received_bytes_total", "Bytes received from clients.", ofListener...),
		newSeries(total, "bout", "listener_sent_bytes_total", "Bytes sent to clients.", ofListener...),
	}
	listenerRequests = newSeries(total, "", "listener_requests_total", "Answers to clients, by the class of their status.",
		append(ofListener, "code")...)

	ofBackend = []string{"backend"}
	backends  = []series{
		newSeries(now, "scur", "backend_connections", "Requests under way.", ofBackend...),
		newSeries(now, "qcur", "backend_queue", "Requests that wait for an endpoint.", ofBackend...),
		newSeries(total, "econ", "backend_connection_errors_total", "Connections that no endpoint took.", ofBackend...),
		newSeries(total, "eresp", "backend_response_errors_total", "Answers that broke off.", ofBackend...),
		newSeries(total, "wretr", "backend_retries_total", "Attempts after the first one.", ofBackend...),
		newSeries(total, "wredis", "backend_redispatches_total", "Requests that went to another endpoint in the end.", ofBackend...),
		newSeries(now, "rtime", "backend_response_seconds", "How long an answer took, on average of the last 1024.", ofBackend...).times(0.001),
	}
	backendRequests = newSeries(total, "", "backend_requests_total", "Answers of a backend, by the class of their status.", "backend", "code")

	ofEndpoint = []string{"backend", "endpoint"}
	endpoints  = []series{
		newSeries(now, "scur", "endpoint_connections", "Requests under way.", ofEndpoint...),
		newSeries(total, "stot", "endpoint_requests_total", "Requests that an endpoint got.", ofEndpoint...),
		newSeries(total, "econ", "endpoint_connection_errors_total", "Connections that it did not take.", ofEndpoint...),
		newSeries(total, "eresp", "endpoint_response_errors_total", "Answers that broke off.", ofEndpoint...),
	}
)

// codes are HAProxy's counters of answers by class.
var codes = map[string]string{
	"1xx": "hrsp_1xx", "2xx": "hrsp_2xx", "3xx": "hrsp_3xx", "4xx": "hrsp_4xx", "5xx": "hrsp_5xx", "other": "hrsp_other",
}

// Collect asks HAProxy and shows what it said.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	counters, err := c.counters()
	to <- prometheus.MustNewConstMetric(up.desc, up.kind, number(err == nil))
	if err != nil {
		return
	}
	for _, s := range figures {
		if n, has := counters.Figures[s.counter]; has {
			to <- prometheus.MustNewConstMetric(s.desc, s.kind, n*s.scale)
		}
	}
	shown, sum := 0, sums{}
	for _, stat := range counters.Stats {
		if stat.Server != haproxy.FrontendStat && stat.Server != haproxy.BackendStat {
			if shown++; shown > maxEndpoints {
				continue
			}
		}
		sum.show(counters, stat)
	}
	for _, one := range sum {
		to <- prometheus.MustNewConstMetric(one.desc, one.kind, one.value, one.labels...)
	}
}

// sums are the series of what sections count: a listener's port has one section for each family of addresses.
type sums map[string]*sum

type sum struct {
	series
	value  float64
	labels []string
}

func (s sums) add(one series, value float64, labels ...string) {
	key := one.desc.String() + "\x00" + strings.Join(labels, "\x00")
	if s[key] == nil {
		s[key] = &sum{series: one, labels: labels}
	}
	s[key].value += value * one.scale
}

// counters are HAProxy's, not older than a moment. Those who ask at the same time get the same answer.
func (c *Collector) counters() (dataplane.Counters, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.asked) < freshFor {
		return c.last, c.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	c.last, c.err = c.source.Counters(ctx)
	c.asked = time.Now()
	if c.err != nil && !c.failed {
		c.log.Warn("HAProxy's counters cannot be had", "error", c.err)
	}
	c.failed = c.err != nil
	return c.last, c.err
}

// show shows one line of HAProxy's by the names of objects; what is Limpet's own is not shown.
func (s sums) show(counters dataplane.Counters, stat haproxy.Stat) {
	port, isPort := counters.Ports[stat.Proxy]
	backend := counters.Backends[stat.Proxy]
	switch {
	case isPort && stat.Server == haproxy.FrontendStat:
		gateway := strings.Fields(string(port.Owner))
		if len(gateway) < 2 {
			return
		}
		labels := []string{gateway[1], strconv.Itoa(int(port.Public))}
		// Of a port that speaks TLS, connections are counted where they come in, and requests behind that.
		behind := stat.Proxy != port.ID
		if !behind {
			s.each(listeners, stat, labels...)
		}
		if behind == port.TLS() {
			s.codes(listenerRequests, stat, labels...)
		}
	case backend == nil:
	case stat.Server == haproxy.BackendStat:
		s.each(backends, stat, backend.Name)
		s.codes(backendRequests, stat, backend.Name)
	default:
		for _, endpoint := range backend.Endpoints {
			if endpoint.Name == stat.Server {
				s.each(endpoints, stat, backend.Name, display(endpoint.Display, endpoint.Address.String()))
				return
			}
		}
	}
}

func display(name, address string) string {
	if name == "" {
		return address
	}
	return name
}

func (s sums) each(all []series, stat haproxy.Stat, labels ...string) {
	for _, one := range all {
		if n, has := stat.Number(one.counter); has {
			s.add(one, n, labels...)
		}
	}
}

func (s sums) codes(one series, stat haproxy.Stat, labels ...string) {
	for code, counter := range codes {
		if n, has := stat.Number(counter); has && (n > 0 || code == "2xx") {
			s.add(one, n, append(labels[:len(labels):len(labels)], code)...)
		}
	}
}
