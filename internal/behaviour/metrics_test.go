package behaviour

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limpet-gateway/limpet/controller/metrics"
)

// metrics is what a scrape of HAProxy's counters shows.
func (w *World) metrics(t *testing.T) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector(w.limpet.engine, slog.New(slog.DiscardHandler)))
	answer := httptest.NewRecorder()
	metrics.Handler(registry).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if answer.Code != 200 {
		t.Fatalf("%d: %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

func TestMetricsSpeakOfObjectsByTheirNames(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", "hostnames: [shop.example]\nrules:\n- backendRefs: [{name: shop, port: 80}]"), pods("shop", 1))
	for range 3 {
		w.ask(t, get("shop.example/"))
	}
	w.ask(t, get("nobody.example/"))
	shown := w.metrics(t)
	for _, line := range []string{
		`limpet_haproxy_up 1`,
		`limpet_listener_requests_total{code="2xx",gateway="default/gw",port="80"} 3`,
		`limpet_listener_requests_total{code="4xx",gateway="default/gw",port="80"} 1`,
		`limpet_backend_requests_total{backend="Service/default/shop/80",code="2xx"} 3`,
		`limpet_endpoint_requests_total{backend="Service/default/shop/80",endpoint="pod default/`,
	} {
		if !strings.Contains(shown, "\n"+line) {
			t.Errorf("no %s in\n%s", line, shown)
		}
	}
}
