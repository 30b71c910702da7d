package haproxytest

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/internal/table"
)

// Skeleton is a small configuration of the shape that Limpet renders: hosts.map and paths.map lead to slots.
type Skeleton struct {
	// Dir is the installation's folder.
	Dir string
	// Ports are addresses to bind, with their owners.
	Ports []Port
	// Slots is the number of slots.
	Slots int
	// Rules are further lines of the frontends.
	Rules string
	// MaxReloads is mworker-max-reloads.
	MaxReloads int
}

// Port is one frontend.
type Port struct{ Name, Address, Owner string }

// Set renders the skeleton.
func (s Skeleton) Set() files.Set {
	set := files.Set{Maps: map[string]table.Table[files.Entry]{"hosts.map": {}, "paths.map": {}}}
	add := func(name, slot, owner, text string) {
		section := files.Section{Name: name, Slot: slot, Text: text}
		if owner != "" {
			section.Owners = map[int]string{0: owner, 1: owner}
		}
		set.Sections = append(set.Sections, section)
	}
	reloads := s.MaxReloads
	if reloads == 0 {
		reloads = 8
	}
	add("global", "", "", fmt.Sprintf(`global
    stats socket unix@%s mode 600 level admin expose-fd listeners
    hard-stop-after 10s
    mworker-max-reloads %d
    nbthread 2
`, filepath.Join(s.Dir, "run", "admin.sock"), reloads))
	add("defaults", "", "", `defaults
    mode http
    timeout connect 1s
    timeout client 10s
    timeout server 10s
    timeout http-keep-alive 2s
    option idle-close-on-response
    option redispatch 1
    balance roundrobin
    retries 3
`)
	for _, port := range s.Ports {
		add("frontend "+port.Name, "", port.Owner, fmt.Sprintf("frontend %s\n    bind %s\n%s", port.Name, port.Address, rules+s.Rules))
	}
	add("frontend health", "", "", fmt.Sprintf("frontend health\n    bind unix@%s\n", filepath.Join(s.Dir, "run", "health.sock"))+rules)
	add("backend none", "", "", "backend none\n    http-request return status 503\n")
	for i := range s.Slots {
		name := fmt.Sprintf("s%d", i+1)
		add("backend "+name, name, "", "backend "+name+"\n    use-server %[req.hdr(x-pin)] if { req.hdr(x-pin) -m found }\n")
	}
	return set
}

const rules = `    http-request set-var(txn.v) req.hdr(host),map_str(maps/hosts.map)
    http-request return status 404 if !{ var(txn.v) -m found }
    http-request set-var(txn.p) path
    http-request set-var(txn.to) var(txn.v),concat(,txn.p,/\x01),map_beg(maps/paths.map)
    http-request return status 404 if !{ var(txn.to) -m found }
    use_backend %[var(txn.to)]
    default_backend none
`

// Address is a free address of this machine alone.
func Address(t testing.TB) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// Echo is a server that answers with its name.
func Echo(t testing.TB, name string) netip.AddrPort {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(name))
	}))
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String())
}
