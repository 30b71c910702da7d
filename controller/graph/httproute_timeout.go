package graph

import (
	"slices"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

const (
	// maxTimeout is the longest that HAProxy can wait (2³¹ ms), in whole days.
	maxTimeout = 24 * 24 * time.Hour
	// defaultAttempts is the CRD's.
	defaultAttempts = 1
	// maxAttempts keeps what one request can cost within reason: HAProxy tries again at once.
	maxAttempts = 100
)

// retryable are the status codes that HAProxy can try again for.
var retryable = []int{401, 403, 404, 408, 425, 429, 500, 501, 502, 503, 504}

func (d *ruleDraft) readTimeouts() {
	source := d.source.Timeouts
	if source == nil {
		return
	}
	request := d.readTimeout("timeouts.request", source.Request)
	backend := d.readTimeout("timeouts.backendRequest", source.BackendRequest)
	if request > 0 && backend > request && backend != Unlimited {
		d.refuse("timeouts.backendRequest", "%q must not be longer than request, which is %q", *source.BackendRequest, *source.Request)
	}
	d.node.RequestTimeout, d.node.BackendTimeout = request, backend
}

func (d *ruleDraft) readTimeout(field string, source *gatewayv1.Duration) time.Duration {
	if source == nil {
		return 0
	}
	timeout, valid := parseDuration(string(*source))
	switch {
	case !valid:
		d.refuse(field, "%s is not a duration such as 500ms or 1m30s", quoted(string(*source)))
	case timeout > maxTimeout:
		d.refuse(field, "%q must not be longer than 24 days; 0s disables the timeout", *source)
	case timeout == 0:
		return Unlimited
	}
	return timeout
}

// readRetry: GEP-1731.
func (d *ruleDraft) readRetry() {
	source := d.source.Retry
	if source == nil {
		return
	}
	retry := &Retry{Attempts: valueOr(source.Attempts, defaultAttempts)}
	switch {
	case retry.Attempts < 0:
		d.refuse("retry.attempts", "%d must not be less than 0", retry.Attempts)
	case retry.Attempts > maxAttempts:
		d.refuse("retry.attempts", "%d must not be more than %d", retry.Attempts, maxAttempts)
	}
	for i, code := range source.Codes {
		if !slices.Contains(retryable, int(code)) {
			d.refuse(indexed("retry.codes", i), "%d is not one of the codes that Limpet can try again for: %v", code, retryable)
		}
		retry.Codes = append(retry.Codes, int(code))
	}
	if source.Backoff != nil {
		// "Implementations which retry immediately with no backoff MUST NOT advertise support for this field and MUST set the
		// Accepted Condition for the Route to status: False".
		d.refuse("retry.backoff", "must not be set: Limpet tries again at once")
	}
	slices.Sort(retry.Codes)
	retry.Codes = slices.Compact(retry.Codes)
	if retry.Attempts == 0 {
		retry.Codes = nil
	}
	d.node.Retry = retry
}
