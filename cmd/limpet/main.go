// Command limpet serves Gateway API manifests with an HAProxy whose sessions hold.
//
// What comes in are flags, what goes out is what the packages below make of them: each subcommand has a small file of
// its own, which turns flags into options. It must never hold logic that a test would want to call.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "unknown"

// The exit codes of every subcommand.
const (
	exitRefused = 1 // something does not work, or an object is refused
	exitUsage   = 2 // the command line is wrong
)

// exitError ends Limpet with a code, and with a message unless everything is said.
type exitError struct {
	code int
	err  error
}

// Error is the message, "" if everything is said.
func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap is the error that holds the message.
func (e *exitError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is main without the process.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return 0
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		exit = &exitError{exitRefused, err}
	}
	if exit.Error() != "" {
		fmt.Fprintln(stderr, "limpet:", err)
	}
	if exit.code == exitUsage {
		fmt.Fprintln(stderr, "limpet: see limpet --help")
	}
	return exit.code
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "limpet",
		Short: "A Gateway API controller that drives HAProxy and holds on to sessions",
		Long: `Limpet turns Gateway API objects into an HAProxy that holds on to sessions: a client with a session
reaches the same endpoint through scaling, rollouts, reloads and restarts.`,
		Example: `  limpet serve -f ./manifests           # serve what the YAML files in a folder say, and watch them
  limpet check -f ./manifests           # what is wrong with them? for CI
  limpet render -f ./manifests          # what would HAProxy get?`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitError{exitUsage, err} })
	root.SuggestionsMinimumDistance = 2
	root.AddCommand(newServe(), newController(), newRender(), newCheck(), newVersion(), newOriginate(), newHAProxy())
	return root
}

// noCommand is for what is given in a subcommand's place.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usage("there is no command %q: is %s meant?", args[0], near[0])
	}
	return usage("there is no command %q", args[0])
}
