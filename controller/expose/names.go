package expose

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	serviceSuffix = "-limpet"
	maxLabel      = validation.DNS1035LabelMaxLength
	hashLength    = 10
)

// ServiceName is the name of a Gateway's Service: the Gateway's own with "-limpet", if that is a Service's name. Names of
// Gateways may be longer, have dots and begin with a digit; those are cut and told apart by a hash.
func ServiceName(gateway string) string {
	if name := gateway + serviceSuffix; len(validation.IsDNS1035Label(name)) == 0 {
		return name
	}
	return label(gateway, maxLabel-hashLength-1-len(serviceSuffix)) + "-" + hash(gateway) + serviceSuffix
}

// label makes something that begins a DNS label of a name.
func label(name string, most int) string {
	name = strings.ReplaceAll(name, ".", "-")
	if name[0] < 'a' || name[0] > 'z' {
		name = "x" + name
	}
	if len(name) > most {
		name = name[:most]
	}
	return strings.Trim(name, "-")
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:hashLength]
}

// isHostname says whether a load balancer's name can be shown in a status.
func isHostname(name string) bool { return name != "" && len(validation.IsDNS1123Subdomain(name)) == 0 }
