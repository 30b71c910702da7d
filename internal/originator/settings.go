// Package originator speaks TLS to endpoints for HAProxy, where HAProxy's own rules are not those that are wanted: it checks a
// server's certificate against the name that it sent, and cannot accept one for other names or URIs.
//
// What comes in are connections of HAProxy at a unix socket. Each begins with a PROXY protocol header (version 2) whose TLV
// of type 0xE1 says "<id>:<ip>:<port>": the endpoint, and the settings in <dir>/current/origins/<id>.json. What goes out is a
// TLS connection to that endpoint. It must never send a byte of a request before the certificate was accepted.
//
// The contract with who renders a server for HAProxy: the asset FileName(id) has the text Settings.Text(), and the server has the
// address and the options that Server gives (with "proto h2" added where Protocols is "h2" alone). HAProxy sees a connection that
// is closed at once where an endpoint could not be reached or its certificate was not accepted, and answers 502.
package originator

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
)

// Settings say how to speak to the endpoints of one backend.
type Settings struct {
	// CA is a bundle of certificates, PEM; "" stands for the system's.
	CA string `json:"ca,omitempty"`
	// ServerName is sent. It must be in the certificate if there are neither DNSNames nor URIs, and else counts for nothing.
	ServerName string `json:"serverName"`
	// DNSNames and URIs: one of them must be in the certificate. A DNS name may begin with "*.".
	DNSNames []string `json:"dnsNames,omitempty"`
	URIs     []string `json:"uris,omitempty"`
	// Certificate is shown to the endpoint, with its key, PEM; "" for none.
	Certificate string `json:"certificate,omitempty"`
	// Protocols are offered by ALPN. If any are, one of them must be chosen.
	Protocols []string `json:"protocols,omitempty"`
}

// Text is the file's content. It holds a key if there is a Certificate.
func (s Settings) Text() string {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // strings cannot fail
	}
	return string(text) + "\n"
}

// FileName is that of the settings in a generation's folder.
func FileName(id string) string { return "origins/" + id + ".json" }

// Socket is where the originator of an installation listens.
func Socket(dir string) string { return filepath.Join(dir, "run", "originate.sock") }

// Server gives the address and the options of the server that leads to an endpoint by way of the originator.
func Server(socket, id string, endpoint netip.AddrPort) (address, options string) {
	return "unix@" + socket, fmt.Sprintf("send-proxy-v2 set-proxy-v2-tlv-fmt(0x%X) %s:%s", tlvType, id, endpoint)
}

// target is what the TLV says.
func target(value string) (id string, endpoint netip.AddrPort, err error) {
	id, rest, _ := strings.Cut(value, ":")
	endpoint, err = netip.ParseAddrPort(rest)
	if err == nil && (id == "" || strings.ContainsAny(id, "/.\x00")) {
		err = fmt.Errorf("%q is no name of settings", id)
	}
	return id, endpoint, err
}
