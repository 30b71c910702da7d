package placement

import (
	"fmt"
	"slices"
	"testing"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/internal/table"
)

func TestTheNamesThatAreUsedMostBecomeLiteral(t *testing.T) {
	edit := table.Table[*model.Rule]{}.Edit()
	add := func(id string, carrier model.Carrier, name string) {
		edit.Set(id, &model.Rule{ID: id, Split: []model.Share{{Session: &model.Session{Carrier: carrier, Name: name}}}})
	}
	for i := range 20 {
		add(fmt.Sprintf("a%d", i), model.Cookie, fmt.Sprintf("once%02d", i))
		add(fmt.Sprintf("b%d", i), model.Cookie, "often")
		add(fmt.Sprintf("c%d", i), model.HeaderLine, "odd'name")
	}
	add("d", model.HeaderLine, "X-Session")
	cookies, headers := Names(model.Config{Rules: edit.Table()})
	if len(cookies) != literalNames || !slices.Contains(cookies, "often") || !slices.IsSorted(cookies) {
		t.Errorf("cookies: %v", cookies)
	}
	if !slices.Equal(headers, []string{"X-Session", "odd'name"}) {
		t.Errorf("headers: %v", headers)
	}
}
