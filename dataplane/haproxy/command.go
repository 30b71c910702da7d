package haproxy

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/limpet-gateway/limpet/dataplane/files"
)

// Command is one command for the runtime socket. Only the functions of this file make one, and they quote what they are
// given; arguments that no quoting helps make a command that Exec refuses to send.
type Command struct {
	text  string
	shown string   // what an error may show
	says  []string // what a success may begin with; nothing means silence
	err   error
}

// Err says why the command will not be sent; ErrTooLong that it is right, but only ReplaceMap can do it.
func (c Command) Err() error { return c.err }

// String is the command without values, for logs and errors.
func (c Command) String() string { return c.shown }

// AddMap adds an entry. HAProxy does not look whether there is one already: the first one counts.
func AddMap(file, key, value string) Command { return mapCommand("add", file, key, value) }

// SetMap changes the value of an entry, in one step.
func SetMap(file, key, value string) Command { return mapCommand("set", file, key, value) }

// DelMap removes an entry.
func DelMap(file, key string) Command { return mapCommand("del", file, key, "-") }

func mapCommand(verb, file, key, value string) Command {
	c := Command{shown: fmt.Sprintf("%s map %s %q", verb, mapName(file), key)}
	if c.err = files.CheckEntry(key, value); c.err != nil {
		return c
	}
	c.text = verb + " map " + quote(mapName(file)) + " " + quote(key)
	if verb != "del" {
		c.text += " " + quote(value)
	}
	if len(c.text) > maxBatch {
		c.err = fmt.Errorf("%s: %w", c.shown, ErrTooLong)
	}
	return c
}

// mapName is what HAProxy calls a map: the file's path as the configuration names it.
func mapName(file string) string { return files.MapFolder + "/" + file }

// AddServer adds a server; it starts in maintenance.
func AddServer(s files.Server) Command {
	c := serverCommand("add server", s.Slot, s.Name, " "+s.Arguments(), "New server registered.")
	if err := s.Check(); err != nil {
		c.err = err
	}
	return c
}

// EnableServer ends a server's maintenance.
func EnableServer(slot, name string) Command { return serverCommand("enable server", slot, name, "") }

// DisableServer puts a server into maintenance: no new request reaches it, those under way go on.
func DisableServer(slot, name string) Command { return serverCommand("disable server", slot, name, "") }

// SetWeight changes a server's weight; 0 drains it.
func SetWeight(slot, name string, weight int) Command {
	return serverCommand("set server", slot, name, " weight "+strconv.Itoa(weight))
}

// SetAddress changes where a server is.
func SetAddress(slot, name, address string) Command {
	at, err := netip.ParseAddrPort(address)
	c := serverCommand("set server", slot, name, fmt.Sprintf(" addr %s port %d", at.Addr(), at.Port()),
		"nothing changed", "IP changed from", "port changed from", "no need to change")
	if err != nil {
		c.err = fmt.Errorf("server %s/%s: %q is not an IP address and a port", slot, name, address)
	}
	return c
}

// DelServer deletes a server in maintenance; it is refused while a connection is left.
func DelServer(slot, name string) Command {
	return serverCommand("del server", slot, name, "", "Server deleted.")
}

// ShutdownSessions cuts the connections that a server has left.
func ShutdownSessions(slot, name string) Command {
	return serverCommand("shutdown sessions server", slot, name, "")
}

func serverCommand(verb, slot, name, arguments string, says ...string) Command {
	text := verb + " " + slot + "/" + name + arguments
	c := Command{text: text, shown: text, says: says}
	probe := files.Server{Slot: slot, Name: name, Address: "127.0.0.1:1", ID: 1}
	c.err = probe.Check()
	return c
}

// Severities of replies: up to worstNotice they are complaints.
const (
	silent      = -1
	worstNotice = 4
)

// check says whether a reply is what success looks like.
func (c Command) check(reply string) *RejectedError {
	_, words := parseReply(reply)
	if words == "" && len(c.says) == 0 {
		return nil
	}
	for _, start := range c.says {
		if strings.HasPrefix(words, start) {
			return nil
		}
	}
	return &RejectedError{Command: c.shown, Reply: redact(words)}
}

// parseReply cuts the severity off: "[3]: No such server.".
func parseReply(reply string) (severity int, words string) {
	if len(reply) > 4 && reply[0] == '[' && reply[2] == ']' && reply[1] >= '0' && reply[1] <= '7' {
		return int(reply[1] - '0'), strings.TrimSpace(reply[4:])
	}
	return silent, strings.TrimSpace(reply)
}

func isUnknownCommand(words string) bool { return strings.HasPrefix(words, "Unknown command") }

// quote makes a word of any text without control characters. The socket ends a word at a blank, a command at a
// semicolon, begins a payload at <<, and takes the character after a backslash as it is.
func quote(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch text[i] {
		case ' ', ';', '\\', '<':
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
