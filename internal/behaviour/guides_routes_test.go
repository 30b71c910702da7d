package behaviour

import (
	"net/http"
	"testing"
)

func TestTheGuideToRoutingIsServedAsItIsWritten(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+guide(t, "routing.md"), pods("api", 1), pods("shadow", 1))
	a := w.ok(t, get("shop.example.com/api/cart?a=b", "Origin: https://www.example.com", "X-Reply: X-Powered-By: pods"))
	if a.outcome() != "api" || a.echo.URI != "/v2/cart?a=b" || a.echo.Host != "api.internal" {
		t.Errorf("%s, asked for %s of %s", a.outcome(), a.echo.URI, a.echo.Host)
	}
	if a.header.Get("X-Frame-Options") != "DENY" || a.header.Get("X-Powered-By") != "" || a.header.Get("Access-Control-Allow-Origin") != "https://www.example.com" {
		t.Errorf("the answer has %v", a.header)
	}
	before := w.pod("api-1").requests.Load()
	failed := w.ask(t, get("shop.example.com/api", "X-Reply-Status: 503"))
	if tried := w.pod("api-1").requests.Load() - before; failed.status != http.StatusServiceUnavailable || tried != 3 {
		t.Errorf("%s after %d attempts, want 3", failed.outcome(), tried)
	}
	moved := w.ask(t, get("shop.example.com/old/a"))
	if moved.status != http.StatusMovedPermanently || moved.header.Get("Location") != "http://shop.example.com/new/a" {
		t.Errorf("%s to %s", moved.outcome(), moved.header.Get("Location"))
	}
}

func TestTheGuideToGRPCIsServedAsItIsWritten(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+guide(t, "grpc.md"), servers("cart", "", 3, nil), servers("health", "", 1, nil))
	conn := w.caller(t, "grpc.example.com", false)
	first := invoke(t, conn, "/shop.v1.Cart/Add")
	if first.outcome() != "cart" || len(first.header.Get("x-session")) != 1 {
		t.Fatalf("%s (%v), header %v", first.outcome(), first.err, first.header)
	}
	for range 6 {
		if again := invoke(t, conn, "/shop.v1.Cart/Add", "x-session", first.header.Get("x-session")[0]); again.pod() != first.pod() {
			t.Errorf("%s, want %s", again.pod(), first.pod())
		}
	}
	for method, want := range map[string]string{"/any.Service/Check": "health", "/any.Service/Other": "Unimplemented"} {
		if got := invoke(t, conn, method); got.outcome() != want {
			t.Errorf("%s: %s (%v), want %s", method, got.outcome(), got.err, want)
		}
	}
}
