package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Equal says that two statuses say the same, whenever it became so.
func Equal(a, b *Update) bool {
	return a == b || a.Object == b.Object && equality.Semantic.DeepEqual(a.withTimes(nil, metav1.Time{}), b.withTimes(nil, metav1.Time{}))
}

// withTimes is a copy in which every condition has a time: that of the same condition of the earlier Update if it had
// the same status then, else now.
func (u *Update) withTimes(earlier *Update, now metav1.Time) *Update {
	timed := &Update{Object: u.Object, Status: u.Status.DeepCopy()}
	before := map[string][]metav1.Condition{}
	if earlier != nil {
		for _, section := range earlier.Sections() {
			before[section.Name] = section.Conditions
		}
	}
	for _, section := range timed.Sections() {
		for i := range section.Conditions {
			c := &section.Conditions[i]
			c.LastTransitionTime = now
			if was, there := find(before[section.Name], c.Type); there && was.Status == c.Status {
				c.LastTransitionTime = was.LastTransitionTime
			}
		}
	}
	return timed
}

// seconds is a time as the API holds it.
func seconds(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }
