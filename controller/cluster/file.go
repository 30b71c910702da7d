package cluster

import "time"

// settled is how long a file must have been left alone for its signature to be trusted: a second change within one
// tick of the file system's clock would not show in it.
const settled = 100 * time.Millisecond

// file is one file with what counts of it.
type file struct {
	path      string
	signature signature
	read      time.Time
	// latest is what was read last, whatever it is. accepted was the latest when that was last believed; now is what
	// counts, the same unless that is broken.
	latest, accepted, now *fileContent
	// good says that now was read without an error.
	good     bool
	problems []Problem
	// doubt is what would take something away, since when it is so.
	doubt *fileContent
	since time.Time
}

// source is what a file, or standard input, gives to the snapshot.
type source struct {
	path     string
	content  *fileContent
	problems []Problem
	// leaving files hold something that seems to go, perhaps to another file.
	leaving bool
}

// same says that both give the same.
func (s source) same(other source) bool {
	return s.path == other.path && s.content == other.content && s.leaving == other.leaving
}

// gone is the content of a file that is not there any more.
var gone = &fileContent{}

func (f *file) source() source {
	return source{path: f.path, content: f.now, problems: f.problems, leaving: f.doubt != nil}
}

// update takes in what a walk found.
func (f *file) update(found found, now time.Time, hold time.Duration) {
	switch {
	case found.err != nil:
		f.signature = signature{}
		if failure := failed(reason(found.err)); f.latest == nil || !f.latest.same(failure) {
			f.latest = failure
		}
	case found.signature != f.signature || !f.settled():
		f.signature, f.read = found.signature, now
		f.latest = readFile(f.path, f.latest)
	}
	switch {
	case f.latest == f.accepted:
		f.doubt = nil
	case f.now == nil || !f.loses() || f.confirm(f.latest, now, hold):
		f.accept()
	}
}

func (f *file) settled() bool {
	changed := time.Unix(f.signature.changed.Unix())
	return f.latest != nil && f.read.Sub(changed).Abs() > settled
}

// loses says whether the latest content lacks something that counts now.
func (f *file) loses() bool {
	return f.latest.broken || !f.latest.holds(f.now)
}

// confirm says whether a loss is real: it must be the same for the time of hold. An editor may empty a file before it
// writes it, or take it away before it puts the new one in its place.
func (f *file) confirm(loss *fileContent, now time.Time, hold time.Duration) bool {
	if f.doubt == nil || !f.doubt.same(loss) {
		f.doubt, f.since = loss, now
	}
	return now.Sub(f.since) >= hold
}

// accept makes the latest content count: all of it if it is good, else its problems. A file that never was good counts
// with what could be read of it.
func (f *file) accept() {
	f.doubt, f.accepted = nil, f.latest
	f.problems = f.latest.problems(f.path)
	if !f.latest.broken || !f.good {
		f.now = f.latest
	}
	if f.now != f.latest {
		for i := range f.problems {
			if f.problems[i].Severity == Error {
				f.problems[i].Message += " (what the file held before stays)"
			}
		}
	}
	f.good = f.good || !f.latest.broken
}
