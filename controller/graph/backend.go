package graph

// backends makes and remembers the Backends of one Graph.
type backends struct {
	byKey map[BackendKey]*Backend
}

// Backend returns the Service's port with its endpoints, nil if there is no such Service or port. The pointer stays the
// same until the Service or one of its EndpointSlices changes, also from one Graph of a Builder to the next.
func (g *Graph) Backend(key BackendKey) *Backend { return g.backends.byKey[key] }
