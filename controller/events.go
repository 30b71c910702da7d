package controller

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/status"
)

// eventSource tells users by Events of what is wrong with their objects. The same again and again is one Event that
// counts.
type eventSource struct {
	recorder events.EventRecorder
	view     status.View
}

func newEventSource(config *rest.Config, name string, view status.View, log *slog.Logger) (*eventSource, func(context.Context), error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("events: %w", err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.EventsV1()})
	run := func(ctx context.Context) {
		if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
			log.Error("no Events are written", "error", err)
		}
		<-ctx.Done()
		broadcaster.Shutdown()
	}
	return &eventSource{broadcaster.NewRecorder(scheme.Scheme, name), view}, run, nil
}

// maxNote is what an Event has room for.
const maxNote = 1000

// tell is for status.WriterOptions.
func (e *eventSource) tell(object status.Object, section string, c status.Condition) {
	name := cluster.Name{Kind: object.Kind}
	name.Namespace, name.Name = object.Namespace, object.Name
	live, _ := e.view.Live(name)
	note := c.Message
	if section != "" {
		note = section + ": " + note
	}
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote], "") + "..."
	}
	regarding := &corev1.ObjectReference{
		APIVersion: object.APIVersion, Kind: object.Kind, Namespace: object.Namespace, Name: object.Name,
		UID: live.UID, ResourceVersion: live.ResourceVersion,
	}
	e.recorder.Eventf(regarding, nil, corev1.EventTypeWarning, c.Reason, c.Type, "%s", note)
}
