package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/limpet-gateway/limpet/dataplane"
)

// newHAProxy is for the container beside the controller.
func newHAProxy() *cobra.Command {
	dir, binary := "", ""
	cmd := &cobra.Command{
		Use:   "haproxy --dir DIR",
		Short: "Become the HAProxy that limpet controller drives, as soon as it has a configuration",
		Long: `Haproxy waits for the first configuration that limpet controller writes into the folder, and then becomes
HAProxy, in the same process. Started again it serves the last good configuration at once, with or without a
controller. SIGUSR1 lets it finish what is under way.`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), endSignals...)
			defer stop()
			path, err := findHAProxy(ctx, binary)
			if err != nil {
				return err
			}
			return dataplane.RunHAProxy(ctx, path, dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", defaultSharedDir, "folder that is shared with limpet controller")
	cmd.Flags().StringVar(&binary, "haproxy", os.Getenv("HAPROXY"), "HAProxy 3.0 or newer; $HAPROXY, else haproxy in PATH")
	return cmd
}

// defaultSharedDir is where the containers of a pod have their common folder.
const defaultSharedDir = "/run/limpet"

// endSignals end every command of ours that runs on. SIGUSR1 is what ends HAProxy softly, and the image's signal.
var endSignals = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1}
