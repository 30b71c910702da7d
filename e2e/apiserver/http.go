package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// target is what the path of a request names.
type target struct {
	kind        *kind
	gvk         schema.GroupVersionKind
	name        types.NamespacedName
	subresource string
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to, err := s.target(r.URL.Path)
	if err != nil {
		fail(w, err)
		return
	}
	if to.kind.name == "Pod" && to.subresource == "log" {
		s.serveLog(w, r, to)
		return
	}
	answer, err := s.answer(r, to)
	if err != nil {
		fail(w, err)
		return
	}
	status := http.StatusOK
	if r.Method == http.MethodPost {
		status = http.StatusCreated
	}
	write(w, status, answer)
}

// target reads /api/v1/… and /apis/<group>/<version>/…, then [namespaces/<namespace>/]<plural>[/<name>[/<subresource>]].
func (s *Server) target(path string) (target, error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var to target
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		to.gvk.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		to.gvk.Group, to.gvk.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return to, notServed(path)
	}
	if len(parts) >= 3 && parts[0] == "namespaces" && parts[2] != "status" {
		to.name.Namespace, parts = parts[1], parts[2:]
	}
	plural := parts[0]
	if len(parts) > 1 {
		to.name.Name = parts[1]
	}
	if len(parts) > 2 {
		to.subresource = parts[2]
	}
	var err error
	if to.kind, err = s.find(to.gvk, func(k *kind) bool { return k.plural == plural }); err != nil {
		return to, notServed(path)
	}
	to.gvk.Kind = to.kind.name
	return to, nil
}

func notServed(path string) error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "nothing is served at "+path, 0, true)
}

func (s *Server) answer(r *http.Request, to target) (any, error) {
	switch {
	case r.Method == http.MethodGet && to.name.Name == "":
		return s.answerList(r, to)
	case r.Method == http.MethodGet:
		object, err := s.Get(to.gvk, to.name)
		return as(object, to.gvk), err
	case r.Method == http.MethodPost && to.name.Name == "":
		object, err := read(r, to)
		if err != nil {
			return nil, err
		}
		object, err = s.Create(object)
		return as(object, to.gvk), err
	case r.Method == http.MethodPut:
		object, err := read(r, to)
		if err != nil {
			return nil, err
		}
		return s.answerUpdate(object, to)
	case r.Method == http.MethodPatch:
		object, err := s.patched(r, to)
		if err != nil {
			return nil, err
		}
		return s.answerUpdate(object, to)
	case r.Method == http.MethodDelete && to.name.Name != "":
		if err := s.Delete(to.gvk, to.name); err != nil {
			return nil, err
		}
		return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}, nil
	}
	return nil, apierrors.NewMethodNotSupported(to.kind.resource(), r.Method)
}

func (s *Server) answerUpdate(object *unstructured.Unstructured, to target) (any, error) {
	update := s.Update
	if to.subresource == "status" {
		update = s.UpdateStatus
	}
	object, err := update(object)
	return as(object, to.gvk), err
}

func (s *Server) answerList(r *http.Request, to target) (any, error) {
	query := r.URL.Query()
	if query.Get("watch") != "" || query.Get("fieldSelector") != "" {
		return nil, apierrors.NewBadRequest("watch and fieldSelector are not served")
	}
	selector, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	items := []any{}
	for _, object := range s.List(to.gvk) {
		if (to.name.Namespace == "" || object.GetNamespace() == to.name.Namespace) && selector.Matches(labels.Set(object.GetLabels())) {
			items = append(items, as(object, to.gvk))
		}
	}
	return map[string]any{
		"apiVersion": to.gvk.GroupVersion().String(), "kind": to.kind.name + "List", "metadata": map[string]any{}, "items": items,
	}, nil
}

// patched is an object with a request's changes.
func (s *Server) patched(r *http.Request, to target) (*unstructured.Unstructured, error) {
	object, err := s.Get(to.gvk, to.name)
	if err != nil {
		return nil, err
	}
	if kind := r.Header.Get("Content-Type"); kind != string(types.MergePatchType) {
		return nil, apierrors.NewBadRequest("patches of type " + kind + " are not served")
	}
	patch, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return parse(after, to)
}

func read(r *http.Request, to target) (*unstructured.Unstructured, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	return parse(data, to)
}

func parse(data []byte, to target) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	object.SetGroupVersionKind(to.gvk)
	if to.name.Name != "" {
		object.SetName(to.name.Name)
	}
	if to.name.Namespace != "" {
		object.SetNamespace(to.name.Namespace)
	}
	return object, nil
}

// as is an object in the version that was asked for.
func as(object *unstructured.Unstructured, gvk schema.GroupVersionKind) any {
	if object == nil {
		return nil
	}
	shallow := make(map[string]any, len(object.Object))
	for key, value := range object.Object {
		shallow[key] = value
	}
	shallow["apiVersion"], shallow["kind"] = gvk.GroupVersion().String(), gvk.Kind
	return shallow
}

func (s *Server) serveLog(w http.ResponseWriter, r *http.Request, to target) {
	var since time.Time
	if text := r.URL.Query().Get("sinceTime"); text != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, text); err != nil {
			fail(w, apierrors.NewBadRequest(err.Error()))
			return
		}
	}
	if _, err := s.Get(to.gvk, to.name); err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	if err := s.Logs(to.name, since, w); err != nil {
		fail(w, err)
	}
}

func fail(w http.ResponseWriter, err error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	body := status.Status()
	body.APIVersion, body.Kind = "v1", "Status"
	write(w, int(body.Code), body)
}

func write(w http.ResponseWriter, code int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		code, data = http.StatusInternalServerError, fmt.Appendf(nil, "%q", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(data)
}
