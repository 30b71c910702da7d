package main

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

// logFlags say how to log.
type logFlags struct{ format, level string }

func (f *logFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.format, "log-format", "text", "text or json, on standard error")
	cmd.Flags().StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("log-level",
		cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp))
}

func (f *logFlags) logger(to io.Writer) (*slog.Logger, error) {
	var options slog.HandlerOptions
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.level)); err != nil {
		return nil, usage("--log-level %q: give debug, info, warn or error", f.level)
	}
	options.Level = level
	switch f.format {
	case "text":
		return slog.New(slog.NewTextHandler(to, &options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(to, &options)), nil
	default:
		return nil, usage("--log-format %q: give text or json", f.format)
	}
}
