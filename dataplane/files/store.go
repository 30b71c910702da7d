package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/limpet-gateway/limpet/dataplane/placement"
)

// kept is how many generations stay on disk: the one that is served, and two to go back to and to look at.
const kept = 3

// Names in a store's folder.
const (
	generationsFolder = "generations"
	currentLink       = "current"
	provenLink        = "proven"
)

// Store keeps sets on disk as generations:
//
//	<dir>/generations/<n>/haproxy.cfg, keys.cfg, generation.cfg, index.json, maps/*.map and the assets
//	<dir>/current -> generations/<n>, that HAProxy starts from
//	<dir>/proven -> generations/<n>, that it was seen to run last
//
// A generation appears as a whole, and current is switched in one step. Only what can be changed at run time (maps,
// servers, certificates and their lists, CA bundles, the placement) is rewritten afterwards. A store has one user at a time.
type Store struct {
	dir     string
	written generation // the last one that was written
	last    generation // the last one that was switched to or loaded, whose equal assets are not written again
}

type generation struct {
	number int
	set    Set
}

// Open makes the folders of a store.
func Open(dir string) (*Store, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := makeFolder(filepath.Join(absolute, generationsFolder)); err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	return &Store{dir: absolute}, nil
}

// Path is where a generation lies.
func (s *Store) Path(number int) string {
	return filepath.Join(s.dir, generationsFolder, strconv.Itoa(number))
}

// Current is the number of the generation that HAProxy starts from; 0 if there is none.
func (s *Store) Current() int { return s.linked(currentLink) }

// Proven is the number of the generation that HAProxy was seen to run last; the current one if none was. The two differ when a
// Limpet ended in the middle of a reload, of which nobody knows whether HAProxy takes it.
func (s *Store) Proven() int { return cmp.Or(s.linked(provenLink), s.Current()) }

func (s *Store) linked(link string) int {
	target, err := os.Readlink(filepath.Join(s.dir, link))
	if err != nil {
		return 0
	}
	number, err := strconv.Atoi(filepath.Base(target))
	if err != nil || !isFolder(s.Path(number)) {
		return 0
	}
	return number
}

// Generations are the numbers of those that are on disk, ascending.
func (s *Store) Generations() ([]int, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, generationsFolder))
	if err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	var numbers []int
	for _, entry := range entries {
		if number, err := strconv.Atoi(entry.Name()); err == nil && number > 0 {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// Write makes a new generation, which nothing uses before Switch. Fragments that cannot be written are left out.
func (s *Store) Write(set Set, place placement.Placement) (int, []Fault, error) {
	numbers, err := s.Generations()
	if err != nil {
		return 0, nil, err
	}
	number := max(s.written.number, s.last.number) + 1
	if len(numbers) > 0 {
		number = max(number, numbers[len(numbers)-1]+1)
	}
	folder := filepath.Join(s.dir, generationsFolder, ".new")
	faults, err := s.fill(folder, number, set, place)
	if err == nil {
		err = explain(os.Rename(folder, s.Path(number)))
	}
	if err != nil {
		_ = os.RemoveAll(folder)
		return 0, nil, fmt.Errorf("files: generation %d: %w", number, err)
	}
	syncFolder(filepath.Dir(folder))
	s.written = generation{number, set}
	return number, faults, nil
}

// fill writes a generation's files into an empty folder.
func (s *Store) fill(folder string, number int, set Set, place placement.Placement) ([]Fault, error) {
	if err := os.RemoveAll(folder); err != nil {
		return nil, err
	}
	if err := makeFolder(filepath.Join(folder, MapFolder)); err != nil {
		return nil, err
	}
	var faults []Fault
	config, bad := set.configText()
	faults = append(faults, bad...)
	texts := map[string]string{
		ConfigFile: config,
		numberFile: fmt.Sprintf("global\n    set-var %s str(%d)\n", GenerationVariable, number),
	}
	if _, given := set.Assets.Get(KeysFile); !given {
		texts[KeysFile] = ""
	}
	for name, entries := range set.Maps {
		text, bad := mapText(name, entries)
		faults = append(faults, bad...)
		texts[MapFolder+"/"+name] = text
	}
	index, err := indexText(set, place)
	if err != nil {
		return nil, err
	}
	texts[indexFile] = index
	for name, text := range texts {
		if err := writeFile(filepath.Join(folder, name), text); err != nil {
			return nil, err
		}
	}
	return faults, s.fillAssets(folder, set)
}

// fillAssets writes the assets; one that the last generation has too becomes a second name of the same file.
func (s *Store) fillAssets(folder string, set Set) error {
	for _, e := range set.Assets.Sorted() {
		if err := checkAssetName(e.Key); err != nil {
			return err
		}
		path := filepath.Join(folder, e.Key)
		if err := makeFolder(filepath.Dir(path)); err != nil {
			return err
		}
		if was, had := s.last.set.Assets.Get(e.Key); had && was.Text == e.Value.Text {
			if link(filepath.Join(s.Path(s.last.number), e.Key), path) {
				continue
			}
		}
		if err := writeFile(path, e.Value.Text); err != nil {
			return err
		}
	}
	return nil
}

// checkAssetName refuses names that would leave the generation's folder or take the place of another file.
func checkAssetName(name string) error {
	reserved := []string{ConfigFile, numberFile, indexFile}
	if !filepath.IsLocal(name) || filepath.Clean(name) != name || slices.Contains(reserved, name) || strings.HasPrefix(name, MapFolder+"/") {
		return fmt.Errorf("%q cannot be the name of an asset", name)
	}
	return nil
}

// Switch makes a generation the one that HAProxy starts from, in one step.
func (s *Store) Switch(number int) error {
	if err := s.link(currentLink, number); err != nil {
		return err
	}
	if number == s.written.number {
		s.last = s.written
	}
	return nil
}

// Prove notes that HAProxy runs a generation.
func (s *Store) Prove(number int) error {
	if number == 0 || s.linked(provenLink) == number {
		return nil
	}
	return s.link(provenLink, number)
}

// link leads a name to a generation, in one step.
func (s *Store) link(name string, number int) error {
	temporary := filepath.Join(s.dir, name+".new")
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("files: %w", explain(err))
	}
	if err := os.Symlink(filepath.Join(generationsFolder, strconv.Itoa(number)), temporary); err != nil {
		return fmt.Errorf("files: %w", explain(err))
	}
	if err := os.Rename(temporary, filepath.Join(s.dir, name)); err != nil {
		return fmt.Errorf("files: %w", explain(err))
	}
	syncFolder(s.dir)
	return nil
}

// Unset leaves HAProxy nothing to start from: there never was a good generation.
func (s *Store) Unset() error {
	if err := os.Remove(filepath.Join(s.dir, currentLink)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("files: %w", explain(err))
	}
	return nil
}

// Remove deletes a generation that HAProxy refused.
func (s *Store) Remove(number int) error {
	if number == s.Current() {
		return fmt.Errorf("files: generation %d is the current one", number)
	}
	return os.RemoveAll(s.Path(number))
}

// Prune deletes all generations but the last three and the current one.
func (s *Store) Prune() error {
	numbers, err := s.Generations()
	if err != nil {
		return err
	}
	for _, number := range numbers[:max(0, len(numbers)-kept)] {
		if number != s.Current() && number != s.linked(provenLink) {
			err = errors.Join(err, os.RemoveAll(s.Path(number)))
		}
	}
	return err
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
