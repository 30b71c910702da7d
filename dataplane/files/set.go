// Package files holds the rendered configuration as a set of fragments, and keeps such sets on disk as generations.
//
// Rendering puts fragments in, comparing two sets says what must change, and a generation is the same fragments written
// as the files that HAProxy reads. A fragment is one thing that can change on its own: a section, a map's entry, a
// server, a certificate. It must never hold text that was not quoted for its file, and never know why a fragment is there.
package files

import "github.com/limpet-gateway/limpet/internal/table"

// Set is one complete rendered configuration. It is a value: edits give a new set.
type Set struct {
	// Sections are haproxy.cfg's sections without their servers, in file order. Any difference needs a reload.
	Sections []Section
	// Assets are further files by name. Those in the folders that FolderOf knows (certificates, lists of them, CA bundles)
	// can change while HAProxy runs; others (Lua, keys) need a reload.
	Assets table.Table[Asset]
	// Maps are the map files by name ("paths.map"), their entries by key.
	Maps map[string]table.Table[Entry]
	// Servers are the servers of all slots, by ServerKey.
	Servers table.Table[Server]
}

// Section is one section of haproxy.cfg.
type Section struct {
	// Name is the header line without the keyword's arguments that may change: "backend s1".
	Name string
	// Text is all its lines, each ended by a newline; the servers of a slot are added when it is written.
	Text string
	// Slot is set for a backend that takes Servers.
	Slot string
	// Owners tells whose fault a refused line is, by line within Text, counted from 0. Absent lines are Limpet's own.
	Owners map[int]string
}

// Asset is a file beside haproxy.cfg.
type Asset struct {
	Owner string
	Text  string
	// Secret files hold key material: mode 0600, and never shown.
	Secret bool
}

// Entry is one line of a map file: the key is the entry's key in its table. A line is "key value".
type Entry struct {
	Owner string
	Value string
}

// Server is one server of a slot. Its line in the file and its run-time command come from these fields alone.
type Server struct {
	Owner string
	// Slot is the backend section, Name the server's.
	Slot, Name string
	// Address is "ip:port", an IPv6 address in brackets; "hostname:port" for one that HAProxy asks DNS for; "unix@/path".
	Address string
	ID      int32
	// Weight 0 drains: sessions stay, new ones go elsewhere. Drain has no other form in a file.
	Weight int
	// Options are the remaining keywords as both forms take them: "proto h2"; "" for plain HTTP/1.1.
	Options string
}

// ServerKey is a server's key in Set.Servers.
func ServerKey(slot, name string) string { return slot + "/" + name }
