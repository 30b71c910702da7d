// Package accesslog takes the lines of HAProxy's access log from a socket and writes them out.
//
// HAProxy sends each line as a datagram and never waits: lines that nobody takes in time are lost, requests are not slowed
// down. It must never change a line, and never end because one could not be written.
package accesslog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
)

// maxLine is the length of the longest line, in bytes; HAProxy is told the same.
const maxLine = 8192

// buffer holds the lines of about a tenth of a second under load.
const buffer = 4 << 20

// Log is a socket that HAProxy sends its lines to.
type Log struct {
	conn *net.UnixConn
	path string
}

// Listen makes the socket, in the place of one that an earlier process left. Only its owner can write to it.
func Listen(path string) (*Log, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("access log: %w", err)
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err == nil {
		_ = conn.SetReadBuffer(buffer) // less will do
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	return &Log{conn, path}, nil
}

// Copy writes every line that comes to w, until Close.
func (l *Log) Copy(w io.Writer) {
	line := make([]byte, maxLine+1)
	for {
		n, err := l.conn.Read(line[:maxLine])
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n == 0 {
			continue
		}
		if line[n-1] != '\n' {
			line[n] = '\n'
			n++
		}
		_, _ = w.Write(line[:n]) // nobody is left to tell
	}
}

// Close ends Copy and removes the socket.
func (l *Log) Close() error { return errors.Join(l.conn.Close(), os.Remove(l.path)) }
