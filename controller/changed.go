package controller

import (
	"fmt"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// maxChanged is how many objects a message names.
const maxChanged = 10

// changedObjects names objects that differ between two Snapshots, but no more than a message has room for.
func changedObjects(old, now cluster.Snapshot) []string {
	all := cluster.Changed(old, now)
	if len(all) > maxChanged {
		all = append(all[:maxChanged], fmt.Sprintf("and %d more", len(all)-maxChanged))
	}
	return all
}
