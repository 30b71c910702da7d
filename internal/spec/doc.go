// Package spec holds the duties that the Gateway API's own text lays on Limpet, and what shows that each is met.
//
// The text of the specification comes in, from the module that go.mod names, together with docs/spec/coverage.yaml, which
// people write; sentences with their sources go out, what is wrong between both, and the page docs/spec/README.md. It must
// never judge: whether a test really shows a sentence is for whoever writes the entry. Nothing that is served imports it.
package spec
