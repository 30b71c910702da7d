// Command spec writes docs/spec/README.md: every duty of the specification with the tests or the decision that answer it.
//
// The specification's text (from the module cache) and docs/spec/coverage.yaml come in; the page goes out. It must never
// invent an entry: "-missing" prints those that are missing, as YAML to fill in.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/limpet-gateway/limpet/internal/spec"
)

//go:generate go run . -root ../..

func main() {
	root := flag.String("root", ".", "the folder of the checkout")
	missing := flag.Bool("missing", false, "print entries for sentences without one, instead of writing the page")
	flag.Parse()
	if err := run(context.Background(), *root, *missing); err != nil {
		fmt.Fprintln(os.Stderr, "spec:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string, missing bool) error {
	module, version, err := spec.Source(ctx, root)
	if err != nil {
		return err
	}
	sentences, err := spec.Extract(module)
	if err != nil {
		return err
	}
	coverage, err := spec.LoadCoverage(os.DirFS(root))
	if err != nil {
		return err
	}
	if missing {
		text, err := coverage.Missing(sentences)
		fmt.Print(text)
		return err
	}
	return os.WriteFile(filepath.Join(root, spec.PageFile), []byte(spec.Page(version, sentences, coverage)), 0o644)
}
