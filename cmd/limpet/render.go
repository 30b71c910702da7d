package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/limpet-gateway/limpet/controller"
)

func newRender() *cobra.Command {
	var objects objectFlags
	var output string
	cmd := &cobra.Command{
		Use:   "render -f PATH...",
		Short: "Print the files that HAProxy would get, without keys",
		Long: `Render prints the files that HAProxy would get: the configuration and the maps that routing looks up.
It needs no HAProxy. Keys and certificates are left out. Names of endpoints depend on a key, and differ from
those of an installation.

Exit codes: 0 if all is well; 1 if a file with objects is broken; 2 if the command line is wrong.`,
		Example: `  limpet render -f ./manifests
  limpet render -f ./manifests --output ./haproxy && diff -r ./haproxy ./haproxy.before`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			preview, broken, err := objects.preview(cmd)
			if err != nil {
				return err
			}
			for _, line := range preview.LeftOutLines() {
				fmt.Fprintln(cmd.ErrOrStderr(), line)
			}
			if err := writeFiles(cmd, preview, output); err != nil {
				return err
			}
			if broken {
				return &exitError{code: exitRefused}
			}
			return nil
		},
	}
	objects.add(cmd)
	cmd.Flags().StringVar(&output, "output", "", "folder to write the files into, instead of printing them")
	_ = cmd.MarkFlagDirname("output")
	return cmd
}

func writeFiles(cmd *cobra.Command, preview *controller.Preview, output string) error {
	rendered, err := preview.Files()
	if err != nil {
		return err
	}
	if output != "" {
		return controller.WriteFiles(output, rendered)
	}
	for i, file := range rendered {
		if i > 0 {
			fmt.Fprintln(cmd.OutOrStdout())
		}
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "==> %s <==\n%s", file.Name, file.Text); err != nil {
			return err
		}
	}
	return nil
}
