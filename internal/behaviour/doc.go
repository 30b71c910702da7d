// Package behaviour shows what Limpet does to requests: tests that send them through a real HAProxy and look at what
// client and back end see.
//
// Manifests go in, answers come out. A World is Limpet in process, from YAML to HAProxy, with back ends that are real
// servers and can be told to refuse, to swallow connections or to be slow. It has loopback addresses of its own, so that
// its Gateways have ports 80 and 443 like those of users, and Worlds never meet. Nothing here may be a mock, look into
// HAProxy where a request can tell, or be imported by anything.
package behaviour
