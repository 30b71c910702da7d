package translate

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"net/netip"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// Every name that the data plane sees is made in this file. A name is a letter for its kind and a digest of what the
// thing is, never of where it stands in a list and never of anything random: names are equal on every replica, after
// every restart, and for a route that was deleted and created again.

const (
	// digestLength is 60 bits: among 100,000 names, two are equal with a probability below one in 10⁸.
	digestLength = 12
	// backendLength is 40 bits: a backend's part of a token only has to be told from the others of one rule.
	backendLength = 8
	// endpointLength is 65 bits of a keyed hash.
	endpointLength = 13
)

// lowerBase32 has only letters and digits that every context takes: file names, map keys, cookie names, tokens.
var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// digest is SHA-256 in lower-case base32, cut to digestLength.
func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(join(parts)))
	return lowerBase32.EncodeToString(sum[:])[:digestLength]
}

// join puts each part's length before it, so that no two lists of parts give the same text.
func join(parts []string) string {
	size := 0
	for _, part := range parts {
		size += len(part) + binary.MaxVarintLen16
	}
	text := make([]byte, 0, size)
	for _, part := range parts {
		text = binary.AppendUvarint(text, uint64(len(part)))
		text = append(text, part...)
	}
	return string(text)
}

func portID(gateway types.NamespacedName, address string, port uint16) string {
	return "p" + digest("port", gateway.Namespace, gateway.Name, address, strconv.Itoa(int(port)))
}

// tlsServerID differs by address too: a Gateway with two has each listener on both. Its first letter says what becomes of a
// connection: HTTPS is spoken within TLS, TLS is decrypted, or untouched.
func tlsServerID(listener *graph.Listener, address string) string {
	name := nameOf(listener)
	parts := append([]string{"tls", name.gateway.Namespace, name.gateway.Name, address}, name.ownParts()...)
	letter := map[graph.Protocol]string{graph.HTTPS: "t", graph.TLSTerminate: "d", graph.TLSPassthrough: "u"}[listener.Protocol]
	return letter + digest(parts...)
}

// ownParts are the listener's name within its Gateway. What stands in a set has more parts than a Gateway's own, and so is
// never called the same.
func (n listenerName) ownParts() []string {
	if n.set == (types.NamespacedName{}) {
		return []string{n.listener}
	}
	return []string{"set", n.set.Namespace, n.set.Name, n.listener}
}

func certificateID(secret types.NamespacedName) string {
	return digest("certificate", secret.Namespace, secret.Name)
}

func authorityID(source *graph.Authority) string { return digest("authority", source.Source) }

// virtualHostID has the same length for all, and so none is the beginning of another: that keeps their path keys apart.
func virtualHostID(listener listenerName, hostname string) string {
	parts := append([]string{"host", listener.gateway.Namespace, listener.gateway.Name}, listener.ownParts()...)
	return "v" + digest(append(parts, hostname)...)
}

func gatewayOwner(gateway types.NamespacedName) model.Owner {
	return model.Owner("Gateway " + gateway.String())
}

// portOwner is one address and port of a Gateway: what cannot be bound leaves the others in place.
func portOwner(gateway types.NamespacedName, address netip.Addr, bind uint16) model.Owner {
	return model.Owner("Port " + gateway.String() + " " + netip.AddrPortFrom(address, bind).String())
}

func secretOwner(secret types.NamespacedName) model.Owner {
	return model.Owner("Secret " + secret.String())
}

func routeOwner(route *graph.Route) model.Owner {
	return model.Owner(route.Kind + " " + route.Key().String())
}

// backendName is how people know a backend, and its key.
func backendName(key graph.BackendKey) string {
	if key.Name == "" {
		return key.Kind // none of the API's
	}
	name := key.Kind + "/" + key.Namespace + "/" + key.Name
	if key.Port == 0 {
		return name
	}
	return name + "/" + strconv.Itoa(int(key.Port))
}

func backendOwner(key graph.BackendKey) model.Owner {
	return model.Owner(key.Kind + " " + key.Namespace + "/" + key.Name)
}

// backendDigest is a backend's part of tokens and cookie names.
func backendDigest(key graph.BackendKey) string {
	return digest("backend", backendName(key))[:backendLength]
}

// namer names endpoints: their names go out to clients, and must neither reveal a pod nor be guessed.
type namer struct{ key []byte }

// endpoint returns an endpoint's name, and the server id that it gets unless another endpoint has it.
func (n namer) endpoint(e *graph.Endpoint) (string, int32) {
	mac := hmac.New(sha256.New, n.key)
	mac.Write([]byte(join(append(endpointIdentity(e), strconv.Itoa(int(e.Address.Port()))))))
	sum := mac.Sum(nil)
	// The id is made of other bits than the name: two names that differ in their end only do not get ids that do.
	id := int32(binary.BigEndian.Uint32(sum[16:20]) & maxServerID)
	return lowerBase32.EncodeToString(sum)[:endpointLength], max(id, 1)
}

// endpointIdentity is the pod, so that one that inherits an address does not inherit its sessions.
func endpointIdentity(e *graph.Endpoint) []string {
	switch {
	case e.PodUID != "":
		return []string{"uid", string(e.PodUID)}
	case e.Pod.Name != "":
		return []string{"pod", e.Pod.Namespace, e.Pod.Name}
	default:
		return []string{"address", e.Address.Addr().String()}
	}
}
