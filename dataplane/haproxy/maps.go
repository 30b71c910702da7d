package haproxy

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"

	"github.com/limpet-gateway/limpet/dataplane/files"
)

// MapEntry is one entry of a map in HAProxy.
type MapEntry struct{ Key, Value string }

var (
	mapLine        = regexp.MustCompile(`(?m)^\S+ \(` + files.MapFolder + `/([^)]+)\) .* entry_cnt=(\d+)$`)
	newVersionLine = regexp.MustCompile(`New version created: (\d+)`)
)

// MapSizes returns the number of entries of every map, by file name.
func (c *Client) MapSizes(ctx context.Context) (map[string]int, error) {
	answer, err := c.query(ctx, "show map")
	if err != nil {
		return nil, err
	}
	sizes := map[string]int{}
	for _, match := range mapLine.FindAllStringSubmatch(answer, -1) {
		if sizes[match[1]], err = strconv.Atoi(match[2]); err != nil {
			return nil, err
		}
	}
	return sizes, nil
}

// ShowMap returns a map's entries, in HAProxy's order.
func (c *Client) ShowMap(ctx context.Context, file string) ([]MapEntry, error) {
	return c.showMap(ctx, quote(mapName(file)))
}

func (c *Client) showMap(ctx context.Context, which string) ([]MapEntry, error) {
	answer, err := c.query(ctx, "show map "+which)
	if err != nil || answer == "" {
		return nil, err
	}
	var entries []MapEntry
	for line := range strings.SplitSeq(answer, "\n") {
		_, rest, _ := strings.Cut(line, " ")
		key, value, found := strings.Cut(rest, " ")
		if !found || !strings.HasPrefix(line, "0x") {
			return nil, fmt.Errorf("%w: it said %q instead of an entry of %s", ErrUnavailable, line, which)
		}
		entries = append(entries, MapEntry{key, value})
	}
	return entries, nil
}

// ReplaceMap gives a map new content, in one step. It is verified before it takes effect.
func (c *Client) ReplaceMap(ctx context.Context, file string, entries iter.Seq[MapEntry]) error {
	name := quote(mapName(file))
	answer, err := c.query(ctx, "prepare map "+name)
	if err != nil {
		return err
	}
	match := newVersionLine.FindStringSubmatch(answer)
	if match == nil {
		return &RejectedError{Command: "prepare map " + name, Reply: answer}
	}
	version := "@" + match[1] + " " + name
	if err := c.fillMap(ctx, version, entries); err != nil {
		_, cleared := c.line(ctx, "clear map "+version)
		return errors.Join(err, cleared)
	}
	replies, err := c.line(ctx, "commit map "+version)
	if err == nil && replies[0] != "" {
		return &RejectedError{Command: "commit map " + version, Reply: replies[0]}
	}
	return err
}

// fillMap loads entries into a version of a map and reads them back.
func (c *Client) fillMap(ctx context.Context, version string, entries iter.Seq[MapEntry]) error {
	count := 0
	var chunk strings.Builder
	for entry := range entries {
		line, err := files.MapLine(entry.Key, entry.Value)
		if err != nil {
			return err
		}
		if chunk.Len() > 0 && chunk.Len()+len(line) > maxBatch {
			if err := c.addPayload(ctx, version, chunk.String()); err != nil {
				return err
			}
			chunk.Reset()
		}
		chunk.WriteString(line)
		count++
	}
	if chunk.Len() > 0 {
		if err := c.addPayload(ctx, version, chunk.String()); err != nil {
			return err
		}
	}
	loaded, err := c.showMap(ctx, version)
	if err == nil && len(loaded) != count {
		err = fmt.Errorf("%w: of %d entries, %d arrived", ErrUnavailable, count, len(loaded))
	}
	return err
}

// addPayload sends lines as they are: in a payload nothing is special but an empty line, which no MapLine is. It takes
// no sentinel, so that a silence is found only when the entries are counted.
func (c *Client) addPayload(ctx context.Context, version, lines string) error {
	answer, err := c.send(ctx, "add map "+version+" <<\n"+lines)
	if err == nil && strings.TrimSpace(answer) != "" {
		_, words := parseReply(answer)
		err = &RejectedError{Command: "add map " + version, Reply: words}
	}
	return err
}
