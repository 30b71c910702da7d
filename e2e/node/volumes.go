package node

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// mount writes a pod's volumes and returns where each mount path is.
func (n *Node) mount(pod *corev1.Pod) (map[string]string, error) {
	volumes := map[string]string{}
	for _, volume := range pod.Spec.Volumes {
		content, items, err := n.volume(pod.Namespace, volume)
		if err != nil {
			return nil, err
		}
		folder := filepath.Join(n.options.Dir, string(pod.UID), volume.Name)
		if err := writeVolume(folder, content, items); err != nil {
			return nil, err
		}
		volumes[volume.Name] = folder
	}
	mounts := map[string]string{}
	for _, mount := range pod.Spec.Containers[0].VolumeMounts {
		mounts[mount.MountPath] = volumes[mount.Name]
	}
	return mounts, nil
}

// volume is what a volume holds.
func (n *Node) volume(namespace string, volume corev1.Volume) (map[string][]byte, []corev1.KeyToPath, error) {
	content := map[string][]byte{}
	switch {
	case volume.Secret != nil:
		object, err := n.options.Server.Get(secrets, types.NamespacedName{Namespace: namespace, Name: volume.Secret.SecretName})
		if err != nil {
			return nil, nil, err
		}
		secret := &corev1.Secret{}
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, secret)
		return secret.Data, volume.Secret.Items, err
	case volume.ConfigMap != nil:
		object, err := n.options.Server.Get(configMaps, types.NamespacedName{Namespace: namespace, Name: volume.ConfigMap.Name})
		if err != nil {
			return nil, nil, err
		}
		config := &corev1.ConfigMap{}
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, config)
		for key, text := range config.Data {
			content[key] = []byte(text)
		}
		return content, volume.ConfigMap.Items, err
	}
	return nil, nil, fmt.Errorf("volume %s: neither a Secret nor a ConfigMap", volume.Name)
}

func writeVolume(folder string, content map[string][]byte, items []corev1.KeyToPath) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if len(items) == 0 {
		for key := range content {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		data, there := content[item.Key]
		if !there {
			return fmt.Errorf("there is no key %s", item.Key)
		}
		if err := os.WriteFile(filepath.Join(folder, item.Path), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// environment is that of a pod's only container. A value below a mount path leads to where the volume is.
func environment(pod *corev1.Pod, address netip.Addr, mounts map[string]string) []string {
	all := []string{"POD_IP=" + address.String()}
	for _, variable := range pod.Spec.Containers[0].Env {
		value := variable.Value
		if variable.ValueFrom != nil && variable.ValueFrom.FieldRef != nil {
			value = fieldOf(pod, variable.ValueFrom.FieldRef.FieldPath)
		}
		for mount, folder := range mounts {
			if rest, below := strings.CutPrefix(value, mount+"/"); below {
				value = filepath.Join(folder, rest)
			}
		}
		all = append(all, variable.Name+"="+value)
	}
	return all
}

func fieldOf(pod *corev1.Pod, path string) string {
	switch path {
	case "metadata.name":
		return pod.Name
	case "metadata.namespace":
		return pod.Namespace
	}
	return ""
}
