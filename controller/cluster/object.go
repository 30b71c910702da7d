package cluster

import "crypto/sha256"

// objectID is what an object is known by.
type objectID struct{ group, kind, namespace, name string }

// String is the object in words, as "HTTPRoute default/shop".
func (id objectID) String() string {
	if id.namespace == "" {
		return id.kind + " " + id.name
	}
	return id.kind + " " + id.namespace + "/" + id.name
}

// object is one object as it was read. Only merging changes it.
type object struct {
	id objectID
	// line counts from the first of the document, as 1.
	line  int
	value anyObject
	// sessions are those of a route that are written as older versions of the API had them.
	sessions oldSessions
	// content and spec are hashes: of everything, and of everything that makes a new generation.
	content, spec [sha256.Size]byte
	// generated says that the generation is ours to give: the object was written without one.
	generated bool
	// shown says that the value was in a snapshot: from then on it must not change.
	shown bool
}

func newObject(id objectID, e *encoded, value anyObject) *object {
	return &object{
		id:        id,
		line:      e.marks[0].line,
		value:     value,
		content:   sha256.Sum256(e.json),
		spec:      e.specHash(),
		generated: value.GetGeneration() == 0,
	}
}

// specHash is over all members but those that say what the object is, and how it fares.
func (e *encoded) specHash() [sha256.Size]byte {
	all := sha256.New()
	for _, m := range e.members {
		switch m.key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			all.Write([]byte(m.key))
			all.Write(e.json[m.start:m.end])
		}
	}
	return [sha256.Size]byte(all.Sum(nil))
}
