package haproxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy/haproxytest"
)

var samples = []files.Server{
	{Slot: "s1", Name: "plain", Address: "127.0.0.1:9", ID: 1, Weight: 1},
	{Slot: "s1", Name: "drains", Address: "127.0.0.1:9", ID: 2147483647, Weight: 0},
	{Slot: "s2", Name: "six.x_y-z", Address: "[::1]:9", ID: 7, Weight: 256},
	{Slot: "s2", Name: "h2", Address: "127.0.0.2:65535", ID: 8, Weight: 10, Options: "proto h2"},
	{Slot: "s3", Name: "tls", Address: "127.0.0.2:443", ID: 8, Weight: 10, Options: "ssl verify none sni str(a.example) alpn h2,http/1.1"},
}

// TestAServerIsTheSameByItsLineAndByItsCommand compares what HAProxy says of servers that it read from the file with what
// it says of the same ones that were added.
func TestAServerIsTheSameByItsLineAndByItsCommand(t *testing.T) {
	t.Parallel()
	added, read := run(t, skeleton), run(t, func(dir string) files.Set {
		set := skeleton(dir)
		edit := set.Servers.Edit()
		for _, s := range samples {
			edit.Set(files.ServerKey(s.Slot, s.Name), s)
		}
		set.Servers = edit.Table()
		return set
	})
	for _, s := range samples {
		added.exec(AddServer(s), EnableServer(s.Slot, s.Name))
	}
	for _, what := range []string{"show servers state", "show stat"} {
		a, b := added.comparable(what), read.comparable(what)
		if len(a) != len(samples) || !slices.Equal(a, b) {
			t.Errorf("%s: added\n%s\nread\n%s", what, strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
	}
	states, err := read.client.Servers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		if !slices.ContainsFunc(states, func(is ServerState) bool {
			return is.Backend == s.Slot && is.Name == s.Name && is.Address.String() == s.Address && is.ID == s.ID && is.Weight == s.Weight && !is.Maintenance
		}) {
			t.Errorf("%+v is not in %+v", s, states)
		}
	}
}

// volatile columns are times, and the counter of health checks, which counts from nothing for a server that was added
// (none of ours is checked).
var volatile = []string{"srv_time_since_last_change", "lastchg", "srv_check_health"}

// comparable returns the rows about servers of slots, without what may differ.
func (l *lab) comparable(what string) []string {
	l.Helper()
	answer, err := l.client.query(l.Context(), what)
	if err != nil {
		l.Fatal(err)
	}
	separator := " "
	if what == "show stat" {
		separator = ","
	}
	var columns, rows []string
	for line := range strings.SplitSeq(answer, "\n") {
		if rest, is := strings.CutPrefix(line, "# "); is {
			columns = strings.Split(rest, separator)
			continue
		}
		values := strings.Split(line, separator)
		if len(values) < len(columns) || columns == nil || strings.Contains(line, "BACKEND") || strings.Contains(line, "FRONTEND") {
			continue
		}
		var row []string
		for i, column := range columns {
			if !slices.Contains(volatile, column) {
				row = append(row, column+"="+values[i])
			}
		}
		rows = append(rows, strings.Join(row, " "))
	}
	slices.Sort(rows)
	return rows
}

func TestServersChangeAtRunTime(t *testing.T) {
	t.Parallel()
	l := run(t, skeleton)
	s := files.Server{Slot: "s1", Name: "a", Address: "127.0.0.1:9", ID: 1, Weight: 5}
	l.exec(AddServer(s), EnableServer("s1", "a"), SetWeight("s1", "a", 0), SetAddress("s1", "a", "[::1]:10"), SetAddress("s1", "a", "[::1]:10"),
		SetAddress("s1", "a", "[::1]:11"), SetAddress("s1", "a", "127.0.0.2:11"), SetWeight("s1", "a", 7))
	state := l.server("a")
	if state.Address.String() != "127.0.0.2:11" || state.Weight != 7 || state.Maintenance {
		t.Errorf("state is %+v", state)
	}
	var rejected *RejectedError
	for _, command := range []Command{
		AddServer(s), DelServer("s1", "a"), DelServer("s1", "b"), SetWeight("s9", "a", 1), SetAddress("s9", "a", "127.0.0.1:1"),
	} {
		if err := l.client.Exec(t.Context(), command); !errors.As(err, &rejected) {
			t.Errorf("%s: %v, want a refusal", command, err)
		}
	}
	l.exec(DisableServer("s1", "a"))
	if !l.server("a").Maintenance {
		t.Error("a disabled server is not in maintenance")
	}
	l.exec(DelServer("s1", "a"), AddServer(s))
	if !l.server("a").Maintenance {
		t.Error("an added server is not in maintenance before it is enabled")
	}
}

func (l *lab) server(name string) ServerState {
	l.Helper()
	states, err := l.client.Servers(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	for _, state := range states {
		if state.Name == name {
			return state
		}
	}
	l.Fatalf("no server %s in %+v", name, states)
	return ServerState{}
}

func TestAServerWithALiveConnectionIsNotDeleted(t *testing.T) {
	t.Parallel()
	address := haproxytest.Address(t)
	l := run(t, func(dir string) files.Set {
		return haproxytest.Skeleton{Dir: dir, Slots: 1, Ports: []haproxytest.Port{{Name: "p1", Address: address}}}.Set()
	})
	release := make(chan struct{})
	backend := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-release
		_, _ = w.Write([]byte("done"))
	})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = backend.Serve(listener) }()
	t.Cleanup(func() { _ = backend.Close() })
	s := files.Server{Slot: "s1", Name: "a", Address: listener.Addr().String(), ID: 1, Weight: 1}
	l.exec(AddServer(s), EnableServer("s1", "a"), AddMap(paths, "v/", "s1"), AddMap("hosts.map", "h", "v"))

	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/", nil)
	request.Host = "h"
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	l.exec(DisableServer("s1", "a"))
	var rejected *RejectedError
	if err := l.client.Exec(t.Context(), DelServer("s1", "a")); !errors.As(err, &rejected) {
		t.Errorf("%v, want a refusal", err)
	}
	close(release)
	body := make([]byte, 10)
	n, _ := response.Body.Read(body)
	if string(body[:n]) != "done" {
		t.Errorf("the request under way was cut: %q", body[:n])
	}
	l.within(5*time.Second, "the server is deleted", func() bool {
		return l.client.Exec(context.Background(), DelServer("s1", "a")) == nil
	})
}
