package originator

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pires/go-proxyproto"
)

const (
	// tlvType is one of those that the PROXY protocol leaves to applications.
	tlvType = 0xE1
	// headerTimeout bounds HAProxy's header, connectTimeout the connection and handshakeTimeout the handshake.
	headerTimeout    = 5 * time.Second
	connectTimeout   = 5 * time.Second
	handshakeTimeout = 10 * time.Second
	// lingerTimeout bounds how long an endpoint that was told of the end may go on without a byte.
	lingerTimeout = time.Minute
	// maxConnections bounds those at a time; more wait to be accepted.
	maxConnections = 8192
)

// Originator accepts HAProxy's connections.
type Originator struct {
	dir  string
	log  *slog.Logger
	room chan struct{}

	mu      sync.Mutex
	configs map[string]cached // by ID
	open    map[net.Conn]bool
	ended   bool
}

// cached are settings that were read, and what they were made of.
type cached struct {
	text   string
	config *tls.Config
}

// New makes the originator of an installation.
func New(dir string, log *slog.Logger) *Originator {
	return &Originator{
		dir: dir, log: log, room: make(chan struct{}, maxConnections), configs: map[string]cached{}, open: map[net.Conn]bool{},
	}
}

// Listen makes the socket, in the place of one that an earlier process left. Only its owner can connect.
func Listen(path string) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("originator: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("originator: %w", err)
	}
	return listener, nil
}

// Serve accepts connections until ctx ends, then cuts those that are left, and returns when nothing runs any more.
func (o *Originator) Serve(ctx context.Context, listener *net.UnixListener) {
	stop := context.AfterFunc(ctx, func() {
		_ = listener.Close()
		o.end()
	})
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case o.room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		conn, err := listener.AcceptUnix()
		if err != nil {
			<-o.room
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // no file descriptors, most likely
			continue
		}
		running.Go(func() {
			defer func() { <-o.room }()
			o.handle(ctx, conn)
		})
	}
}

// end cuts all connections.
func (o *Originator) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	for conn := range o.open {
		_ = conn.Close()
	}
}

// keep makes sure that a connection ends with the originator, and says whether that has not ended yet.
func (o *Originator) keep(conn net.Conn) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open[conn] = true
	return !o.ended
}

func (o *Originator) drop(conn net.Conn) {
	_ = conn.Close()
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, conn)
}

// handle serves one connection of HAProxy's.
func (o *Originator) handle(ctx context.Context, conn *net.UnixConn) {
	defer o.drop(conn)
	if !o.keep(conn) {
		return
	}
	reader := bufio.NewReader(conn)
	id, endpoint, err := readTarget(conn, reader)
	if err != nil {
		o.log.Warn("a connection says not where it is to go", "error", err)
		return
	}
	remote, err := o.connect(ctx, id, endpoint)
	if err != nil {
		o.log.Warn("an endpoint is not spoken to", "settings", id, "endpoint", endpoint, "error", err)
		return
	}
	defer o.drop(remote)
	if o.keep(remote) {
		exchange(conn, reader, remote)
	}
}

// readTarget reads the PROXY header.
func readTarget(conn *net.UnixConn, reader *bufio.Reader) (id, endpoint string, err error) {
	if err := conn.SetReadDeadline(time.Now().Add(headerTimeout)); err != nil {
		return "", "", err
	}
	header, err := proxyproto.Read(reader)
	if err != nil {
		return "", "", err
	}
	tlvs, err := header.TLVs()
	if err != nil {
		return "", "", err
	}
	for _, tlv := range tlvs {
		if tlv.Type != tlvType {
			continue
		}
		id, at, err := target(string(tlv.Value))
		return id, at.String(), errors.Join(err, conn.SetReadDeadline(time.Time{}))
	}
	return "", "", errors.New("the header has no TLV of ours")
}

// connect returns a connection whose certificate was accepted.
func (o *Originator) connect(ctx context.Context, id, endpoint string) (*tls.Conn, error) {
	config, err := o.config(id)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: connectTimeout}
	raw, err := dialer.DialContext(ctx, "tcp", endpoint)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, config)
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return conn, nil
}

// config reads settings: those of the current generation, at every connection, so that a change counts from the next one on.
func (o *Originator) config(id string) (*tls.Config, error) {
	text, err := os.ReadFile(filepath.Join(o.dir, "current", FileName(id)))
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	known := o.configs[id]
	o.mu.Unlock()
	if known.config != nil && known.text == string(text) {
		return known.config, nil
	}
	made, err := config(text)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.configs[id] = cached{string(text), made}
	return made, nil
}

// exchange copies both ways. An end on one side is told to the other, which may go on.
func exchange(local *net.UnixConn, from io.Reader, remote *tls.Conn) {
	up, down := &half{reader: from, conn: local}, &half{reader: remote, conn: remote}
	done := make(chan struct{})
	go func() {
		defer close(done)
		up.to(remote, down)
	}()
	down.to(local, up)
	<-done
}

// half is one direction.
type half struct {
	reader io.Reader
	conn   net.Conn
	last   atomic.Bool // the other direction has ended
}

// Read gives up after lingerTimeout without a byte once this is the last direction: whoever reads may be gone, unnoticed.
func (h *half) Read(p []byte) (int, error) {
	if h.last.Load() {
		_ = h.conn.SetReadDeadline(time.Now().Add(lingerTimeout))
	}
	return h.reader.Read(p)
}

// to copies to the end, and tells it.
func (h *half) to(conn interface {
	net.Conn
	CloseWrite() error
}, other *half) {
	if _, err := io.Copy(conn, h); err != nil || conn.CloseWrite() != nil {
		_ = conn.Close()
		_ = h.conn.Close()
		return
	}
	other.last.Store(true)
	_ = other.conn.SetReadDeadline(time.Now().Add(lingerTimeout))
}
