// Archive makes an OCI image archive of one static program, which is all that the image holds:
//
//	archive -o FILE -name REFERENCE[,REFERENCE…] PROGRAM
//
// The same program gives the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
	// nameOf is the annotation in which containerd looks for an image's whole name.
	nameOf = "io.containerd.image.name"
)

func main() {
	out := flag.String("o", "", "the archive's `file`")
	names := flag.String("name", "", "the image's `references`, with registry and tag, separated by commas")
	flag.Parse()
	if *out == "" || *names == "" || flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := write(*out, strings.Split(*names, ","), flag.Arg(0)); err != nil {
		fmt.Fprintf(os.Stderr, "archive: %v\n", err)
		os.Exit(1)
	}
}

// blob is a part of an image, which others refer to by its descriptor.
type blob struct {
	descriptor
	content []byte
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type object = map[string]any

func write(out string, names []string, program string) error {
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	base := filepath.Base(program)
	layer := newBlob(layerType, tarOf(file{base, 0o755, text}))
	config := newBlob(configType, encode(object{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": object{"Entrypoint": []string{"/" + base}},
		"rootfs": object{"type": "layers", "diff_ids": []string{layer.Digest}},
	}))
	manifest := newBlob(manifestType, encode(object{
		"schemaVersion": 2, "mediaType": manifestType, "config": config.descriptor, "layers": []descriptor{layer.descriptor},
	}))
	var index []descriptor
	for _, name := range names {
		entry := manifest.descriptor
		entry.Annotations = map[string]string{nameOf: name}
		index = append(index, entry)
	}
	files := []file{
		{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{"index.json", 0o644, encode(object{"schemaVersion": 2, "mediaType": indexType, "manifests": index})},
	}
	for _, part := range []blob{layer, config, manifest} {
		files = append(files, file{"blobs/sha256/" + strings.TrimPrefix(part.Digest, "sha256:"), 0o644, part.content})
	}
	return os.WriteFile(out, tarOf(files...), 0o644)
}

func newBlob(mediaType string, content []byte) blob {
	return blob{descriptor{MediaType: mediaType, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(content)), Size: len(content)}, content}
}

func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // maps, strings and numbers can be encoded
	}
	return text
}

type file struct {
	name    string
	mode    int64
	content []byte
}

func tarOf(files ...file) []byte {
	var out bytes.Buffer
	to := tar.NewWriter(&out)
	for _, f := range files {
		// Writing to memory cannot fail, and the sizes are right.
		_ = to.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Format: tar.FormatUSTAR})
		_, _ = to.Write(f.content)
	}
	_ = to.Close()
	return out.Bytes()
}
