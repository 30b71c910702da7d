package controller

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/internal/table"
)

// File is a file that HAProxy would get.
type File struct{ Name, Text string }

// redacted stands for what nobody may see.
const redacted = "# Not shown: this file holds keys.\n"

// Files are those that HAProxy would get, the configuration first. Those with keys are not shown.
func (p *Preview) Files() ([]File, error) {
	shown := p.Set
	edit := table.Table[files.Asset]{}.Edit()
	for _, e := range p.Set.Assets.Sorted() {
		if e.Value.Secret {
			e.Value.Text = redacted
		}
		edit.Set(e.Key, e.Value)
	}
	shown.Assets = edit.Table()
	dir, err := os.MkdirTemp("", "limpet-render-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := files.Open(dir)
	if err != nil {
		return nil, err
	}
	number, _, err := store.Write(shown, p.Placement)
	if err != nil {
		return nil, err
	}
	return p.read(store.Path(number))
}

// read returns what HAProxy reads of a generation: its configuration, the maps and the assets.
func (p *Preview) read(folder string) ([]File, error) {
	names := files.ConfigFiles()
	for _, name := range slices.Sorted(maps.Keys(p.Set.Maps)) {
		names = append(names, files.MapFolder+"/"+name)
	}
	for _, e := range p.Set.Assets.Sorted() {
		if !slices.Contains(names, e.Key) {
			names = append(names, e.Key)
		}
	}
	var all []File
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		all = append(all, File{name, string(text)})
	}
	return all, nil
}

// WriteFiles writes files into a folder, which is made if need be.
func WriteFiles(folder string, all []File) error {
	for _, file := range all {
		path := filepath.Join(folder, file.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(file.Text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// LeftOutLines says in a line for each owner what HAProxy would not get.
func (p *Preview) LeftOutLines() []string {
	var lines []string
	for owner, words := range p.LeftOut {
		lines = append(lines, fmt.Sprintf("%s: left out: %s", owner, words))
	}
	slices.SortFunc(lines, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return lines
}
