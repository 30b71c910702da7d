package status

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StoreOptions say where statuses go.
type StoreOptions struct {
	// File gets all of them as YAML; "" for none.
	File string
	// Log gets a line for each condition that changes; nil is silent.
	Log *slog.Logger
	// Now is the clock; nil is the real one.
	Now func() time.Time
}

// Store keeps the statuses of all objects, for want of an API server. It is used by one goroutine.
type Store struct {
	options StoreOptions
	kept    map[Object]*kept
	// last is what was given last.
	last []*Update
	// order are the objects as the file has them.
	order []Object
	// dirty says that the file does not hold what is kept.
	dirty bool
}

// kept is what is known of one object.
type kept struct {
	// computed is what was given last, status the same with times, text the same as an item of the file.
	computed, status *Update
	text             []byte
}

// NewStore returns a Store that knows nothing. It does not read the file: what stands there is from another run.
func NewStore(options StoreOptions) *Store {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Store{options: options, kept: map[Object]*kept{}, dirty: true}
}

// Write takes the statuses of all objects. It logs what changed, and writes the file if something did.
func (s *Store) Write(_ context.Context, updates []*Update) error {
	now := seconds(s.options.Now())
	sameObjects := len(updates) == len(s.last)
	for i, update := range updates {
		if i < len(s.last) && s.last[i] == update {
			continue
		}
		sameObjects = sameObjects && s.last[i].Object == update.Object
		s.take(update, now)
	}
	if !sameObjects {
		s.forget(updates)
	}
	s.last = updates
	if !s.dirty || s.options.File == "" {
		return nil
	}
	if err := s.writeFile(); err != nil {
		return fmt.Errorf("status file: %w", err)
	}
	s.dirty = false
	return nil
}

// take takes the status of one object.
func (s *Store) take(update *Update, now metav1.Time) {
	of := s.kept[update.Object]
	if of == nil {
		of = &kept{}
		s.kept[update.Object] = of
	}
	if of.computed == nil || !Equal(of.computed, update) {
		timed := update.withTimes(of.status, now)
		logChanges(s.options.Log, of.status, timed)
		of.status, of.text, s.dirty = timed, nil, true
	}
	of.computed = update
}

// forget drops the objects that are not there any more, and puts the others in order.
func (s *Store) forget(updates []*Update) {
	there := make(map[Object]bool, len(updates))
	for _, update := range updates {
		there[update.Object] = true
	}
	s.order = s.order[:0]
	for object := range s.kept {
		if there[object] {
			s.order = append(s.order, object)
			continue
		}
		s.options.Log.Info("object is gone, or no longer ours", "object", object.String())
		delete(s.kept, object)
		s.dirty = true
	}
	slices.SortFunc(s.order, compareObjects)
}

// compareObjects orders by kind, the ones that others refer to first, then by namespace and name.
func compareObjects(a, b Object) int {
	return cmp.Or(cmp.Compare(rank(a.Kind), rank(b.Kind)), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.APIVersion, b.APIVersion))
}

func rank(kind string) int {
	kinds := []string{"GatewayClass", "Gateway", "ListenerSet", "HTTPRoute", kind}
	return slices.Index(kinds, kind)
}

// Sort puts Updates in the order of kind, namespace and name.
func Sort(updates []*Update) {
	slices.SortFunc(updates, func(a, b *Update) int { return compareObjects(a.Object, b.Object) })
}

func (s *Store) writeFile() error {
	items := make([][]byte, len(s.order))
	for i, object := range s.order {
		of := s.kept[object]
		if of.text == nil {
			item, err := of.status.item()
			if err != nil {
				return err
			}
			of.text = item
		}
		items[i] = of.text
	}
	return replaceFile(s.options.File, list(items))
}

// replaceFile writes a file in one step: who reads it sees the old or the new content, never a part.
func replaceFile(path string, text []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(text)
	if err = cmp.Or(err, temporary.Chmod(0o644), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
