package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Container ports that Gateways get.
const (
	FirstPort = 10000
	LastPort  = 29999
)

// PortTable says which port of Limpet's pods belongs to which port of which Gateway. It is read from a ConfigMap in
// Limpet's own namespace, where no tenant can edit it: nobody gets at another one's traffic by editing a Service. It is
// immutable, and nil is an empty one.
//
// The ConfigMap has a key for each container port, so that none can be given twice. The value is the holder, as
// "default/gw:80", and since when it is free, in seconds: "default/gw:80 free 1764554400".
type PortTable struct {
	version  string
	entries  map[uint16]PortEntry
	byHolder map[PortHolder]uint16
}

// PortHolder names a port of a Gateway in the table.
type PortHolder string

// PortEntry is who has a container port, and since when he has no more use for it; zero if he has.
type PortEntry struct {
	Holder PortHolder
	Free   time.Time
}

// maxHolder keeps a table of all ports below the limit of a ConfigMap, 1 MiB.
const maxHolder = 40

// NewPortHolder names a Gateway's port. Of a long name only the beginning is shown, which may be one of the namespace alone.
func NewPortHolder(gateway types.NamespacedName, port uint16) PortHolder {
	name := gateway.String()
	if len(name) > maxHolder {
		hash := sha256.Sum256([]byte(name))
		name = name[:maxHolder-17] + "~" + hex.EncodeToString(hash[:8])
	}
	return PortHolder(name + ":" + strconv.Itoa(int(port)))
}

// NewPortTable returns a table with the given entries. version is the ConfigMap's resourceVersion, "" where there is none.
func NewPortTable(version string, entries map[uint16]PortEntry) *PortTable {
	t := &PortTable{version: version, entries: maps.Clone(entries), byHolder: make(map[PortHolder]uint16, len(entries))}
	for _, port := range slices.Sorted(maps.Keys(entries)) {
		entry := entries[port]
		if before, twice := t.byHolder[entry.Holder]; !twice || !t.entries[before].Free.IsZero() && entry.Free.IsZero() {
			t.byHolder[entry.Holder] = port
		}
	}
	return t
}

// ReadPorts reads the table of a ConfigMap. The last table stays, as the very pointer, while the ConfigMap does not
// change. When there is no ConfigMap (nil), the last table goes on without a version, and waits to be written again: whoever
// deletes it moves nobody's port.
func ReadPorts(source *corev1.ConfigMap, last *PortTable) *PortTable {
	switch {
	case source == nil && (last == nil || last.version == ""):
		return last
	case source == nil:
		return &PortTable{entries: last.entries, byHolder: last.byHolder}
	case last != nil && source.ResourceVersion != "" && last.version == source.ResourceVersion:
		return last
	}
	entries := make(map[uint16]PortEntry, len(source.Data))
	for key, value := range source.Data {
		port, err := strconv.ParseUint(key, 10, 16)
		entry, valid := parseEntry(value)
		if err == nil && valid && FirstPort <= port && port <= LastPort {
			entries[uint16(port)] = entry
		}
	}
	return NewPortTable(source.ResourceVersion, entries)
}

// parseEntry takes what PortEntry.String gives; what somebody else wrote is as if it were not there.
func parseEntry(value string) (PortEntry, bool) {
	words := strings.Split(value, " ")
	entry := PortEntry{Holder: PortHolder(words[0])}
	if !strings.Contains(words[0], ":") {
		return entry, false
	}
	switch {
	case len(words) == 1:
		return entry, true
	case len(words) == 3 && words[1] == freeMark:
		seconds, err := strconv.ParseInt(words[2], 10, 64)
		entry.Free = time.Unix(seconds, 0)
		return entry, err == nil
	}
	return entry, false
}

const freeMark = "free"

// String is the entry as the ConfigMap has it.
func (e PortEntry) String() string {
	if e.Free.IsZero() {
		return string(e.Holder)
	}
	return string(e.Holder) + " " + freeMark + " " + strconv.FormatInt(e.Free.Unix(), 10)
}

// Version is the resourceVersion of the ConfigMap that the table was read from; "" if there is none.
func (t *PortTable) Version() string {
	if t == nil {
		return ""
	}
	return t.version
}

// Port is the container port of a Gateway's port; 0 if it has none.
func (t *PortTable) Port(holder PortHolder) uint16 {
	if t == nil {
		return 0
	}
	port := t.byHolder[holder]
	if !t.entries[port].Free.IsZero() {
		return 0
	}
	return port
}

// Last is the container port that a Gateway's port has or had, 0 if none is known.
func (t *PortTable) Last(holder PortHolder) uint16 {
	if t == nil {
		return 0
	}
	return t.byHolder[holder]
}

// All are the ports that are or were given away, with who has them, in no order.
func (t *PortTable) All() iter.Seq2[uint16, PortEntry] {
	if t == nil {
		return maps.All(map[uint16]PortEntry(nil))
	}
	return maps.All(t.entries)
}

// Data is what the ConfigMap is to hold.
func (t *PortTable) Data() map[string]string {
	data := make(map[string]string)
	for port, entry := range t.All() {
		data[strconv.Itoa(int(port))] = entry.String()
	}
	return data
}

// EqualEntries says whether both give the same ports to the same holders.
func (t *PortTable) EqualEntries(other *PortTable) bool {
	return t == other || t != nil && other != nil && maps.EqualFunc(t.entries, other.entries, func(a, b PortEntry) bool {
		return a.Holder == b.Holder && a.Free.Equal(b.Free)
	})
}
