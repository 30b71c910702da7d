package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/limpet-gateway/limpet/controller"
	"github.com/limpet-gateway/limpet/controller/status"
)

func newCheck() *cobra.Command {
	var objects objectFlags
	var output string
	cmd := &cobra.Command{
		Use:   "check -f PATH...",
		Short: "Print the status that every object would get",
		Long: `Check prints the status that every object would get, as if HAProxy had taken it. It needs no HAProxy.

Exit codes: 0 if all is well; 1 if an object is refused, wholly or in part, or a file is broken; 2 if
the command line is wrong. What is wrong with a file goes to standard error, with its line.`,
		Example: `  limpet check -f ./manifests
  limpet check -f gateway.yaml -f routes.yaml -o yaml
  kubectl get gatewayclasses,gateways,httproutes,services,endpointslices -A -o yaml | limpet check -f -`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "table" && output != "yaml" {
				return usage("--output %q: give table or yaml", output)
			}
			return check(cmd, &objects, output)
		},
	}
	objects.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func check(cmd *cobra.Command, objects *objectFlags, output string) error {
	preview, broken, err := objects.preview(cmd)
	if err != nil {
		return err
	}
	if err := writeStatuses(cmd, preview, output); err != nil {
		return err
	}
	if broken || slices.ContainsFunc(preview.Updates, (*status.Update).Refused) {
		return &exitError{code: exitRefused}
	}
	return nil
}

func writeStatuses(cmd *cobra.Command, preview *controller.Preview, output string) error {
	if output == "table" {
		return writeTable(cmd.OutOrStdout(), preview)
	}
	text, err := status.Marshal(preview.Updates)
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}
