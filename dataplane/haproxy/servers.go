package haproxy

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/limpet-gateway/limpet/dataplane/files"
)

// ServerState is what HAProxy says of a server.
type ServerState struct {
	Backend, Name string
	Address       netip.AddrPort
	ID            int32
	Weight        int
	// Maintenance means that it takes no request: it was disabled, or not enabled yet.
	Maintenance bool
}

// maintenance is the bit of srv_admin_state that "disable server" sets.
const maintenance = 0x01

// Servers returns all servers of all backends.
func (c *Client) Servers(ctx context.Context) ([]ServerState, error) {
	answer, err := c.query(ctx, "show servers state")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(answer, "\n")
	if len(lines) < 2 || !strings.HasPrefix(lines[1], "# ") {
		return nil, fmt.Errorf("%w: it said %.80q instead of its servers' states", ErrUnavailable, answer)
	}
	columns := strings.Fields(lines[1])[1:]
	var states []ServerState
	for _, line := range lines[2:] {
		state, err := parseServer(columns, strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("%w: %w in %q", ErrUnavailable, err, line)
		}
		states = append(states, state)
	}
	return states, nil
}

func parseServer(columns, values []string) (ServerState, error) {
	if len(values) < len(columns) {
		return ServerState{}, fmt.Errorf("%d of %d columns", len(values), len(columns))
	}
	row := map[string]string{}
	for i, column := range columns {
		row[column] = values[i]
	}
	number := func(column string) int {
		n, err := strconv.Atoi(row[column])
		if err != nil {
			return -1
		}
		return n
	}
	state := ServerState{
		Backend: row["be_name"], Name: row["srv_name"], ID: int32(number("srv_id")), Weight: number("srv_uweight"),
		Maintenance: number("srv_admin_state")&maintenance != 0,
	}
	// A server behind an internal hop has no IP address.
	if address, err := netip.ParseAddr(row["srv_addr"]); err == nil {
		state.Address = netip.AddrPortFrom(address, uint16(number("srv_port")))
	}
	return state, nil
}

var variableLine = regexp.MustCompile(`value=<(\d+)>`)

// Generation returns the number of the generation that the worker runs; 0 if it says none.
func (c *Client) Generation(ctx context.Context) (int, error) {
	answer, err := c.query(ctx, "get var "+files.GenerationVariable)
	if err != nil {
		return 0, err
	}
	match := variableLine.FindStringSubmatch(answer)
	if match == nil {
		return 0, nil
	}
	return strconv.Atoi(match[1])
}
