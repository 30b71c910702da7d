// Command demo shows what Limpet is for: clients with sessions keep their endpoints while everything around them changes.
//
// It starts real back ends and `limpet serve` on loopback, opens sessions by cookie and by header, keeps requests coming,
// and then scales, reloads, kills, drains and removes. One line per phase says how many sessions moved. It exits 1 if one
// moved that should not have. KEEP=1 leaves everything running to try by hand.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const clients = 20

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := demo(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func demo(ctx context.Context) error {
	stage, err := newStage()
	if err != nil {
		return err
	}
	defer stage.strike()
	if err := stage.open(ctx); err != nil {
		return err
	}
	crowd := newCrowd(stage.address())
	defer crowd.stop()
	if err := crowd.arrive(ctx); err != nil {
		return err
	}
	fmt.Printf("%d clients with cookies and %d with headers have a session; one was given\n  Set-Cookie: %s\n", clients, clients, crowd.cookie)
	fmt.Printf("The configuration lies in %s\n\n", stage.configuration())
	crowd.walk(ctx)
	var failed []error
	for _, phase := range stage.phases() {
		if err := phase.play(ctx, stage, crowd); err != nil {
			failed = append(failed, err)
		}
	}
	crowd.stop()
	if err := errors.Join(failed...); err != nil {
		stage.tell()
		return err
	}
	fmt.Println("\nAll as it should be.")
	if os.Getenv("KEEP") != "" {
		return stage.keep(ctx)
	}
	return nil
}
