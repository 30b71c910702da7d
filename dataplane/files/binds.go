package files

import (
	"net/netip"
	"strings"
)

// Bind is an address and port that a section binds.
type Bind struct {
	Owner   string
	Address netip.AddrPort
}

// Binds are the addresses and ports that HAProxy binds for a set, as its bind lines say: what the running one holds is
// read from the same text. Sockets with names, and what is not an address and a port, are left out.
func (s Set) Binds() []Bind {
	var all []Bind
	for _, section := range s.Sections {
		if section.Slot != "" {
			continue
		}
		number := 0
		for line := range strings.Lines(section.Text) {
			if words := strings.Fields(line); len(words) > 1 && words[0] == "bind" {
				for one := range strings.SplitSeq(words[1], ",") {
					if address, is := bindAddress(one); is {
						all = append(all, Bind{section.Owners[number], address})
					}
				}
			}
			number++
		}
	}
	return all
}

func bindAddress(word string) (netip.AddrPort, bool) {
	word = strings.TrimPrefix(strings.TrimPrefix(word, "ipv4@"), "ipv6@")
	if host, port, found := strings.Cut(word, ":"); found && (host == "" || host == "*") {
		word = "0.0.0.0:" + port
	}
	address, err := netip.ParseAddrPort(word)
	return address, err == nil && address.Port() != 0
}
