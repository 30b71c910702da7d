package files

import (
	"errors"
	"fmt"
	"strings"

	"github.com/limpet-gateway/limpet/internal/table"
)

// MaxLine bounds a map file's line: HAProxy cuts it at 16 KiB, and takes what remains for a new key.
const MaxLine = 8 << 10

// MapFolder holds the map files of a generation; HAProxy's name of a map is this, a slash and the file's name.
const MapFolder = "maps"

// Fault is a fragment that was left out.
type Fault struct {
	Owner   string
	Message string
}

// MapLine is one line of a map file or of a command's payload, with its newline. It is the only way that a key and a
// value come together: what cannot be written so that HAProxy reads it back unchanged is an error.
func MapLine(key, value string) (string, error) {
	if err := CheckEntry(key, value); err != nil {
		return "", err
	}
	return key + " " + value + "\n", nil
}

// CheckEntry says why a key and a value cannot be an entry of a map.
func CheckEntry(key, value string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if err := checkValue(value); err != nil {
		return fmt.Errorf("the value for %q %w", clip(key), err)
	}
	if size := len(key) + 1 + len(value); size > MaxLine {
		return fmt.Errorf("the entry %q has %d bytes, more than the %d that a line may have", clip(key), size, MaxLine)
	}
	return nil
}

func checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("the key is empty")
	case key[0] == '#':
		return fmt.Errorf("the key %q begins with #, which makes a comment", clip(key))
	}
	for i := range len(key) {
		if c := key[i]; c == ' ' || isControl(c) && c != '\x01' {
			return fmt.Errorf("the key %q has a blank or a control character", clip(key))
		}
	}
	return nil
}

func checkValue(value string) error {
	switch {
	case value == "":
		return errors.New("is empty")
	case value[0] == ' ' || value[len(value)-1] == ' ':
		return errors.New("begins or ends with a blank")
	}
	for i := range len(value) {
		if isControl(value[i]) {
			return errors.New("has a control character")
		}
	}
	return nil
}

func isControl(c byte) bool { return c < ' ' || c == '\x7f' }

// clip keeps messages short whatever they quote.
func clip(s string) string {
	const enough = 80
	if len(s) > enough {
		return s[:enough] + "…"
	}
	return s
}

// mapText is a map file's content. Entries that cannot be written are left out.
func mapText(name string, entries table.Table[Entry]) (string, []Fault) {
	var text strings.Builder
	var faults []Fault
	for _, e := range entries.Sorted() {
		line, err := MapLine(e.Key, e.Value.Value)
		if err != nil {
			faults = append(faults, Fault{e.Value.Owner, fmt.Sprintf("%s: %v", name, err)})
			continue
		}
		text.WriteString(line)
	}
	return text.String(), faults
}

// parseMap reads a map file back. Owners are not in it.
func parseMap(text string) table.Table[Entry] {
	edit := table.Table[Entry]{}.Edit()
	for line := range strings.Lines(text) {
		if key, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), " "); found {
			edit.Set(key, Entry{Value: value})
		}
	}
	return edit.Table()
}
