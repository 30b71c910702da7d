package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func portsMap(version string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "limpet-system", Name: "ports", ResourceVersion: version}, Data: data}
}

func TestPortTableIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	holder := NewPortHolder(types.NamespacedName{Namespace: "default", Name: "gw"}, 80)
	freed := NewPortHolder(types.NamespacedName{Namespace: "default", Name: "old"}, 443)
	table := NewPortTable("", map[uint16]PortEntry{10000: {Holder: holder}, 10001: {Holder: freed, Free: time.Unix(1764554400, 0)}})

	data := table.Data()
	if data["10000"] != "default/gw:80" || data["10001"] != "default/old:443 free 1764554400" {
		t.Errorf("the ConfigMap holds %v", data)
	}
	read := ReadPorts(portsMap("7", data), nil)
	if !read.EqualEntries(table) || read.Version() != "7" {
		t.Errorf("read %v at %q, want %v", read.Data(), read.Version(), data)
	}
	if port := read.Port(holder); port != 10000 {
		t.Errorf("default/gw:80 has port %d, want 10000", port)
	}
	if port, last := read.Port(freed), read.Last(freed); port != 0 || last != 10001 {
		t.Errorf("a freed port is %d and was %d, want 0 and 10001", port, last)
	}
}

func TestPortTableStaysWhileItsConfigMapDoes(t *testing.T) {
	t.Parallel()
	first := ReadPorts(portsMap("1", map[string]string{"10000": "default/gw:80"}), nil)
	if again := ReadPorts(portsMap("1", map[string]string{"10000": "default/gw:80"}), first); again != first {
		t.Error("an unchanged ConfigMap made another table")
	}
	gone := ReadPorts(nil, first)
	if !gone.EqualEntries(first) || gone.Version() != "" {
		t.Errorf("a deleted ConfigMap left %v at %q, want what it held, without a version", gone.Data(), gone.Version())
	}
	if again := ReadPorts(nil, gone); again != gone {
		t.Error("a ConfigMap that is still gone made another table")
	}
	if none := ReadPorts(nil, nil); none != nil || none.Port("default/gw:80") != 0 || len(none.Data()) != 0 {
		t.Error("a table that was never seen holds something")
	}
}

func TestPortTableIgnoresWhatIsNoEntry(t *testing.T) {
	t.Parallel()
	table := ReadPorts(portsMap("1", map[string]string{
		"9999": "a/b:80", "30000": "a/b:80", "x": "a/b:80", "10001": "", "10002": "a/b:80 since ever", "10003": "a/b:80 free x", "10004": "words",
		"10009": "a/b:80 free 5", "10008": "a/b:80", "10010": "a/b:80",
	}), nil)
	if len(table.Data()) != 3 || table.Port("a/b:80") != 10008 {
		t.Errorf("read %v, and port %d", table.Data(), table.Port("a/b:80"))
	}
}

func TestPortHolderOfALongNameIsShortAndItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[PortHolder]bool{}
	entries := map[uint16]PortEntry{}
	for _, namespace := range []string{"default", strings.Repeat("n", 63)} {
		for _, name := range []string{strings.Repeat("a", 253), strings.Repeat("a", 252) + "b", strings.Repeat("a", 252)} {
			holder := NewPortHolder(types.NamespacedName{Namespace: namespace, Name: name}, 65535)
			if len(holder) > maxHolder+len(":65535") || seen[holder] {
				t.Errorf("%s for %q", holder, name)
			}
			seen[holder] = true
			entries[uint16(FirstPort+len(entries))] = PortEntry{Holder: holder}
		}
	}
	table := NewPortTable("", entries)
	if read := ReadPorts(portsMap("1", table.Data()), nil); !read.EqualEntries(table) {
		t.Errorf("read %v, want %v", read.Data(), table.Data())
	}
}
