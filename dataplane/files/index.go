package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/internal/table"
)

// index is what a generation's other files do not say. It holds no key material: an asset's text stays in its file.
type index struct {
	Sections  []Section
	Assets    map[string]Asset
	Servers   []Server
	Placement placement.Placement
}

func indexText(set Set, place placement.Placement) (string, error) {
	in := index{Sections: set.Sections, Assets: map[string]Asset{}, Placement: place}
	for _, e := range set.Assets.Sorted() {
		in.Assets[e.Key] = Asset{Owner: e.Value.Owner, Secret: e.Value.Secret}
	}
	for _, e := range set.Servers.Sorted() {
		in.Servers = append(in.Servers, e.Value)
	}
	text, err := json.Marshal(in)
	return string(text), err
}

// Load reads a generation back, with the placement that it was rendered with. Owners of map entries are not kept.
func (s *Store) Load(number int) (Set, placement.Placement, error) {
	set, place, err := load(s.Path(number))
	if err != nil {
		return Set{}, placement.Placement{}, fmt.Errorf("files: generation %d cannot be read back: %w", number, err)
	}
	s.last = generation{number, set}
	return set, place, nil
}

func load(folder string) (Set, placement.Placement, error) {
	var in index
	text, err := os.ReadFile(filepath.Join(folder, indexFile))
	if err != nil {
		return Set{}, placement.Placement{}, err
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return Set{}, placement.Placement{}, err
	}
	set := Set{Sections: in.Sections}
	if set.Assets, err = loadAssets(folder, in.Assets); err != nil {
		return Set{}, placement.Placement{}, err
	}
	if set.Maps, err = loadMaps(folder); err != nil {
		return Set{}, placement.Placement{}, err
	}
	servers := table.Table[Server]{}.Edit()
	for _, server := range in.Servers {
		servers.Set(ServerKey(server.Slot, server.Name), server)
	}
	set.Servers = servers.Table()
	return set, in.Placement, nil
}

func loadAssets(folder string, assets map[string]Asset) (table.Table[Asset], error) {
	edit := table.Table[Asset]{}.Edit()
	for name, asset := range assets {
		if err := checkAssetName(name); err != nil {
			return edit.Table(), err
		}
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return edit.Table(), err
		}
		asset.Text = string(text)
		edit.Set(name, asset)
	}
	return edit.Table(), nil
}

func loadMaps(folder string) (map[string]table.Table[Entry], error) {
	maps := map[string]table.Table[Entry]{}
	entries, err := os.ReadDir(filepath.Join(folder, MapFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".map") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, MapFolder, entry.Name()))
		if err != nil {
			return nil, err
		}
		maps[entry.Name()] = parseMap(string(text))
	}
	return maps, nil
}
