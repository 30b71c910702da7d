package templates

import (
	"strings"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/placement"
)

// slotView is a slot and what is special about it.
type slotView struct {
	Name string
	// TCP slots forward connections.
	TCP bool
	// Attempts beyond the first, and HAProxy's words for when; none for a slot without a profile.
	Attempts int
	On       string
	// Repeats requests that were sent.
	Repeats bool
}

// slotProfile is one slot with its profile.
type slotProfile struct {
	name string
	model.Profile
}

func slotProfiles(place placement.Placement) []slotProfile {
	names := place.SlotNames()
	profiles := make([]slotProfile, len(names))
	for i, name := range names {
		profiles[i] = slotProfile{name, place.Profile(name)}
	}
	return profiles
}

func (s slotProfile) view() slotView {
	if !s.Set {
		return slotView{Name: s.name, TCP: s.TCP}
	}
	repeats := s.Attempts > 0 && (s.Codes != "" || s.Timeouts)
	return slotView{Name: s.name, Attempts: s.Attempts, On: retryOn(s.Retry), Repeats: repeats}
}

// retryOn follows GEP-1731: what could not be connected to has not seen the request, and is tried again; what may have been
// processed is not, but for the codes that the rule names and for attempts that took longer than it gives them.
func retryOn(retry model.Retry) string {
	if retry.Attempts == 0 {
		return "none"
	}
	words := []string{"conn-failure"}
	if retry.Codes != "" {
		words = append(words, retry.Codes)
	}
	if retry.Timeouts {
		words = append(words, "response-timeout")
	}
	return strings.Join(words, " ")
}
