package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/limpet-gateway/limpet/controller"
	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/translate"
	"github.com/limpet-gateway/limpet/internal/keys"
)

// previewDir is the folder that HAProxy's paths are shown with: the same everywhere.
const previewDir = "/var/lib/limpet"

// preview reads the objects and takes them through all stages but the last. It prints what is wrong with the files, and
// says whether one is broken.
func (f *objectFlags) preview(cmd *cobra.Command) (p *controller.Preview, broken bool, err error) {
	graph, err := f.graph()
	if err != nil {
		return nil, false, err
	}
	trusted, err := f.trustedProxies()
	if err != nil {
		return nil, false, err
	}
	if err := f.existing(); err != nil {
		return nil, false, err
	}
	files := cluster.NewFiles(cluster.FilesOptions{Paths: f.paths, Stdin: cmd.InOrStdin(), Log: slog.New(slog.DiscardHandler)})
	snapshot, problems := files.Load()
	for _, problem := range problems {
		fmt.Fprintln(cmd.ErrOrStderr(), problem)
		broken = broken || problem.Severity == cluster.Error
	}
	// No key is needed to show what would be: names that depend on one differ from those of an installation.
	secret := make([]byte, 32)
	p, err = controller.NewPreview(snapshot, graph, translate.Options{NamesKey: secret, TrustedProxies: trusted},
		controller.Settings(previewDir, []keys.SignKey{{ID: "a", Secret: secret}}))
	return p, broken, err
}
