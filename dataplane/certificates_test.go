package dataplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
	"github.com/limpet-gateway/limpet/dataplane/haproxy/haproxytest"
	"github.com/limpet-gateway/limpet/internal/certtest"
	"github.com/limpet-gateway/limpet/internal/table"
)

// servingTLS is a lab with a TLS port whose first certificate is for a.example.
func servingTLS(t testing.TB, change ...func(*lab)) (l *lab, address string, ca *certtest.CA) {
	t.Helper()
	l, _ = serving(t)
	ca = certtest.NewCA("ca")
	for _, c := range change {
		c(l)
	}
	address = l.port("tls", "Gateway tls")
	l.certificates(model.Certificate{ID: "a", Owner: "Secret a", PEM: ca.Issue("a.example").PEM})
	for _, host := range []string{"a.example", "b.example", "c.example", "other.example"} {
		l.route(host, "one")
	}
	if got := l.apply(); len(got.LeftOut) > 0 {
		t.Fatalf("%+v", got)
	}
	return l, address, ca
}

// certificates are those of the last port, the first one its default.
func (l *lab) certificates(certificates ...model.Certificate) {
	edit := table.Table[*model.Certificate]{}.Edit()
	var names []string
	for _, certificate := range certificates {
		edit.Set(certificate.ID, &certificate)
		names = append(names, certificate.ID)
	}
	l.config.Certificates = edit.Table()
	l.changes++
	ports := slices.Clone(l.config.Frame.Ports)
	ports[len(ports)-1].Servers = []model.TLSServer{{ID: "t1", Certificates: names}}
	l.config.Frame.Ports = ports
}

// certificate is one of them.
func (l *lab) certificate(id string) model.Certificate {
	l.Helper()
	certificate, found := l.config.Certificates.Get(id)
	if !found {
		l.Fatalf("there is no certificate %s", id)
	}
	return *certificate
}

// handshake returns the serial number and the names of the certificate that is shown for a name.
func handshake(address, name string, client ...tls.Certificate) (*x509.Certificate, error) {
	dialer := tls.Dialer{
		NetDialer: &net.Dialer{Timeout: 5 * time.Second},
		Config:    &tls.Config{ServerName: name, InsecureSkipVerify: true, Certificates: client}, //nolint:gosec // the test looks itself
	}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	// A client certificate is refused after the handshake, as far as the client sees.
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+name+"\r\nConnection: close\r\n\r\n"); err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(string(answer), "HTTP/1.1 200") {
		return nil, fmt.Errorf("the answer is %.60q", answer)
	}
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// shows is the name in the certificate for a name.
func (l *lab) shows(address, name string) string {
	certificate, err := handshake(address, name)
	if err != nil {
		return err.Error()
	}
	return certificate.Subject.CommonName
}

// handshakes are made until stop is called, which returns how many there were and the first error.
func (l *lab) handshakes(address, name string) (stop func() (int64, error)) {
	var count atomic.Int64
	var failed atomic.Value
	end := make(chan struct{})
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				if _, err := handshake(address, name); err != nil {
					failed.CompareAndSwap(nil, err)
				}
				count.Add(1)
			}
		})
	}
	return func() (int64, error) {
		close(end)
		done.Wait()
		err, _ := failed.Load().(error)
		return count.Load(), err
	}
}

// socket sends HAProxy something that Limpet does not know of.
func (l *lab) socket(command string) {
	l.Helper()
	conn, err := net.Dial("unix", haproxy.AdminSocket(l.dir))
	if err != nil {
		l.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, command); err != nil {
		l.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || len(answer) == 0 {
		l.Fatalf("HAProxy says %q, %v", answer, err)
	}
}

func (l *lab) file(name string) string {
	text, _ := os.ReadFile(filepath.Join(l.dir, "current", name))
	return string(text)
}

func TestACertificateIsReplacedTwentyTimesWithoutAReload(t *testing.T) {
	t.Parallel()
	l, address, ca := servingTLS(t)
	worker := l.worker()
	stop := l.handshakes(address, "a.example")
	for i := range 20 {
		pair := ca.Issue("a.example")
		l.certificates(model.Certificate{ID: "a", Owner: "Secret a", PEM: pair.PEM})
		if got := l.apply(); got.Reloaded || got.Commands != 1 || len(got.LeftOut) > 0 {
			t.Fatalf("%d: %+v, want one command", i, got)
		}
		shown, err := handshake(address, "a.example")
		if err != nil || !pair.TLS().Leaf.Equal(shown) {
			t.Fatalf("%d: another certificate is shown, or none: %v", i, err)
		}
		if l.file("certs/a.pem") != pair.PEM {
			t.Errorf("%d: the file is not what is served", i)
		}
	}
	count, err := stop()
	t.Logf("%d handshakes", count)
	if err != nil || l.worker() != worker {
		t.Errorf("a handshake failed: %v, or another worker serves", err)
	}
	if text := l.logged(); strings.Contains(text, "PRIVATE KEY") {
		t.Error("a key is in the log")
	}
}

func TestCertificatesComeAndGoWithoutAReload(t *testing.T) {
	t.Parallel()
	l, address, ca := servingTLS(t)
	a := l.certificate("a")
	b := model.Certificate{ID: "b", Owner: "Secret b", PEM: ca.Issue("b.example").PEM}
	c := model.Certificate{ID: "c", Owner: "Secret c", PEM: ca.Issue("c.example").PEM}
	for _, step := range []struct {
		has  []model.Certificate
		want string
	}{
		{[]model.Certificate{a, b, c}, "b.example c.example"},
		{[]model.Certificate{a, c}, "a.example c.example"},
		{[]model.Certificate{a}, "a.example a.example"},
		{[]model.Certificate{a, b}, "b.example a.example"},
	} {
		l.certificates(step.has...)
		if got := l.apply(); got.Reloaded || len(got.LeftOut) > 0 {
			t.Fatalf("%+v, want commands", got)
		}
		if got := l.shows(address, "b.example") + " " + l.shows(address, "c.example"); got != step.want {
			t.Errorf("with %d certificates: %s, want %s", len(step.has), got, step.want)
		}
	}
	l.within(2*time.Second, "HAProxy and the files have what is wanted", func() bool {
		loaded, err := l.client.LoadedFiles(context.Background())
		return err == nil && fmt.Sprint(loaded) == "map[certs/a.pem:true certs/b.pem:true]" &&
			l.file("lists/tls.list") == "certs/a.pem\ncerts/b.pem\n" && l.file("certs/b.pem") == b.PEM && l.file("certs/c.pem") == ""
	})
	// The default certificate cannot be changed by commands.
	l.certificates(b, a)
	if got := l.apply(); !got.Reloaded || !strings.Contains(joined(got.Reasons), "its first certificate changed") {
		t.Errorf("%+v, want a reload with its reason", got)
	}
	if got := l.shows(address, "other.example"); got != "b.example" {
		t.Errorf("without a certificate of its own, %s is shown", got)
	}
}

func TestARefusedCertificateNeverReplacesTheLastGoodOne(t *testing.T) {
	l, address, ca := servingTLS(t)
	a := l.certificate("a")
	b := model.Certificate{ID: "b", Owner: "Secret b", PEM: ca.Issue("b.example").PEM}
	weak := pemOf(t, weakKey(t))
	for _, bad := range []string{weak, "garbage", ca.Issue("a.example").Certificate + ca.Issue("a.example").Key} {
		broken := a
		broken.PEM = bad
		b.PEM = ca.Issue("b.example").PEM
		l.certificates(broken, b)
		l.backend("one", l.endpoint("z", 7))
		got := l.apply()
		if got.Reloaded || len(got.LeftOut) != 1 || !strings.HasSuffix(got.LeftOut["Secret a"], "(the last good one stays)") {
			t.Fatalf("%+v, want the Secret left out without a reload", got)
		}
		if shown, err := handshake(address, "a.example"); err != nil || shown.Subject.CommonName != "a.example" {
			t.Errorf("%v: the last good certificate is gone", err)
		}
		if l.shows(address, "b.example") != "b.example" {
			t.Error("the other certificate is not served")
		}
		if l.file("certs/a.pem") != a.PEM {
			t.Error("the file is not the last good one")
		}
	}
	if text := fmt.Sprint(l.apply()) + l.logged(); strings.Contains(text, "PRIVATE KEY") {
		t.Error("a key is shown")
	}
	// A reload does not bring it in, and a good one does.
	l.port("p9", "Gateway x")
	ports := l.config.Frame.Ports
	ports[1], ports[2] = ports[2], ports[1]
	if got := l.apply(); !got.Reloaded || len(got.LeftOut) != 1 || l.shows(address, "a.example") != "a.example" {
		t.Errorf("%+v", got)
	}
	a.PEM = ca.Issue("a.example").PEM
	l.certificates(a, b)
	if got := l.apply(); got.Reloaded || len(got.LeftOut) > 0 {
		t.Errorf("mended: %+v", got)
	}
}

func TestANewCertificateThatIsRefusedIsLeftOutAlone(t *testing.T) {
	l, address, ca := servingTLS(t)
	a := l.certificate("a")
	l.certificates(a,
		model.Certificate{ID: "weak", Owner: "Secret weak", PEM: pemOf(t, weakKey(t))},
		model.Certificate{ID: "bad", Owner: "Secret bad", PEM: "garbage"},
		model.Certificate{ID: "b", Owner: "Secret b", PEM: ca.Issue("b.example").PEM})
	got := l.apply()
	if got.Reloaded || len(got.LeftOut) != 2 || !strings.Contains(got.LeftOut["Secret weak"], "key too small") || got.LeftOut["Secret bad"] == "" {
		t.Fatalf("%+v, want two left out without a reload", got)
	}
	if l.shows(address, "b.example") != "b.example" || l.shows(address, "a.example") != "a.example" {
		t.Error("the others are not served")
	}
	l.within(2*time.Second, "nothing is left of them", func() bool {
		loaded, err := l.client.LoadedFiles(context.Background())
		return err == nil && len(loaded) == 2 && l.file("lists/tls.list") == "certs/a.pem\ncerts/b.pem\n" && l.file("certs/weak.pem") == ""
	})
}

func TestACertificateThatIsLongerThanACommandTakesAReload(t *testing.T) {
	t.Parallel()
	l, address, ca := servingTLS(t)
	pair := ca.Issue("a.example")
	long := pair.PEM + strings.Repeat(ca.PEM, 30)
	l.certificates(model.Certificate{ID: "a", Owner: "Secret a", PEM: long})
	got := l.apply()
	shown, err := handshake(address, "a.example")
	if !got.Reloaded || !strings.Contains(joined(got.Reasons), "longer than a command") || err != nil || !shown.Equal(pair.TLS().Leaf) {
		t.Errorf("%d bytes: %+v, %v", len(long), got, err)
	}
}

func TestACrashBetweenSetAndCommitIsMended(t *testing.T) {
	t.Parallel()
	l, address, ca := servingTLS(t)
	a := l.certificate("a")
	transaction := func(name, verb string) {
		t.Helper()
		l.socket("set ssl cert " + name + " <<\n" + ca.Issue("other.example").PEM + "\n")
		if verb == "commit" {
			l.socket("commit ssl cert " + name + "\n")
		}
	}
	// Somebody's transaction is in the way.
	l.certificates(a, model.Certificate{ID: "b", Owner: "Secret b", PEM: ca.Issue("b.example").PEM})
	l.apply()
	transaction("certs/b.pem", "set")
	a.PEM = ca.Issue("a.example").PEM
	b := l.certificate("b")
	l.certificates(a, b)
	if got := l.apply(); got.Reloaded || len(got.LeftOut) > 0 || l.shows(address, "b.example") != "b.example" {
		t.Errorf("%+v", got)
	}
	// Limpet dies after its transaction, and before it wrote the file.
	l.crash()
	transaction("certs/b.pem", "commit")
	if got := l.shows(address, "other.example"); got != "other.example" {
		t.Fatal("the test did not change the certificate")
	}
	l.start()
	if got := l.apply(); got.Reloaded || len(got.LeftOut) > 0 || l.shows(address, "b.example") != "b.example" {
		t.Errorf("%+v, want what is wanted again", got)
	}
	// HAProxy dies right after a change.
	a.PEM = ca.Issue("a.example").PEM
	l.certificates(a, b)
	l.apply()
	l.kill(l.worker())
	l.within(10*time.Second, "HAProxy is back with the newest certificate", func() bool {
		shown, err := handshake(address, "a.example")
		return err == nil && string(shown.Raw) == string(certtest.Pair{Certificate: a.PEM, Key: a.PEM}.TLS().Certificate[0])
	})
}

func TestAHungHAProxyGetsItsCertificateWhenItGoesOn(t *testing.T) {
	t.Parallel()
	l, address, ca := servingTLS(t)
	pair := ca.Issue("a.example")
	l.certificates(model.Certificate{ID: "a", Owner: "Secret a", PEM: pair.PEM})
	haproxytest.Pause(t, l.worker())
	if got := l.try(time.Second); got.Err == nil {
		t.Errorf("%+v, want an error", got)
	}
	if err := syscall.Kill(l.worker(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	l.within(20*time.Second, "the certificate is served", func() bool {
		shown, err := handshake(address, "a.example")
		return err == nil && shown.Equal(pair.TLS().Leaf)
	})
	l.within(20*time.Second, "all is known again", func() bool { return l.try(5*time.Second).Err == nil })
}

func TestClientCAsAreAddedHotAndRemovedByAReload(t *testing.T) {
	t.Parallel()
	one, two := certtest.NewCA("one"), certtest.NewCA("two")
	l, address, _ := servingTLS(t, func(l *lab) {
		l.bindOptions = " no-ca-names ca-file cas/x.pem verify required"
		l.asset("cas/x.pem", "ConfigMap x", one.PEM)
	})
	old, fresh := one.Issue("client").TLS(), two.Issue("client").TLS()
	accepts := func() string {
		_, errOld := handshake(address, "a.example", old)
		_, errNew := handshake(address, "a.example", fresh)
		_, errNone := handshake(address, "a.example")
		return fmt.Sprint(errOld == nil, errNew == nil, errNone == nil)
	}
	if got := accepts(); got != "true false false" {
		t.Fatalf("accepts %s", got)
	}
	l.asset("cas/x.pem", "ConfigMap x", one.PEM+two.PEM)
	if got := l.apply(); got.Reloaded || got.Commands != 1 || accepts() != "true true false" {
		t.Errorf("added: %+v, accepts %s", got, accepts())
	}
	// Clients choose their certificates by the names that a bind tells, and those stay as they were.
	l.bindOptions = " ca-file cas/x.pem verify required"
	l.port("p3", "Gateway b")
	slices.Reverse(l.config.Frame.Ports[1:])
	l.apply()
	l.asset("cas/x.pem", "ConfigMap x", one.PEM+two.PEM+certtest.NewCA("three").PEM)
	if got := l.apply(); !got.Reloaded || !strings.Contains(joined(got.Reasons), "clients are told the names of its CAs") {
		t.Errorf("with names: %+v", got)
	}
	// A client that resumes its session would be let in for ever.
	cache := tls.NewLRUClientSessionCache(8)
	resuming := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		ServerName: "a.example", InsecureSkipVerify: true, Certificates: []tls.Certificate{old}, ClientSessionCache: cache,
	}}} //nolint:gosec // the test is about clients
	ask := func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/", nil)
		if err != nil {
			return err
		}
		request.Host = "a.example"
		answer, err := resuming.Do(request)
		if err == nil {
			answer.Body.Close()
		}
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	l.asset("cas/x.pem", "ConfigMap x", two.PEM)
	if got := l.apply(); !got.Reloaded || !strings.Contains(joined(got.Reasons), "CA bundle cas/x.pem of ConfigMap x lost a CA") || accepts() != "false true false" {
		t.Errorf("removed: %+v, accepts %s", got, accepts())
	}
	if ask() == nil {
		t.Error("a session of the removed CA's client is resumed")
	}
}

func TestALargeCABundleGoesInPieces(t *testing.T) {
	t.Parallel()
	one := certtest.NewCA("one")
	l, address, _ := servingTLS(t, func(l *lab) {
		l.bindOptions = " no-ca-names ca-file cas/x.pem verify required"
		l.asset("cas/x.pem", "ConfigMap x", one.PEM)
	})
	bundle := one.PEM
	for i := range 300 {
		bundle += certtest.NewCA(fmt.Sprint("ca ", i)).PEM
	}
	last := certtest.NewCA("last")
	l.asset("cas/x.pem", "ConfigMap x", bundle+last.PEM)
	got := l.apply()
	if _, err := handshake(address, "a.example", last.Issue("client").TLS()); got.Reloaded || err != nil {
		t.Errorf("%d bytes: %+v, %v", len(bundle), got, err)
	}
	if _, err := handshake(address, "a.example", certtest.NewCA("stranger").Issue("client").TLS()); err == nil {
		t.Error("a stranger is let in")
	}
	// A garbage bundle is refused alone.
	l.asset("cas/x.pem", "ConfigMap x", bundle+last.PEM+"-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n")
	if got := l.apply(); got.Reloaded || len(got.LeftOut) != 1 {
		t.Errorf("garbage: %+v", got)
	}
	if _, err := handshake(address, "a.example", last.Issue("client").TLS()); err != nil {
		t.Errorf("after garbage: %v", err)
	}
}

// tlsEcho is an HTTPS server that answers with its name and the client certificate's.
func tlsEcho(t testing.TB, name string, pair certtest.Pair, clients *certtest.CA) netip.AddrPort {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", serverConfig(pair, clients))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text := name
			if len(r.TLS.PeerCertificates) > 0 {
				text += " " + r.TLS.PeerCertificates[0].Subject.CommonName
			}
			_, _ = io.WriteString(w, text)
		}),
		ReadHeaderTimeout: time.Second,
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return netip.MustParseAddrPort(listener.Addr().String())
}

func serverConfig(pair certtest.Pair, clients *certtest.CA) *tls.Config {
	config := &tls.Config{Certificates: []tls.Certificate{pair.TLS()}, MinVersion: tls.VersionTLS12}
	if clients != nil {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, certtest.Pool(clients)
	}
	return config
}

func TestABackendsTLSChangesWithoutAReloadAndWithoutAFailedRequest(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	one, two, clients := certtest.NewCA("one"), certtest.NewCA("two"), certtest.NewCA("clients")
	at := tlsEcho(t, "x", one.Issue("x.example"), clients)
	l.asset("cas/x.pem", "ConfigMap x", one.PEM)
	l.asset("certs/c.pem", "Secret c", clients.Issue("c1").PEM)
	l.serverOptions = map[string]string{"tls": "ssl verify required ca-file cas/x.pem crt certs/c.pem sni str(x.example)"}
	l.backend("tls", model.Endpoint{Name: "e1", Address: at, ID: 1})
	l.route("t", "tls")
	if got := l.apply(); got.Reloaded || l.get(address, "t") != "x c1" {
		t.Fatalf("%+v, answers %q, want a TLS backend at run time", got, l.get(address, "t"))
	}
	stop := l.traffic(address, "t", "x c1, x c2, x c3", 4)
	change := func(what string, want string) {
		t.Helper()
		l.backend("tls", model.Endpoint{Name: "e1", Address: at, ID: 1})
		if got := l.apply(); got.Reloaded || len(got.LeftOut) > 0 {
			t.Errorf("%s: %+v, want no reload", what, got)
		}
		l.within(2*time.Second, what+": it is used", func() bool { return l.get(address, "t") == want })
	}
	l.asset("certs/c2.pem", "Secret c", clients.Issue("c2").PEM)
	l.serverOptions["tls"] = "ssl verify required ca-file cas/x.pem crt certs/c2.pem sni str(x.example)"
	change("another client certificate", "x c2")
	l.asset("cas/x.pem", "ConfigMap x", two.PEM+one.PEM)
	change("another CA", "x c2")
	l.serverOptions["tls"] = "ssl verify required ca-file cas/x.pem crt certs/c2.pem sni str(x.example) alpn http/1.1"
	change("other options", "x c2")
	requests, wrong := stop()
	t.Logf("%d requests", requests)
	if wrong != "" {
		t.Errorf("an answer was %q", wrong)
	}
	// A client certificate that is renewed under its name.
	l.asset("certs/c2.pem", "Secret c", clients.Issue("c3").PEM)
	if got := l.apply(); got.Reloaded || got.Commands != 1 {
		t.Errorf("%+v, want one command", got)
	}
	l.within(20*time.Second, "new connections have the new certificate", func() bool {
		time.Sleep(200 * time.Millisecond)
		return l.get(address, "t") == "x c3"
	})
	// A CA that is revoked, while connections are pooled.
	l.get(address, "t")
	l.asset("cas/x.pem", "ConfigMap x", two.PEM)
	if got := l.apply(); got.Reloaded || l.get(address, "t") != "503 Service Unavailable" {
		t.Errorf("%+v, and a server that the CA does not vouch for answers %q", got, l.get(address, "t"))
	}
	l.asset("cas/x.pem", "ConfigMap x", one.PEM)
	if got := l.apply(); got.Reloaded || l.get(address, "t") != "x c3" {
		t.Errorf("%+v, answers %q", got, l.get(address, "t"))
	}
	l.within(5*time.Second, "what is not used is gone", func() bool {
		loaded, err := l.client.LoadedFiles(context.Background())
		states, failed := l.client.Servers(context.Background())
		left := slices.DeleteFunc(states, func(s haproxy.ServerState) bool { return s.Address != at })
		return err == nil && failed == nil && len(left) == 1 && loaded["certs/c2.pem"] && loaded["cas/x.pem"]
	})
}

func TestABackendsTLSIsThereAfterCrashes(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	one := certtest.NewCA("one")
	at := tlsEcho(t, "x", one.Issue("x.example"), nil)
	l.asset("cas/x.pem", "ConfigMap x", one.PEM) // no server names it when the worker starts
	l.port("p2", "Gateway b")
	l.apply()
	l.serverOptions = map[string]string{"tls": "ssl verify required ca-file cas/x.pem sni str(x.example)"}
	l.backend("tls", model.Endpoint{Name: "e1", Address: at, ID: 1})
	l.route("t", "tls")
	if got := l.apply(); got.Reloaded || l.get(address, "t") != "x" {
		t.Fatalf("%+v, answers %q", got, l.get(address, "t"))
	}
	l.kill(l.worker())
	l.within(10*time.Second, "HAProxy is back", func() bool { return l.get(address, "t") == "x" })
	l.serverOptions["tls"] += " alpn http/1.1"
	l.backend("tls", model.Endpoint{Name: "e1", Address: at, ID: 1})
	l.apply()
	l.crash()
	l.start()
	if got := l.apply(); got.Err != nil || l.get(address, "t") != "x" {
		t.Errorf("%+v, answers %q", got, l.get(address, "t"))
	}
}

func TestAServerWhoseCAIsRefusedIsNotServedWithoutIt(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	at := tlsEcho(t, "x", certtest.NewCA("one").Issue("x.example"), nil)
	l.asset("cas/x.pem", "ConfigMap x", "garbage")
	l.serverOptions = map[string]string{"tls": "ssl verify required ca-file cas/x.pem sni str(x.example)"}
	l.backend("tls", model.Endpoint{Name: "e1", Address: at, ID: 1})
	l.route("t", "tls")
	got := l.apply()
	if got.Reloaded || len(got.LeftOut) != 1 || got.LeftOut["ConfigMap x"] == "" || l.get(address, "t") != "503 Service Unavailable" || l.get(address, "h") != "a" {
		t.Errorf("%+v, answers %q and %q", got, l.get(address, "t"), l.get(address, "h"))
	}
}
