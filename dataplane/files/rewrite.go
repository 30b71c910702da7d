package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/limpet-gateway/limpet/dataplane/placement"
)

// Rewrite brings the files of a generation up to date with what was changed at run time, each file in one step: what is
// on disk differs from is as was does. haproxy.cfg goes before the maps, so that they never lead to servers that are not
// there, and assets come before what names them and go after it.
func (s *Store) Rewrite(number int, was, is Set, place placement.Placement) error {
	folder := s.Path(number)
	if err := rewriteAssets(folder, was, is); err != nil {
		return fmt.Errorf("files: generation %d: %w", number, err)
	}
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
	if err := removeAssets(folder, was, is); err != nil {
		return fmt.Errorf("files: generation %d: %w", number, err)
	}
	return nil
}

// PutAsset writes one asset of a generation at once: what HAProxy has been given must be there when it starts again.
func (s *Store) PutAsset(number int, name string, asset Asset) error {
	if err := putAsset(s.Path(number), name, asset.Text); err != nil {
		return fmt.Errorf("files: generation %d: %w", number, err)
	}
	if s.last.number == number {
		edit := s.last.set.Assets.Edit()
		edit.Set(name, asset)
		s.last.set.Assets = edit.Table()
	}
	return nil
}

// RemoveAsset removes an asset of a generation that its files do not name.
func (s *Store) RemoveAsset(number int, name string) error {
	if err := removeAsset(s.Path(number), name); err != nil {
		return fmt.Errorf("files: generation %d: %w", number, err)
	}
	if s.last.number == number {
		edit := s.last.set.Assets.Edit()
		edit.Delete(name)
		s.last.set.Assets = edit.Table()
	}
	return nil
}

func removeAsset(folder, name string) error {
	if err := checkAssetName(name); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explain(err)
	}
	return nil
}

func putAsset(folder, name, text string) error {
	if err := checkAssetName(name); err != nil {
		return err
	}
	path := filepath.Join(folder, name)
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	return writeFile(path, text)
}

// rewriteAssets writes those that are new or other; lists go last, because they name the others.
func rewriteAssets(folder string, was, is Set) error {
	var lists []string
	for _, change := range is.Assets.Changes(was.Assets) {
		switch {
		case !change.HasNew, change.HadOld && change.Old.Text == change.New.Text:
		case FolderOf(change.Key) == ListFolder:
			lists = append(lists, change.Key)
		default:
			if err := putAsset(folder, change.Key, change.New.Text); err != nil {
				return err
			}
		}
	}
	for _, name := range lists {
		asset, _ := is.Assets.Get(name)
		if err := putAsset(folder, name, asset.Text); err != nil {
			return err
		}
	}
	return nil
}

func removeAssets(folder string, was, is Set) error {
	for _, change := range is.Assets.Changes(was.Assets) {
		if change.HasNew {
			continue
		}
		if err := removeAsset(folder, change.Key); err != nil {
			return err
		}
	}
	return nil
}
