package graph

import gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

// readMirror returns none for a mirror whose backendRef is not valid: it "must be dropped from the Gateway", ResolvedRefs
// says so, and the rule is served without it.
func (d *ruleDraft) readMirror(field string, source *gatewayv1.HTTPRequestMirrorFilter) []Mirror {
	numerator, denominator := d.readShare(field, source)
	key, found := d.refs.backend(d.field+"."+field+".backendRef", &source.BackendRef)
	if !found {
		return nil
	}
	return []Mirror{{Backend: key, Numerator: numerator, Denominator: denominator}}
}

// readShare says how many requests are mirrored: all of them, if nothing is said.
func (d *ruleDraft) readShare(field string, source *gatewayv1.HTTPRequestMirrorFilter) (numerator, denominator int32) {
	const hundred = 100
	switch percent, fraction := source.Percent, source.Fraction; {
	case percent != nil && fraction != nil:
		d.refuse(field, "must not set both percent and fraction")
	case percent != nil:
		if *percent < 0 || *percent > hundred {
			d.refuse(field+".percent", "%d must be from 0 to 100", *percent)
		}
		return *percent, hundred
	case fraction != nil:
		numerator, denominator = fraction.Numerator, valueOr(fraction.Denominator, hundred)
		switch {
		case numerator < 0:
			d.refuse(field+".fraction.numerator", "%d must not be less than 0", numerator)
		case denominator < 1:
			d.refuse(field+".fraction.denominator", "%d must be at least 1", denominator)
		case numerator > denominator:
			d.refuse(field+".fraction", "%d of %d is more than all requests", numerator, denominator)
		}
		return numerator, denominator
	}
	return hundred, hundred
}
