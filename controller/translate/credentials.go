package translate

import "github.com/limpet-gateway/limpet/controller/model"

// credentials are the certificates and authorities that the frame and the backends refer to, each with the number of those
// that do.
type credentials struct {
	certificates counted[model.Certificate]
	authorities  counted[model.Authority]
}

// holding is what one holder refers to, by ID. It is remembered so that it can be given back.
type holding struct {
	certificates map[string]*model.Certificate
	authorities  map[string]*model.Authority
}

// counted are the values in use. The holder that came last says what a value is: all are read from the same objects.
type counted[V any] map[string]*use[V]

type use[V any] struct {
	value *V
	users int
}

func newCredentials() credentials {
	return credentials{certificates: counted[model.Certificate]{}, authorities: counted[model.Authority]{}}
}

// hold counts a holder.
func (c *credentials) hold(h holding, changed *changes) {
	c.certificates.hold(h.certificates, &changed.certificates)
	c.authorities.hold(h.authorities, &changed.authorities)
}

// release ends a holder's use.
func (c *credentials) release(h holding, changed *changes) {
	c.certificates.release(h.certificates, &changed.certificates)
	c.authorities.release(h.authorities, &changed.authorities)
}

func (c counted[V]) hold(values map[string]*V, changed *map[string]*V) {
	for id, value := range values {
		if c[id] == nil {
			c[id] = &use[V]{}
		}
		c[id].users++
		c[id].value = value
		set(changed, id, value)
	}
}

func (c counted[V]) release(values map[string]*V, changed *map[string]*V) {
	for id := range values {
		if c[id].users--; c[id].users == 0 {
			delete(c, id)
			set(changed, id, nil)
		}
	}
}
