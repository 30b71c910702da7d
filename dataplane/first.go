package dataplane

import (
	"context"
	"errors"
	"fmt"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
	"github.com/limpet-gateway/limpet/dataplane/placement"
)

// first makes a generation for an HAProxy of another container to start with, before anything is known of what it is to
// serve: it says that it is not ready, and takes no traffic.
func (d *driver) first(ctx context.Context) error {
	set, _, err := d.Render(model.Config{Frame: model.Frame{Incomplete: true}}, placement.Placement{})
	if err != nil {
		return fmt.Errorf("dataplane: the first configuration: %w", err)
	}
	number, _, err := d.store.Write(set, placement.Placement{})
	if err != nil {
		return err
	}
	if err := haproxy.Check(ctx, d.Binary, d.store.Path(number)); err != nil {
		return errors.Join(fmt.Errorf("dataplane: the first configuration: %w", err), d.store.Remove(number))
	}
	if err := d.store.Switch(number); err != nil {
		return err
	}
	d.logger.Info("HAProxy can start", "generation", number)
	d.generation, d.running = number, set
	d.behind.has(number, set, placement.Placement{})
	return nil
}

// restartedElsewhere notes that HAProxy was started anew, by itself: with the files, not with what it was told since.
func (d *driver) restartedElsewhere() {
	was, is := d.incarnation, d.process.Incarnation()
	d.incarnation = is
	if was == 0 || was == is || d.generation == 0 {
		return
	}
	d.logger.Warn("HAProxy was started anew", "generation", d.generation)
	if d.behind.busy {
		d.doubts = []string{"HAProxy was started while its files were written"}
	}
	d.behind.wait(d)
	d.empty()
	d.running = d.behind.set
}
