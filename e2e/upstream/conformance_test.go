// Package upstream is Gateway API's own conformance suite, as it is, to be run on Limpet as its chart installs it.
//
// A cluster goes in by $KUBECONFIG, and how to run the suite by its own flags (see the script run in this module's folder); what
// comes out is its report. Nothing of the suite is changed here: that this test is not run where the suite's own are keeps
// those out that need the files of its sources.
package upstream

import (
	"testing"

	"sigs.k8s.io/gateway-api/conformance"
)

func TestConformance(t *testing.T) { conformance.RunConformance(t) }
