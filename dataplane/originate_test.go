package dataplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy/haproxytest"
	"github.com/limpet-gateway/limpet/internal/certtest"
	"github.com/limpet-gateway/limpet/internal/originator"
)

// TestOriginatorProcess is the originator where a test starts it.
func TestOriginatorProcess(t *testing.T) {
	dir := os.Getenv("ORIGINATE")
	if dir == "" {
		dir = haproxytest.Dir(t) // without settings, it ends at once
		if err := os.Mkdir(dir+"/run", 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := originator.Run(ctx, dir, slog.Default()); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := originator.Run(context.Background(), dir, slog.Default()); err != nil {
		t.Fatal(err)
	}
}

func originating(o *Options) func(*testing.T) {
	return func(t *testing.T) {
		o.Dir = haproxytest.Dir(t)
		o.Originator = []string{"/usr/bin/env", "ORIGINATE=" + o.Dir, os.Args[0], "-test.run=^TestOriginatorProcess$"}
	}
}

func TestBackendsAreKnownBySubjectAltNames(t *testing.T) {
	t.Parallel()
	l, address := serving(t, func(o *Options) { originating(o)(t) })
	t.Cleanup(func() { (&originator.Supervisor{Dir: l.dir, Log: slog.Default()}).Stop() })
	ca := certtest.NewCA("ca")
	shows := ca.Issue("x", func(c *x509.Certificate) { c.DNSNames = []string{"other.example"} })
	var served atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		count, _ := io.Copy(io.Discard, r.Body)
		if r.Proto == "HTTP/2.0" && count >= 0 {
			_, _ = io.WriteString(w, "h2")
		}
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{shows.TLS()}, NextProtos: []string{"h2"}}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	at := netip.MustParseAddrPort(server.Listener.Addr().String())
	settings := originator.Settings{CA: ca.PEM, ServerName: "sent.example", DNSNames: []string{"other.example"}, Protocols: []string{"h2"}}
	socket, options := originator.Server(originator.Socket(l.dir), "o1", at)
	l.addresses = map[netip.AddrPort]string{at: socket}
	l.serverOptions = map[string]string{"san": options + " proto h2"}
	l.asset(originator.FileName("o1"), "BackendTLSPolicy p", settings.Text())
	l.backend("san", model.Endpoint{Name: "e", Address: at, ID: 1})
	l.route("s", "san")
	if got := l.apply(); got.Reloaded || l.get(address, "s") != "h2" {
		t.Fatalf("%+v, answers %q, want it at run time", got, l.get(address, "s"))
	}
	// The names change, and nobody sees a request any more.
	settings.DNSNames = []string{"sent.example"}
	l.asset(originator.FileName("o1"), "BackendTLSPolicy p", settings.Text())
	if got := l.apply(); got.Reloaded {
		t.Errorf("%+v", got)
	}
	if answer := l.get(address, "s"); !strings.HasPrefix(answer, "50") {
		t.Errorf("right after the change, the answer is %s", answer)
	}
	before := served.Load()
	l.get(address, "s")
	if served.Load() != before {
		t.Error("a request reached an endpoint whose certificate is not accepted")
	}
	settings.DNSNames = []string{"other.example"}
	l.asset(originator.FileName("o1"), "BackendTLSPolicy p", settings.Text())
	l.apply()
	// It dies, HAProxy dies, Limpet dies.
	pid := l.originator()
	_ = syscall.Kill(pid, syscall.SIGKILL)
	l.within(5*time.Second, "it is back", func() bool { return l.originator() != pid && l.get(address, "s") == "h2" })
	l.kill(l.worker())
	l.within(10*time.Second, "HAProxy is back", func() bool { return l.get(address, "s") == "h2" })
	pid = l.originator()
	l.crash()
	l.start()
	if got := l.apply(); got.Reloaded || got.Commands != 0 || l.get(address, "s") != "h2" || l.originator() != pid {
		t.Errorf("after a crash: %+v, answers %q", got, l.get(address, "s"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_ = l.engine.Shutdown(ctx)
	l.engine = nil
	if l.originator() != 0 {
		t.Error("the originator goes on")
	}
}

// originator is the process that listens for the lab; 0 if none does.
func (l *lab) originator() int { return originator.PID(l.dir) }

func TestAServerThatDNSFindsTakesAReload(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	at := haproxytest.Echo(t, "dns")
	host := "localhost:" + strings.Split(at.String(), ":")[1]
	l.addresses = map[netip.AddrPort]string{at: host}
	l.serverOptions = map[string]string{"dns": "init-addr last,libc,none"}
	l.backend("dns", model.Endpoint{Name: "e", Address: at, ID: 1})
	l.route("d", "dns")
	if got := l.apply(); !got.Reloaded || !strings.Contains(joined(got.Reasons), "is one whose name HAProxy resolves") || l.get(address, "d") != "dns" {
		t.Errorf("%+v, answers %q", got, l.get(address, "d"))
	}
	l.crash()
	l.start()
	if got := l.apply(); got.Reloaded || got.Commands != 0 {
		t.Errorf("after a crash: %+v, want nothing to do", got)
	}
	l.backend("dns")
	l.route("d", "")
	if got := l.apply(); !got.Reloaded {
		t.Errorf("%+v, want a reload", got)
	}
	if (files.Server{Slot: "s", Name: "n", ID: 1, Address: "-bad.example:1"}).Check() == nil {
		t.Error("a bad name is accepted")
	}
}
