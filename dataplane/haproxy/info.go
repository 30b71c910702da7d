package haproxy

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Info is what the current worker says of itself.
type Info struct {
	Version string
	PID     int
	Uptime  time.Duration
	// Connections are those of clients now, MaxConnections how many there may be.
	Connections, MaxConnections int
	// Stopping means that it finishes what is under way and ends.
	Stopping bool
}

// Info asks the current worker.
func (c *Client) Info(ctx context.Context) (Info, error) {
	answer, err := c.query(ctx, "show info")
	if err != nil {
		return Info{}, err
	}
	said := map[string]string{}
	for line := range strings.SplitSeq(answer, "\n") {
		if name, value, found := strings.Cut(line, ": "); found {
			said[name] = value
		}
	}
	number := func(name string) int {
		n, err := strconv.Atoi(said[name])
		if err != nil {
			return 0
		}
		return n
	}
	info := Info{
		Version: said["Version"], PID: number("Pid"), Uptime: time.Duration(number("Uptime_sec")) * time.Second,
		Connections: number("CurrConns"), MaxConnections: number("Maxconn"), Stopping: number("Stopping") != 0,
	}
	if info.PID == 0 {
		return Info{}, fmt.Errorf("%w: it said %.80q of itself", ErrUnavailable, answer)
	}
	return info, nil
}
