package main

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/limpet-gateway/limpet/controller/graph"
)

// objectFlags are those of all commands that read objects.
type objectFlags struct {
	paths          []string
	address        string
	portOffset     int
	controllerName string
	trusted        []string
}

func (f *objectFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.paths, "filename", "f", nil,
		"file with objects in YAML or JSON, or folder with such files, read with all below it; can be repeated")
	flags.StringVar(&f.address, "address", "127.0.0.1", "where Gateways listen that have no spec.addresses; 0.0.0.0 is everywhere")
	flags.IntVar(&f.portOffset, "port-offset", defaultOffset(),
		"added to a listener's port to give the one that is bound, as ports below 1024 need root: 8000, and 0 for root")
	flags.StringVar(&f.controllerName, "controller-name", graph.DefaultControllerName, "controllerName of the GatewayClasses to serve")
	flags.StringArrayVar(&f.trusted, "trusted-proxy", nil,
		"addresses (10.0.0.0/8) of proxies in front, whose X-Forwarded-* headers are believed; can be repeated")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	cmd.Flags().SortFlags = false
	// What a shell makes of -f manifests/*.yaml are further arguments.
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if f.paths = append(f.paths, args...); len(f.paths) == 0 {
			return usage("no objects to read: give files or folders with -f")
		}
		return nil
	}
}

func defaultOffset() int {
	if os.Geteuid() == 0 {
		return 0
	}
	return 8000
}

// graph are the options of a Graph.
func (f *objectFlags) graph() (graph.Options, error) {
	address, err := netip.ParseAddr(f.address)
	if err != nil {
		return graph.Options{}, usage("--address %q is no IP address: give one such as 127.0.0.1 or ::1", f.address)
	}
	if f.portOffset < 0 || f.portOffset > 65534 {
		return graph.Options{}, usage("--port-offset %d: give a number from 0 to 65534", f.portOffset)
	}
	return graph.Options{ControllerName: f.controllerName, DefaultAddress: address, PortOffset: f.portOffset}, nil
}

// trustedProxies are the prefixes of --trusted-proxy.
func (f *objectFlags) trustedProxies() ([]netip.Prefix, error) {
	return prefixes("--trusted-proxy", f.trusted)
}

// prefixes reads what a flag gives; an address is a prefix of its own.
func prefixes(flag string, texts []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if address, addressErr := netip.ParseAddr(text); addressErr == nil {
			prefix, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			return nil, usage("%s %q is no range of addresses: give one such as 10.0.0.0/8 or 192.0.2.1", flag, text)
		}
		all = append(all, prefix.Masked())
	}
	return all, nil
}

// existing says which path is not there: a typing error must not look like an empty folder.
func (f *objectFlags) existing() error {
	for _, path := range f.paths {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && path != "-" {
			return usage("-f %s: there is no such file or folder", path)
		}
	}
	return nil
}

// apart says whether what Limpet writes lies in a folder that it reads.
func (f *objectFlags) apart(flag, written string) error {
	for _, path := range f.paths {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			continue
		}
		between, err := filepath.Rel(resolved(path), resolved(written))
		hidden := between != "." && strings.HasPrefix(between, ".") || strings.Contains(between, "/.")
		if err == nil && !hidden { // "../" counts as hidden too: it is elsewhere.
			return usage("%s %s lies in the folder %s, which -f reads: put it elsewhere", flag, written, path)
		}
	}
	return nil
}

// resolved is a path without links, as far as it exists.
func resolved(path string) string {
	full, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if target, err := filepath.EvalSymlinks(full); err == nil {
		return target
	}
	if parent := filepath.Dir(full); parent != full {
		return filepath.Join(resolved(parent), filepath.Base(full))
	}
	return full
}
