package controller

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/limpet-gateway/limpet/internal/keys"
)

const (
	keysEvery   = 30 * time.Second
	keysTimeout = 10 * time.Second
	keysRetry   = 2 * time.Second
)

// keySecret is where all replicas have their keys from. Whoever comes first makes it; a template that does would make new
// ones at every upgrade.
type keySecret struct {
	client client.Client
	name   types.NamespacedName
	log    *slog.Logger
	data   map[string][]byte
}

// load reads the keys, or makes them, however long the API server takes to answer.
func (s *keySecret) load(ctx context.Context) (keys.Keys, error) {
	var said time.Time
	for {
		loaded, err := s.once(ctx)
		if err == nil {
			return loaded, nil
		}
		if ctx.Err() != nil {
			return keys.Keys{}, ctx.Err()
		}
		if time.Since(said) > keysEvery {
			said = time.Now()
			s.log.Warn("cannot read the keys from the API server: nothing new is served until they are there",
				"secret", s.name.String(), "error", err)
		}
		select {
		case <-ctx.Done():
			return keys.Keys{}, ctx.Err()
		case <-time.After(keysRetry):
		}
	}
}

func (s *keySecret) once(ctx context.Context) (keys.Keys, error) {
	ctx, cancel := context.WithTimeout(ctx, keysTimeout)
	defer cancel()
	secret := &corev1.Secret{}
	err := s.client.Get(ctx, s.name, secret)
	if apierrors.IsNotFound(err) {
		if err = s.create(ctx, keys.Generate()); err == nil || apierrors.IsAlreadyExists(err) {
			// Of several replicas, all take what the first one made.
			err = s.client.Get(ctx, s.name, secret)
		}
	}
	if err != nil {
		return keys.Keys{}, err
	}
	loaded, err := keys.Parse(secret.Data)
	if err != nil {
		return keys.Keys{}, fmt.Errorf("%w: mend the Secret, or delete it to get new keys (every session then moves once)", err)
	}
	s.data = maps.Clone(secret.Data)
	return loaded, nil
}

func (s *keySecret) create(ctx context.Context, data map[string][]byte) error {
	return s.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.name.Namespace, Name: s.name.Name, Labels: map[string]string{"app.kubernetes.io/managed-by": "limpet"},
		},
		Data: data,
	})
}

// keep makes the Secret again when somebody deletes it: other keys would move every session.
func (s *keySecret) keep(ctx context.Context) {
	ticker := time.NewTicker(keysEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.keepOnce(ctx)
		}
	}
}

func (s *keySecret) keepOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, keysTimeout)
	defer cancel()
	if err := s.client.Get(ctx, s.name, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		return
	}
	switch err := s.create(ctx, s.data); {
	case err == nil:
		s.log.Warn("the Secret with the keys was deleted: it is made again, with the keys that are in use", "secret", s.name.String())
	case !apierrors.IsAlreadyExists(err):
		s.log.Error("the Secret with the keys was deleted and cannot be made again", "secret", s.name.String(), "error", err)
	}
}
