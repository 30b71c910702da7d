package main

import (
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/limpet-gateway/limpet/internal/originator"
)

// newOriginate is for serve, which starts it where backends are to be known by subjectAltNames.
func newOriginate() *cobra.Command {
	var log logFlags
	dir := ""
	cmd := &cobra.Command{
		Use:    "originate --dir DIR",
		Short:  "Speak TLS to endpoints for HAProxy; serve starts this by itself",
		Hidden: true,
		Args:   noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := log.logger(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), endSignals...)
			defer stop()
			return originator.Run(ctx, dir, logger)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", defaultDir(), "folder of limpet serve or limpet controller")
	log.add(cmd)
	return cmd
}
