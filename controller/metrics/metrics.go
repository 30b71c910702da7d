// Package metrics counts what the loop does, and shows HAProxy's counters by the names of objects.
//
// What comes in are events of the loop and, when somebody asks, HAProxy's counters; what goes out are Prometheus metrics. It
// must never hold up the loop, and never have more series than there are objects and endpoints that are served.
package metrics

import (
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/limpet-gateway/limpet/dataplane"
)

// Metrics are those of one Limpet. A nil Metrics counts nothing.
type Metrics struct {
	rebuilds, applies, reloads, writes *prometheus.CounterVec
	commands                           prometheus.Counter
	rebuild, apply                     prometheus.Histogram
	objects                            *prometheus.GaugeVec
	leftOut, generation, upToDate      prometheus.Gauge
	lagging                            prometheus.Gauge
	expiry                             *prometheus.GaugeVec
}

// buckets of durations, in seconds.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// New registers the metrics of a Limpet of that version. leads says whether it writes statuses.
func New(registry prometheus.Registerer, version string, leads func() bool) *Metrics {
	m := &Metrics{
		rebuilds:   counters("rebuilds_total", "Times that the objects of the cluster were worked out anew.", "outcome"),
		applies:    counters("applies_total", "Times that HAProxy was brought to what is wanted.", "outcome"),
		reloads:    counters("reloads_total", "Reloads and starts of HAProxy, by the kind of thing that needed one.", "reason"),
		writes:     counters("status_writes_total", "Statuses sent to the API server.", "kind", "outcome"),
		commands:   counter("commands_total", "Commands that changed HAProxy while it ran."),
		rebuild:    durations("rebuild_seconds", "How long it took to work out the objects of the cluster anew."),
		apply:      durations("apply_seconds", "How long it took until HAProxy served what is wanted."),
		objects:    gauges("objects", "Objects that are read, by kind.", "kind"),
		leftOut:    gauge("left_out", "Parts of objects that HAProxy does not serve; conditions and the log say why."),
		generation: gauge("generation", "Number of the configuration that HAProxy runs."),
		upToDate:   gauge("up_to_date", "1 if HAProxy serves what the objects say now, else 0."),
		lagging:    gauge("gateways_lagging", "Gateways that not all ready replicas serve; only the leader knows."),
		expiry:     gauges("certificate_expiry_timestamp_seconds", "When a certificate of a listener expires.", "secret"),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "limpet_build_info", Help: "Always 1.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	leader := prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "limpet_leader", Help: "1 if this replica writes statuses, else 0."},
		func() float64 { return number(leads()) })
	registry.MustRegister(m.rebuilds, m.applies, m.reloads, m.writes, m.commands, m.rebuild, m.apply, m.objects, m.leftOut, m.generation,
		m.upToDate, m.lagging, m.expiry, build, leader)
	return m
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "limpet_" + name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "limpet_" + name, Help: help}, labels)
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "limpet_" + name, Help: help}, labels)
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: "limpet_" + name, Help: help})
}

func durations(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "limpet_" + name, Help: help, Buckets: buckets})
}

// maxScrapes bounds how many read the metrics at a time.
const maxScrapes = 2

// Handler shows what is registered. A part that cannot be had leaves the rest in place.
func Handler(gatherer prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout + time.Second,
	})
}

// Rebuilt counts a rebuild, and how many objects there were, by kind.
func (m *Metrics) Rebuilt(took time.Duration, panicked bool, objects map[string]int) {
	if m == nil {
		return
	}
	m.rebuilds.WithLabelValues(map[bool]string{false: "ok", true: "panic"}[panicked]).Inc()
	m.rebuild.Observe(took.Seconds())
	for kind, count := range objects {
		m.objects.WithLabelValues(kind).Set(float64(count))
	}
}

// Applied counts what the Engine did; took is 0 for what it did by itself. leftOut is how many parts of objects are not served.
func (m *Metrics) Applied(r dataplane.Result, took time.Duration, leftOut int) {
	if m == nil {
		return
	}
	m.applies.WithLabelValues(outcome(r.Err)).Inc()
	m.commands.Add(float64(r.Commands))
	m.leftOut.Set(float64(leftOut))
	m.generation.Set(float64(r.Generation))
	m.upToDate.Set(number(r.Err == nil))
	if took > 0 {
		m.apply.Observe(took.Seconds())
	}
	if r.Reloaded {
		m.reloads.WithLabelValues(reasonOf(r.Reasons)).Inc()
	}
}

// Wrote counts a status that was sent.
func (m *Metrics) Wrote(kind string, err error) {
	if m != nil {
		m.writes.WithLabelValues(kind, outcome(err)).Inc()
	}
}

// Lagging says how many Gateways wait for other replicas.
func (m *Metrics) Lagging(gateways int) {
	if m != nil {
		m.lagging.Set(float64(gateways))
	}
}

// Expiries says when the certificates of listeners expire, by their Secrets.
func (m *Metrics) Expiries(of map[string]time.Time) {
	if m == nil {
		return
	}
	m.expiry.Reset()
	for secret, at := range of {
		m.expiry.WithLabelValues(secret).Set(float64(at.Unix()))
	}
}

func outcome(err error) string {
	if err != nil {
		return "failed"
	}
	return "ok"
}

func number(of bool) float64 {
	if of {
		return 1
	}
	return 0
}

// reasonOf is the kind of the first reason for a reload: the reasons themselves name objects, of which there is no end.
func reasonOf(reasons []string) string {
	if len(reasons) == 0 {
		return "other"
	}
	for _, kind := range []struct{ begins, name string }{
		{"frontend ", "listener"}, {"backend t", "listener"}, {"backend ", "backend"}, {"global", "settings"}, {"defaults ", "settings"},
		{"only ", "slots"}, {"server ", "server"}, {"certificate ", "certificate"}, {"CA bundle ", "certificate"}, {"the keys", "keys"},
		{"file ", "settings"}, {"map ", "settings"}, {"there is no configuration", "start"}, {"HAProxy ", "start"},
	} {
		if strings.HasPrefix(reasons[0], kind.begins) {
			return kind.name
		}
	}
	if strings.Contains(reasons[0], " slots instead of ") {
		return "slots"
	}
	return "other"
}
