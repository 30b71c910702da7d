package spec

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Tests knows which tests the module has. It reads a package when it is first asked for.
type Tests struct {
	root     fs.FS
	packages map[string]testPackage
}

// testPackage is the text in a package's test functions: for each function the string literals of its file.
type testPackage map[string]map[string]bool

// NewTests returns the tests of the module in root.
func NewTests(root fs.FS) *Tests { return &Tests{root: root, packages: map[string]testPackage{}} }

// Find says what is wrong with the name of a test, "folder.TestName" or "folder.TestName/case". A case is there if its
// file has a string of that text, or the package a golden case of that name in testdata.
func (t *Tests) Find(name string) error {
	folder, rest, found := strings.Cut(name, ".Test")
	if !found {
		return fmt.Errorf("%q is not of the form folder.TestName or folder.TestName/case", name)
	}
	function, subtest, hasSubtest := strings.Cut("Test"+rest, "/")
	tests, err := t.load(folder)
	if err != nil {
		return err
	}
	literals, found := tests[function]
	switch {
	case !found:
		return fmt.Errorf("%s has no test %s", folder, function)
	case hasSubtest && !literals[subtest] && !t.golden(folder, subtest):
		return fmt.Errorf("the file of %s.%s has no case %q", folder, function, subtest)
	}
	return nil
}

// Names are those of the test functions in a folder, sorted.
func (t *Tests) Names(folder string) ([]string, error) {
	tests, err := t.load(folder)
	return slices.Sorted(maps.Keys(tests)), err
}

func (t *Tests) golden(folder, name string) bool {
	info, err := fs.Stat(t.root, path.Join(folder, "testdata", name))
	return err == nil && info.IsDir()
}

func (t *Tests) load(folder string) (testPackage, error) {
	if tests, done := t.packages[folder]; done {
		return tests, nil
	}
	names, err := fs.Glob(t.root, folder+"/*_test.go")
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: %w", folder, errNoTests)
	}
	tests := testPackage{}
	for _, name := range names {
		text, err := fs.ReadFile(t.root, name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		literals := literalsOf(file)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				tests[f.Name.Name] = literals
			}
		}
	}
	t.packages[folder] = tests
	return tests, nil
}

var errNoTests = errors.New("there are no tests")

func literalsOf(file *ast.File) map[string]bool {
	literals := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				literals[text] = true
			}
		}
		return true
	})
	return literals
}
