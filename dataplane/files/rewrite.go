package files

import (
	"fmt"
	"path/filepath"

	"github.com/limpet-gateway/limpet/dataplane/placement"
)

// Rewrite brings the files of a generation up to date with what was changed at run time, each file in one step: what is
// on disk differs from is as was does. haproxy.cfg goes first, so that a map never leads to servers that are not there.
func (s *Store) Rewrite(number int, was, is Set, place placement.Placement) error {
	folder := s.Path(number)
	if !is.Servers.Same(was.Servers) {
		text, _ := is.configText()
		if err := writeFile(filepath.Join(folder, ConfigFile), text); err != nil {
			return fmt.Errorf("files: generation %d: %w", number, err)
		}
	}
	for name, entries := range is.Maps {
		if entries.Same(was.Maps[name]) {
			continue
		}
		text, _ := mapText(name, entries)
		if err := writeFile(filepath.Join(folder, MapFolder, name), text); err != nil {
			return fmt.Errorf("files: generation %d: %w", number, err)
		}
	}
	index, err := indexText(is, place)
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(folder, indexFile), index); err != nil {
		return fmt.Errorf("files: generation %d: %w", number, err)
	}
	if s.last.number == number {
		s.last.set = is
	}
	return nil
}
