package haproxy

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Stat is one line of HAProxy's counters: of a proxy (frontend or backend), or of a server.
type Stat struct {
	// Proxy is the section, Server a server of it, or FrontendStat or BackendStat.
	Proxy, Server string
	fields        []string
	columns       map[string]int
}

// What stands for a proxy itself.
const (
	FrontendStat = "FRONTEND"
	BackendStat  = "BACKEND"
)

// Number is a counter by HAProxy's name of it; false if this line has none.
func (s Stat) Number(name string) (float64, bool) {
	at, known := s.columns[name]
	if !known || at >= len(s.fields) || s.fields[at] == "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(s.fields[at], 64)
	return n, err == nil
}

// Stats asks the current worker for all counters.
func (c *Client) Stats(ctx context.Context) ([]Stat, error) {
	answer, err := c.query(ctx, "show stat")
	if err != nil {
		return nil, err
	}
	return parseStats(answer)
}

func parseStats(answer string) ([]Stat, error) {
	reader := csv.NewReader(strings.NewReader(strings.TrimPrefix(answer, "# ")))
	reader.FieldsPerRecord, reader.LazyQuotes = -1, true
	header, err := reader.Read()
	if err != nil || len(header) < 2 {
		return nil, fmt.Errorf("%w: it showed no counters", ErrUnavailable)
	}
	columns := map[string]int{}
	for i, name := range header {
		columns[name] = i
	}
	var all []Stat
	for {
		fields, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: its counters are not readable: %w", ErrUnavailable, err)
		}
		if len(fields) > 1 {
			all = append(all, Stat{Proxy: fields[0], Server: fields[1], fields: fields, columns: columns})
		}
	}
}

// Figures are the numbers that the current worker shows of itself, by its names of them.
func (c *Client) Figures(ctx context.Context) (map[string]float64, error) {
	answer, err := c.query(ctx, "show info")
	if err != nil {
		return nil, err
	}
	figures := map[string]float64{}
	for line := range strings.SplitSeq(answer, "\n") {
		name, value, _ := strings.Cut(line, ": ")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			figures[name] = n
		}
	}
	return figures, nil
}
