package behaviour

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// request is what a client sends, to the byte.
type request struct {
	// method is GET by default.
	method string
	// host is the Host header, target the request's target: a path with its query.
	host, target string
	// headers are whole lines: "Name: value".
	headers []string
	body    string
	// raw is the whole request instead of all of the above.
	raw string

	// port is the listener's, 80 by default, or 443 with TLS.
	port int
	// from is the client's address, if it matters.
	from netip.Addr
	// tls speaks TLS with the SNI, host by default; "-" sends none.
	tls  bool
	sni  string
	alpn []string
	// client is what the client shows if it is asked for a certificate.
	client *shower
	// before is what a load balancer sends first, in plain text.
	before string
	// patience is how long the client waits, 10 s by default.
	patience time.Duration
}

// get is a request for "<host>/<path>" with header lines.
func get(url string, headers ...string) request {
	host, path, _ := strings.Cut(url, "/")
	return request{host: host, target: "/" + path, headers: headers}
}

// answer is what comes back.
type answer struct {
	status int
	header http.Header
	body   string
	// echo is what a pod said of the request.
	echo echo
	took time.Duration
	// err is that of a connection without an answer; closed says that the answer is the connection's last.
	err    error
	closed bool
	tls    *tls.ConnectionState
}

// outcome is in one word what became of a request: the name of the Service that answered, or the status.
func (a answer) outcome() string {
	switch {
	case a.err != nil:
		return "no answer: " + a.err.Error()
	case a.echo.Service != "" && a.status == http.StatusOK:
		return a.echo.Service
	case a.header.Get("Location") != "":
		return fmt.Sprintf("%d %s", a.status, a.header.Get("Location"))
	}
	return fmt.Sprint(a.status)
}

// text is the request as it goes out.
func (r request) text() string {
	if r.raw != "" {
		return r.raw
	}
	method := r.method
	if method == "" {
		method = "GET"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", method, r.target)
	if r.host != "" {
		fmt.Fprintf(&b, "Host: %s\r\n", r.host)
	}
	for _, line := range r.headers {
		b.WriteString(line + "\r\n")
	}
	if r.body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.body))
	}
	b.WriteString("Connection: close\r\n\r\n" + r.body)
	return b.String()
}

// ask sends a request on a connection of its own.
func (w *World) ask(t testing.TB, r request) answer {
	t.Helper()
	start := time.Now()
	patience := r.patience
	if patience == 0 {
		patience = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := w.dial(ctx, r)
	if err != nil {
		return answer{err: err, took: time.Since(start)}
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(start.Add(patience))
	if _, err := io.WriteString(conn, r.text()); err != nil {
		return answer{err: err, took: time.Since(start)}
	}
	a := read(bufio.NewReader(conn), r.method)
	a.took = time.Since(start)
	if secure, is := conn.(*tls.Conn); is {
		state := secure.ConnectionState()
		a.tls = &state
	}
	return a
}

// read reads one answer.
func read(from *bufio.Reader, method string) answer {
	res, err := http.ReadResponse(from, &http.Request{Method: method})
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	a := answer{status: res.StatusCode, header: res.Header, body: string(body), err: err, closed: res.Close}
	if res.Header.Get("Pod") != "" && len(body) > 0 {
		a.err = errors.Join(err, json.Unmarshal(body, &a.echo))
	}
	return a
}

// at is the address of a listener's port.
func (w *World) at(port int) string {
	return netip.AddrPortFrom(w.address(), uint16(port+portOffset)).String()
}

func (w *World) dial(ctx context.Context, r request) (net.Conn, error) {
	dialer := &net.Dialer{}
	if r.from.IsValid() {
		dialer.LocalAddr = &net.TCPAddr{IP: r.from.AsSlice()}
	}
	port := r.port
	switch {
	case port == 0 && r.tls:
		port = 443
	case port == 0:
		port = 80
	}
	conn, err := dialer.DialContext(ctx, "tcp", w.at(port))
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, r.before); err != nil {
		return nil, err
	}
	if !r.tls {
		return conn, nil
	}
	secure := tls.Client(conn, r.config())
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// config takes every certificate: tests look at which one came.
func (r request) config() *tls.Config {
	config := &tls.Config{ServerName: r.sni, NextProtos: r.alpn, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}
	if r.client != nil {
		config.GetClientCertificate = r.client.show
	}
	switch r.sni {
	case "":
		config.ServerName, _, _ = strings.Cut(r.host, ":")
	case "-":
		config.ServerName = ""
	}
	return config
}

// ok sends a request that a pod must answer.
func (w *World) ok(t testing.TB, r request) answer {
	t.Helper()
	a := w.ask(t, r)
	if a.err != nil || a.status != http.StatusOK || a.echo.Pod == "" {
		t.Fatalf("%s %s%s: %s, want an answer from a pod", r.method, r.host, r.target, a.outcome())
	}
	return a
}

// eventually asks until the outcome is what is wanted.
func (w *World) eventually(t testing.TB, r request, want string) {
	t.Helper()
	var got string
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if got = w.ask(t, r).outcome(); got == want {
			return
		}
	}
	t.Fatalf("%s%s: %s, want %s", r.host, r.target, got, want)
}

// count asks many times, some at a time, and counts what name says of each answer.
func (w *World) count(t testing.TB, times int, r request, name func(answer) string) map[string]int {
	t.Helper()
	const atOnce = 4
	counts := map[string]int{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for i := range atOnce {
		wait.Go(func() {
			for range (times + i) / atOnce {
				name := name(w.ask(t, r))
				mu.Lock()
				counts[name]++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return counts
}

// seen are the lines of a header as the pod got them.
func (a answer) seen(name string) []string { return a.echo.Header.Values(name) }

// row is one request with its outcome; rows of a table are named by what they show.
type row struct {
	name string
	request
	want string
}

// check asks all rows.
func (w *World) check(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Helper()
			if got := w.ask(t, r.request).outcome(); got != r.want {
				t.Errorf("%s: %s, want %s", firstLine(r.text()), got, r.want)
			}
		})
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\r\n")
	return line
}

// client keeps its connection while HAProxy does.
type client struct {
	world *World
	conn  net.Conn
	from  *bufio.Reader
}

func (w *World) keepAlive(t testing.TB) *client {
	t.Helper()
	c := &client{world: w}
	t.Cleanup(c.close)
	return c
}

func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

func (c *client) ask(t testing.TB, r request) answer {
	t.Helper()
	if c.conn == nil {
		conn, err := c.world.dial(t.Context(), r)
		if err != nil {
			return answer{err: err}
		}
		c.conn, c.from = conn, bufio.NewReader(conn)
	}
	_ = c.conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c.conn, strings.Replace(r.text(), "Connection: close\r\n", "", 1)); err != nil {
		c.close()
		return answer{err: err}
	}
	a := read(c.from, r.method)
	if a.err != nil || a.closed {
		c.close()
	}
	return a
}
