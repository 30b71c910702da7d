package spec

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// The folders of the packages whose comments are read.
const (
	apis  = "apis/v1"
	apisx = "apisx/v1alpha1" // which imports the other, as "v1"
)

// roots are the files whose every declaration counts, and types that no field's type leads to: those of conditions.
var (
	rootFiles = []string{
		apis + "/httproute_types.go", apis + "/grpcroute_types.go", apis + "/tlsroute_types.go", apis + "/tcproute_types.go",
		apis + "/gateway_types.go", apis + "/listenerset_types.go",
		apis + "/backendtlspolicy_types.go", apisx + "/xbackend_types.go",
	}
	rootTypes = []string{"RouteConditionType", "RouteConditionReason", "PolicyConditionType", "PolicyConditionReason", "ReferenceGrant"}
)

// typeName is a type by the folder of its package and its name.
type typeName struct{ folder, name string }

// declaration is a type, with the constants of that type, where its comments are.
type declaration struct {
	file  string
	group *ast.GenDecl
	spec  ast.Spec
}

// godoc reads the comments of the root files and of whatever their types lead to, in the order of the text.
func godoc(module fs.FS) ([]Sentence, error) {
	p, err := parse(module)
	if err != nil {
		return nil, err
	}
	p.reach()

	var all []Sentence
	files := slices.Concat(rootFiles, p.otherFiles())
	for _, name := range files {
		for _, d := range p.files[name].Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				if p.counts(name, spec) {
					all = append(all, p.comments(declaration{file: name, group: group, spec: spec})...)
				}
			}
		}
	}
	return all, nil
}

type packageComments struct {
	files   map[string]*ast.File
	types   map[typeName]*ast.TypeSpec
	reached map[typeName]bool
}

func parse(module fs.FS) (*packageComments, error) {
	p := &packageComments{files: map[string]*ast.File{}, types: map[typeName]*ast.TypeSpec{}, reached: map[typeName]bool{}}
	for _, folder := range []string{apis, apisx} {
		if err := p.parseFolder(module, folder); err != nil {
			return nil, err
		}
	}
	for _, name := range rootFiles {
		if p.files[name] == nil {
			return nil, fmt.Errorf("the module has no %s", name)
		}
	}
	for _, name := range rootTypes {
		if p.types[typeName{apis, name}] == nil {
			return nil, fmt.Errorf("%s declares no type %s", apis, name)
		}
	}
	return p, nil
}

func (p *packageComments) parseFolder(module fs.FS, folder string) error {
	names, err := fs.Glob(module, folder+"/*_types.go")
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	for _, name := range names {
		source, err := fs.ReadFile(module, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.files[name] = file
		for _, t := range typesOf(file) {
			p.types[typeName{folder, t.Name.Name}] = t
		}
	}
	return nil
}

// typesOf are the types that the file declares.
func typesOf(file *ast.File) []*ast.TypeSpec {
	var all []*ast.TypeSpec
	for _, d := range file.Decls {
		if group, ok := d.(*ast.GenDecl); ok {
			for _, spec := range group.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					all = append(all, t)
				}
			}
		}
	}
	return all
}

// otherFiles names the files that are no roots, sorted.
func (p *packageComments) otherFiles() []string {
	var names []string
	for name := range p.files {
		if !slices.Contains(rootFiles, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// reach finds the types that the roots lead to.
func (p *packageComments) reach() {
	for _, name := range rootFiles {
		for _, t := range typesOf(p.files[name]) {
			p.visit(typeName{path.Dir(name), t.Name.Name})
		}
	}
	for _, name := range rootTypes {
		p.visit(typeName{apis, name})
	}
}

// visit marks the type and those that it is made of as reached.
func (p *packageComments) visit(name typeName) {
	t := p.types[name]
	if t == nil || p.reached[name] {
		return
	}
	p.reached[name] = true
	ast.Inspect(t.Type, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if imported, ok := n.X.(*ast.Ident); ok && imported.Name == "v1" {
				p.visit(typeName{apis, n.Sel.Name})
			}
			return false
		case *ast.Ident:
			p.visit(typeName{name.folder, n.Name})
		}
		return true
	})
}

// counts says whether the declaration belongs to what is read.
func (p *packageComments) counts(file string, spec ast.Spec) bool {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		return p.reached[typeName{path.Dir(file), s.Name.Name}]
	case *ast.ValueSpec:
		id, ok := s.Type.(*ast.Ident)
		return ok && p.reached[typeName{path.Dir(file), id.Name}] || slices.Contains(rootFiles, file)
	}
	return false
}

// comments gives the sentences of one declaration: its own comment, those of its fields, and those that stand free in it.
func (p *packageComments) comments(d declaration) []Sentence {
	var all []Sentence
	used := map[*ast.CommentGroup]bool{}
	add := func(where string, doc *ast.CommentGroup) {
		if doc != nil && !used[doc] {
			used[doc] = true
			all = append(all, sentences(d.file, where, blocks(commentLines(doc)))...)
		}
	}
	switch s := d.spec.(type) {
	case *ast.ValueSpec:
		add(s.Names[0].Name, s.Doc)
		if len(d.group.Specs) == 1 {
			add(s.Names[0].Name, d.group.Doc)
		}
	case *ast.TypeSpec:
		add(s.Name.Name, s.Doc)
		if len(d.group.Specs) == 1 {
			add(s.Name.Name, d.group.Doc)
		}
		body, ok := s.Type.(*ast.StructType)
		if !ok {
			break
		}
		for _, field := range body.Fields.List {
			add(s.Name.Name+"."+fieldName(field), field.Doc)
		}
		for _, free := range p.files[d.file].Comments {
			if free.Pos() > body.Pos() && free.End() < body.End() {
				add(s.Name.Name, free)
			}
		}
	}
	return all
}

// fieldName is the field's name, or that of the type it embeds.
func fieldName(field *ast.Field) string {
	if len(field.Names) > 0 {
		return field.Names[0].Name
	}
	switch t := field.Type.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.SelectorExpr:
		return t.Sel.Name
	}
	return "?"
}

// commentLines is the comment's text, line by line. CommentGroup.Text would drop what looks like a directive.
func commentLines(group *ast.CommentGroup) []string {
	lines := make([]string, 0, len(group.List))
	for _, c := range group.List {
		lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), " "))
	}
	return lines
}
