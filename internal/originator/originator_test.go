package originator

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"go.uber.org/goleak"

	"github.com/limpet-gateway/limpet/internal/certtest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("ORIGINATE"); dir != "" {
		if err := Run(context.Background(), dir, slog.Default()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// installation is a folder with settings.
func installation(t *testing.T, all map[string]Settings) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, folder := range []string{"run", "current/origins"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for id, settings := range all {
		write(t, dir, id, settings)
	}
	return dir
}

func write(t *testing.T, dir, id string, settings Settings) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "current", FileName(id)), []byte(settings.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve runs an originator until the test ends.
func serve(t *testing.T, dir string) {
	t.Helper()
	listener, err := Listen(Socket(dir))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		New(dir, slog.New(slog.DiscardHandler)).Serve(ctx, listener)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// dial connects as HAProxy does.
func dial(t testing.TB, dir, id string, endpoint netip.AddrPort) (*net.UnixConn, error) {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: Socket(dir), Net: "unix"})
	if err != nil {
		return nil, err
	}
	header := proxyproto.HeaderProxyFromAddrs(2, &net.TCPAddr{IP: net.IPv4(1, 2, 3, 4), Port: 5}, &net.TCPAddr{IP: net.IPv4(6, 7, 8, 9), Port: 80})
	if err := header.SetTLVs([]proxyproto.TLV{{Type: tlvType, Value: []byte(id + ":" + endpoint.String())}}); err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, err = header.WriteTo(conn)
	return conn, err
}

// ask sends a request, and returns the answer or what went wrong.
func ask(t testing.TB, dir, id string, endpoint netip.AddrPort, body string) string {
	t.Helper()
	conn, err := dial(t, dir, id, endpoint)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body); err != nil {
		return "closed"
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "closed"
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// endpoint answers with the number of bytes of the body, and the client certificate's name, and counts the bytes of requests.
func endpoint(t testing.TB, config *tls.Config) (netip.AddrPort, *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var seen atomic.Int64
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			count, _ := io.Copy(io.Discard, r.Body)
			seen.Add(1 + count)
			text := fmt.Sprint(count)
			if len(r.TLS.PeerCertificates) > 0 {
				text += " " + r.TLS.PeerCertificates[0].Subject.CommonName
			}
			_, _ = io.WriteString(w, text+" "+r.TLS.ServerName)
		}),
		TLSConfig: config, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.ServeTLS(listener, "", "")
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return netip.MustParseAddrPort(listener.Addr().String()), &seen
}

func TestACertificateIsAcceptedByItsNamesAlone(t *testing.T) {
	t.Parallel()
	ca, other := certtest.NewCA("ca"), certtest.NewCA("other")
	names := func(dns []string, uris ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			c.DNSNames = dns
			for _, uri := range uris {
				parsed, err := url.Parse(uri)
				if err != nil {
					t.Fatal(err)
				}
				c.URIs = append(c.URIs, parsed)
			}
		}
	}
	expired := func(c *x509.Certificate) {
		c.DNSNames = []string{"a.example"}
		c.NotAfter = time.Now().Add(-time.Minute)
	}
	const id = "spiffe://cluster/ns/x/sa/y"
	for name, test := range map[string]struct {
		shows certtest.Pair
		wants Settings
		good  bool
	}{
		"a DNS name":                   {ca.Issue("x", names([]string{"a.example"})), Settings{DNSNames: []string{"a.example"}}, true},
		"in other letters":             {ca.Issue("x", names([]string{"A.Example"})), Settings{DNSNames: []string{"a.eXample"}}, true},
		"a wildcard in it":             {ca.Issue("x", names([]string{"*.example"})), Settings{DNSNames: []string{"a.example"}}, true},
		"a wildcard is one label":      {ca.Issue("x", names([]string{"*.example"})), Settings{DNSNames: []string{"a.b.example"}}, false},
		"a wildcard is wanted":         {ca.Issue("x", names([]string{"a.example"})), Settings{DNSNames: []string{"*.example"}}, true},
		"a wanted one is one label":    {ca.Issue("x", names([]string{"a.b.example"})), Settings{DNSNames: []string{"*.example"}}, false},
		"a URI":                        {ca.Issue("x", names(nil, id)), Settings{URIs: []string{id}}, true},
		"another URI":                  {ca.Issue("x", names(nil, id)), Settings{URIs: []string{id + "z"}}, false},
		"one of several":               {ca.Issue("x", names([]string{"b.example"}, id)), Settings{DNSNames: []string{"a.example"}, URIs: []string{"x:y", id}}, true},
		"none of several":              {ca.Issue("x", names([]string{"b.example"}, id)), Settings{DNSNames: []string{"a.example"}, URIs: []string{"x:y"}}, false},
		"the server name is none":      {ca.Issue("sent.example"), Settings{DNSNames: []string{"a.example"}}, false},
		"the common name is none":      {ca.Issue("a.example", names(nil)), Settings{DNSNames: []string{"a.example"}}, false},
		"expired":                      {ca.Issue("x", expired), Settings{DNSNames: []string{"a.example"}}, false},
		"of another CA":                {other.Issue("x", names([]string{"a.example"})), Settings{DNSNames: []string{"a.example"}}, false},
		"of none of the system's CAs":  {ca.Issue("a.example"), Settings{CA: "system", DNSNames: []string{"a.example"}}, false},
		"without names, the sent one":  {ca.Issue("sent.example"), Settings{}, true},
		"without names, another one":   {ca.Issue("a.example"), Settings{}, false},
		"it does not speak what it is": {ca.Issue("a.example"), Settings{DNSNames: []string{"a.example"}, Protocols: []string{"x"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.wants.ServerName = "sent.example"
			switch test.wants.CA {
			case "":
				test.wants.CA = ca.PEM
			case "system":
				test.wants.CA = ""
			}
			dir := installation(t, map[string]Settings{"o1": test.wants})
			serve(t, dir)
			at, seen := endpoint(t, &tls.Config{Certificates: []tls.Certificate{test.shows.TLS()}})
			got, want := ask(t, dir, "o1", at, "hello"), "5 sent.example"
			if test.good && got != want || !test.good && (got != "closed" || seen.Load() != 0) {
				t.Errorf("answers %q, want %q; the endpoint saw %d bytes", got, want, seen.Load())
			}
		})
	}
}

func TestSettingsChangeFromOneConnectionToTheNext(t *testing.T) {
	t.Parallel()
	ca, clients := certtest.NewCA("ca"), certtest.NewCA("clients")
	dir := installation(t, nil)
	serve(t, dir)
	at, _ := endpoint(t, &tls.Config{
		Certificates: []tls.Certificate{ca.Issue("a.example").TLS()}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: certtest.Pool(clients),
	})
	settings := Settings{CA: ca.PEM, ServerName: "a.example", DNSNames: []string{"a.example"}}
	for _, step := range []struct {
		change func()
		want   string
	}{
		{func() {}, "closed"},
		{func() { settings.Certificate = clients.Issue("me").PEM; write(t, dir, "o1", settings) }, "0 me a.example"},
		{func() { settings.DNSNames = []string{"b.example"}; write(t, dir, "o1", settings) }, "closed"},
		{func() { settings.DNSNames = nil; write(t, dir, "o1", settings) }, "0 me a.example"},
	} {
		step.change()
		if got := ask(t, dir, "o1", at, ""); got != step.want {
			t.Errorf("answers %q, want %q", got, step.want)
		}
	}
	if got := ask(t, dir, "../o1", at, ""); got != "closed" {
		t.Errorf("settings elsewhere: %q", got)
	}
}

func TestLargeBodiesHalvesAndManyConnections(t *testing.T) {
	t.Parallel()
	ca := certtest.NewCA("ca")
	dir := installation(t, map[string]Settings{"o1": {CA: ca.PEM, ServerName: "a.example", DNSNames: []string{"a.example"}}})
	serve(t, dir)
	at, _ := endpoint(t, &tls.Config{Certificates: []tls.Certificate{ca.Issue("a.example").TLS()}})
	if got := ask(t, dir, "o1", at, strings.Repeat("x", 1<<20)); got != fmt.Sprint(1<<20, " a.example") {
		t.Errorf("a megabyte: %q", got)
	}
	var wrong atomic.Int64
	var done sync.WaitGroup
	for range 500 {
		done.Go(func() {
			if ask(t, dir, "o1", at, "hello") != "5 a.example" {
				wrong.Add(1)
			}
		})
	}
	done.Wait()
	if wrong.Load() > 0 {
		t.Errorf("%d of 500 were wrong", wrong.Load())
	}
	// One that hears the end before it answers.
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{ca.Issue("a.example").TLS()}})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		text, _ := io.ReadAll(conn)
		_, _ = conn.Write(append([]byte("heard "), text...))
	}()
	conn, err := dial(t, dir, "o1", netip.MustParseAddrPort(listener.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "all")
	_ = conn.CloseWrite()
	if text, err := io.ReadAll(conn); string(text) != "heard all" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

func TestTheProcessIsRestartedAdoptedAndStopped(t *testing.T) {
	t.Parallel()
	ca := certtest.NewCA("ca")
	dir := installation(t, map[string]Settings{"o1": {CA: ca.PEM, ServerName: "a.example", DNSNames: []string{"a.example"}}})
	at, _ := endpoint(t, &tls.Config{Certificates: []tls.Certificate{ca.Issue("a.example").TLS()}})
	supervisor := func() *Supervisor {
		return &Supervisor{Command: []string{"/usr/bin/env", "ORIGINATE=" + dir, os.Args[0]}, Dir: dir, Log: slog.New(slog.DiscardHandler)}
	}
	s := supervisor()
	defer s.Stop()
	if err := s.Ensure(); err != nil {
		t.Fatal(err)
	}
	first := PID(dir)
	if err := supervisor().Ensure(); err != nil || PID(dir) != first || ask(t, dir, "o1", at, "") != "0 a.example" {
		t.Errorf("%v: %d runs and not %d", err, PID(dir), first)
	}
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if s.Ensure() == nil && PID(dir) != first && ask(t, dir, "o1", at, "") == "0 a.example" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it is not back")
		}
	}
	s.Stop()
	if PID(dir) != 0 {
		t.Error("it runs still")
	}
}
