package spec

import (
	"io/fs"
	"regexp"
	"strings"
)

// proposals are the enhancement proposals whose text is read.
var proposals = []string{
	"geps/gep-1619/index.md", // session persistence
	"geps/gep-4894/index.md", // backends
	"geps/gep-1731/index.md", // retries
	"geps/gep-1742/index.md", // timeouts
	"geps/gep-1767/index.md", // CORS
}

var (
	heading  = regexp.MustCompile(`^(#+)\s+(.*)$`)
	fence    = regexp.MustCompile("^\\s*```\\s*([a-z]*)")
	link     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	typeLine = regexp.MustCompile(`^type (\w+) `)
	nameLine = regexp.MustCompile(`^\s*(\w+)\b`)
)

// markdown reads a proposal: its prose, the cells of its tables, and the comments in its Go code.
func markdown(module fs.FS, name string) ([]Sentence, error) {
	source, err := fs.ReadFile(module, name)
	if err != nil {
		return nil, err
	}
	r := proposal{name: name}
	text := string(source)
	if head, rest, found := strings.Cut(text, "\n---\n"); found && strings.HasPrefix(head, "---\n") {
		text = rest // Without the page's own data.
	}
	for line := range strings.Lines(text) {
		r.line(strings.TrimRight(line, "\r\n"))
	}
	r.flush()
	return r.all, nil
}

// proposal is where the reader is.
type proposal struct {
	name     string
	all      []Sentence
	headings []string
	prose    []string
	fence    string // the language of the code that is open; "text" where none is named
	comment  []string
	inType   string
}

func (r *proposal) line(line string) {
	if m := fence.FindStringSubmatch(line); m != nil {
		r.flush()
		switch {
		case r.fence != "":
			r.fence = ""
		case m[1] == "":
			r.fence = "text"
		default:
			r.fence = m[1]
		}
		return
	}
	if r.fence != "" {
		if r.fence == "go" || r.fence == "golang" {
			r.code(line)
		}
		return
	}
	if m := heading.FindStringSubmatch(line); m != nil {
		r.flush()
		level := len(m[1])
		r.headings = append(r.headings[:min(len(r.headings), level-1)], m[2])
		return
	}
	if strings.HasPrefix(line, "|") {
		r.flush()
		r.row(line)
		return
	}
	r.prose = append(r.prose, link.ReplaceAllString(line, "$1"))
}

// where is the heading that the text stands under.
func (r *proposal) where() string {
	if len(r.headings) == 0 {
		return ""
	}
	return r.headings[len(r.headings)-1]
}

func (r *proposal) flush() {
	r.all = append(r.all, sentences(r.name, r.where(), blocks(r.prose))...)
	r.prose, r.comment, r.inType = nil, nil, ""
}

// row reads a table's row: what its first cell describes, its other cells demand.
func (r *proposal) row(line string) {
	cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	first := link.ReplaceAllString(strings.TrimSpace(cells[0]), "$1")
	name, _, _ := strings.Cut(first, ": ")
	for _, cell := range cells {
		text := link.ReplaceAllString(cell, "$1")
		r.all = append(r.all, sentences(r.name, r.where()+", "+strings.TrimSuffix(name, "."), []block{{text: text}})...)
	}
}

// code reads a line of Go: a comment belongs to the declaration that follows it.
func (r *proposal) code(line string) {
	trimmed := strings.TrimSpace(line)
	if text, ok := strings.CutPrefix(trimmed, "//"); ok {
		r.comment = append(r.comment, strings.TrimPrefix(text, " "))
		return
	}
	where := ""
	if m := typeLine.FindStringSubmatch(trimmed); m != nil {
		where, r.inType = m[1], m[1]
	} else if m := nameLine.FindStringSubmatch(line); m != nil {
		where = m[1]
		if r.inType != "" {
			where = r.inType + "." + where
		}
	}
	r.all = append(r.all, sentences(r.name, r.where()+", "+where, blocks(r.comment))...)
	r.comment = nil
	if line == "}" {
		r.inType = ""
	}
}
