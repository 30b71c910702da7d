package expose

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/limpet-gateway/limpet/internal/apiservertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(apiservertest.Tests{M: m}) }
