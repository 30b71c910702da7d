package templates

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/internal/table"
)

// frame is one of HTTP/2's (RFC 9113, 4.1), for what Go's client cannot say.
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	return append(binary.BigEndian.AppendUint32(head, stream), payload...)
}

// literals are header fields without any compression (RFC 7541, 6.2.2).
func literals(fields ...string) []byte {
	var block []byte
	for i := 0; i < len(fields); i += 2 {
		block = append(block, 0)
		for _, text := range fields[i : i+2] {
			block = append(append(block, byte(len(text))), text...)
		}
	}
	return block
}

// readFrame returns the next frame of a stream, and answers SETTINGS on the way.
func readFrame(t *testing.T, conn net.Conn, stream uint32) (kind, flags byte, payload []byte) {
	t.Helper()
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(conn, head); err != nil {
			t.Fatal(err)
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(conn, payload); err != nil {
			t.Fatal(err)
		}
		switch {
		case head[3] == 4 && head[4] == 0:
			_, _ = conn.Write(frame(4, 1, 0, nil))
		case binary.BigEndian.Uint32(head[5:])&0x7fffffff == stream:
			return head[3], head[4], payload
		}
	}
}

func TestAWebSocketOverHTTP2ReachesABackendOfHTTP1(t *testing.T) {
	port := freePort(t)
	run(t, serving(port, []table.Entry[*model.Backend]{backend("ws", upgrading(t))}, to("r", "ws", model.Filters{}), bounded("hop", "ws", 300*time.Millisecond)))
	for _, path := range []string{"/r", "/hop"} {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
		_, _ = conn.Write(frame(4, 0, 0, nil))
		_, _ = conn.Write(frame(1, 4, 1, literals(":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":authority", "a.example", ":path", path,
			"sec-websocket-version", "13")))
		kind, _, payload := readFrame(t, conn, 1)
		if kind != 1 || len(payload) == 0 || payload[0] != 0x88 { // HEADERS that begin with ":status: 200", entry 8 of the static table
			t.Fatalf("%s: frame %d %x", path, kind, payload)
		}
		time.Sleep(500 * time.Millisecond) // longer than the deadline
		_, _ = conn.Write(frame(0, 0, 1, []byte("over HTTP/2")))
		for kind = 1; kind != 0 || len(payload) == 0; {
			kind, _, payload = readFrame(t, conn, 1)
			if kind == 3 {
				t.Fatalf("%s: the stream was reset: %x", path, payload)
			}
		}
		if !bytes.Equal(payload, []byte("over HTTP/2")) {
			t.Errorf("%s: %q", path, payload)
		}
		_ = conn.Close()
	}
}
