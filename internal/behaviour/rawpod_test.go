package behaviour

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// connecting gives the World a Service with that many pods that speak no HTTP: "<name>-1" and so on; in TLS if a configuration
// is given.
func connecting(name string, count int, config *tls.Config) option {
	return func(w *World) {
		s := &service{name: name, raw: true, tls: config}
		w.services = append(w.services, s)
		for range count {
			w.addPod(w.t, s)
		}
	}
}

// serveRaw takes connections: the pod speaks first, and says who it is, how it is spoken to and by whom.
func (p *pod) serveRaw(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		p.connections.Add(1)
		go p.talk(conn)
	}
}

// talk sends back what it gets, and when the client has ended, how much that was.
func (p *pod) talk(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	how, to := "plain", conn
	if p.tls != nil {
		encrypted := tls.Server(conn, p.tls)
		if encrypted.Handshake() != nil {
			return
		}
		how, to = "TLS for "+encrypted.ConnectionState().ServerName, encrypted
	}
	if _, err := fmt.Fprintf(to, "%s %s\n", p.name, how); err != nil {
		return
	}
	count, _ := io.Copy(to, to)
	time.Sleep(time.Duration(p.wait.Load()))
	_, _ = fmt.Fprintf(to, "%d bytes\n", count)
	if encrypted, is := to.(*tls.Conn); is {
		_ = encrypted.CloseWrite()
	}
}

// talk is a client's connection.
type talk struct {
	net.Conn

	lines *bufio.Reader
	// greeting is what the pod said first.
	greeting string
}

// connection is how a client connects.
type connection struct {
	port int
	// sni is a server name; with it, TLS is spoken.
	sni  string
	from netip.Addr
	// own is shown if a certificate is asked for.
	own *tls.Config
}

// talk connects, and waits for the pod's greeting.
func (w *World) talk(t testing.TB, to connection) (*talk, error) {
	t.Helper()
	dialer := &net.Dialer{}
	if to.from.IsValid() {
		dialer.LocalAddr = &net.TCPAddr{IP: to.from.AsSlice()}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "tcp", w.at(to.port))
	if err != nil {
		t.Fatal(err) // the port is there in every test
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if to.sni != "" {
		config := &tls.Config{ServerName: to.sni, InsecureSkipVerify: true}
		if to.own != nil {
			config.Certificates = to.own.Certificates
		}
		conn = tls.Client(conn, config)
	}
	talking := &talk{Conn: conn, lines: bufio.NewReader(conn)}
	talking.greeting, err = talking.lines.ReadString('\n')
	talking.greeting = strings.TrimSpace(talking.greeting)
	return talking, err
}

// greeted is what a client hears first, or how it ends.
func (w *World) greeted(t testing.TB, to connection) string {
	t.Helper()
	talking, err := w.talk(t, to)
	_ = talking.Close()
	switch {
	case err == nil:
		return talking.greeting
	case errors.Is(err, io.EOF) || strings.Contains(err.Error(), "reset by peer"):
		return "closed"
	}
	return err.Error()
}

// say sends a line and waits for it to come back.
func (c *talk) say(t testing.TB, text string) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	_, err := io.WriteString(c, text+"\n")
	if err != nil {
		t.Errorf("%s: to say %q: %v", c.greeting, text, err)
		return
	}
	if got, err := c.lines.ReadString('\n'); got != text+"\n" {
		t.Errorf("%s: %q instead of %q: %v", c.greeting, got, text, err)
	}
}
