package cluster

import (
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// FilesOptions say where objects are.
type FilesOptions struct {
	// Paths are files, and folders that are read with all below them. "-" is Stdin, which is read once.
	Paths []string
	Stdin io.Reader
	// Log gets every problem when it comes and when it goes; nil is silent.
	Log *slog.Logger
}

// Files reads objects from files. It is used by one goroutine.
//
// A broken file changes nothing: what it held when it was last good stays. An object whose content did not change keeps
// its pointer, and a kind of which no object changed its list. Objects get what an API server gives them: a generation
// that counts the changes of their spec, the namespace "default", and the Namespaces that they are in.
type Files struct {
	options FilesOptions
	files   map[string]*file
	stdin   *fileContent
	merger  merger
	// order, snapshot, duplicates and problems are those of the last scan.
	order                []source
	snapshot             Snapshot
	duplicates, problems []Problem
}

// NewFiles returns a source that has read nothing yet.
func NewFiles(options FilesOptions) *Files {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	return &Files{options: options, files: map[string]*file{}, merger: newMerger()}
}

// Load reads everything once and returns what it holds, and what is wrong with it.
func (f *Files) Load() (Snapshot, []Problem) {
	f.scan(0)
	return f.snapshot, f.problems
}

// scan brings the snapshot up to date. What a file seems to have lost must be gone for the time of hold. It returns
// the folders to watch, and whether something waits for its time to be over.
func (f *Files) scan(hold time.Duration) (folders []string, waiting bool) {
	start := time.Now()
	w := look(slices.DeleteFunc(slices.Clone(f.options.Paths), func(path string) bool { return path == "-" }))
	var order []source
	for _, found := range w.files {
		one := f.files[found.path]
		if one == nil {
			one = &file{path: found.path}
			f.files[found.path] = one
		}
		one.update(found, start, hold)
		order = append(order, one.source())
	}
	order = append(order, f.vanished(w, start, hold)...)
	order = append(order, f.standardInput()...)

	if !slices.EqualFunc(order, f.order, source.same) {
		f.order = order
		f.snapshot, f.duplicates = f.merger.merge(f.snapshot, order)
	}
	f.report(slices.Concat(w.unreadable, problemsOf(order), f.duplicates))
	return w.folders, slices.ContainsFunc(order, func(s source) bool { return s.leaving })
}

// vanished returns those files that a walk did not find, and that count still.
func (f *Files) vanished(w *walk, now time.Time, hold time.Duration) []source {
	there := map[string]bool{}
	for _, found := range w.files {
		there[found.path] = true
	}
	var still []source
	for path, one := range f.files {
		switch {
		case there[path]:
		case w.hides(path):
			still = append(still, one.source())
		case one.confirm(gone, now, hold):
			delete(f.files, path)
		default:
			still = append(still, one.source())
		}
	}
	slices.SortFunc(still, func(a, b source) int { return strings.Compare(a.path, b.path) })
	return still
}

func (f *Files) standardInput() []source {
	if !slices.Contains(f.options.Paths, "-") || f.options.Stdin == nil {
		return nil
	}
	if f.stdin == nil {
		f.stdin = readAll(f.options.Stdin, false, nil)
	}
	return []source{{path: "stdin", content: f.stdin, problems: f.stdin.problems("stdin")}}
}

func problemsOf(sources []source) []Problem {
	var all []Problem
	for _, s := range sources {
		all = append(all, s.problems...)
	}
	return all
}

// maxLogged is how many problems are logged one by one when they come together.
const maxLogged = 100

// report keeps the problems, and logs those that are new and the places where none is left.
func (f *Files) report(problems []Problem) {
	before, places := map[Problem]bool{}, map[string]bool{}
	for _, p := range f.problems {
		before[p] = true
	}
	fresh := 0
	for _, p := range problems {
		places[p.File] = true
		if before[p] {
			continue
		}
		if fresh++; fresh <= maxLogged {
			p.log(f.options.Log)
		}
	}
	if fresh > maxLogged {
		f.options.Log.Warn("there are more problems, limpet check shows them all", "more", fresh-maxLogged)
	}
	for _, p := range f.problems {
		if !places[p.File] {
			places[p.File] = true
			f.options.Log.Info("no problem is left here", "file", p.File)
		}
	}
	f.problems = problems
}
