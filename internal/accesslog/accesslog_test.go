package accesslog

import (
	"bufio"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestLinesComeAsTheyWereSentEachWithOneEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.sock")
	if err := os.WriteFile(path, nil, 0o644); err != nil { // what an earlier process left
		t.Fatal(err)
	}
	log, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has mode %v, want 0600 (%v)", info.Mode(), err)
	}
	reader, writer := io.Pipe()
	done := make(chan struct{})
	go func() { log.Copy(writer); close(done) }()
	conn, err := net.Dial("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(reader)
	for _, sent := range []string{"one\n", "two", "", "{\"a\": \"ü\"}\n"} {
		if _, err := conn.Write([]byte(sent)); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"one", "two", "{\"a\": \"ü\"}"} {
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("got %q, want %q", lines.Text(), want)
		}
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	<-done
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is still there")
	}
}
