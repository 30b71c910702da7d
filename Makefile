# Limpet: build, test, show. "make help" lists the targets. Each installs what it needs and the
# machine lacks: the Go toolchain that go.mod names, HAProxy, linters (hack/, kept in .cache).

# The toolchain that go.mod names, whatever the machine's own Go is.
export GOTOOLCHAIN := go$(shell sed -n 's/^go //p' go.mod)

SHELL       := bash
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
PKGS        ?= ./...
TESTFLAGS   ?=
BENCHFLAGS  ?=
FUZZTIME    ?= 20s
KEEP        ?=
IMAGE       ?= limpet:dev
RUN         ?=

# The packages with golden files: their tests know -update, by which they rewrite them.
GOLDEN_PACKAGES = $(sort $(dir $(shell grep -rl --include='*_test.go' internal/goldentest cmd controller dataplane internal templates 2>/dev/null)))

# Recipes start with this to have $$HAPROXY.
haproxy = HAPROXY="$$(hack/haproxy.sh)" && export HAPROXY

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nVariables: PKGS (%s), IMAGE, TESTFLAGS, BENCHFLAGS, FUZZTIME (%s), KEEP, RUN, HAPROXY (a path)\n' '$(PKGS)' '$(FUZZTIME)'

##@ Use
.PHONY: build
build: go ## build bin/limpet
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/limpet ./cmd/limpet

.PHONY: image
image: go ## build the image limpet:dev, and bin/image/limpet.tar of it
	CGO_ENABLED=0 GOOS=linux go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/image/limpet ./cmd/limpet
	@hack/image.sh $(IMAGE)

.PHONY: demo
demo: build ## show sessions that hold through scaling, reloads and crashes (KEEP=1 leaves it running)
	@$(haproxy) && KEEP=$(KEEP) LIMPET=$(CURDIR)/bin/limpet go run ./hack/demo

.PHONY: haproxy
haproxy: ## print the path of the HAProxy that everything here uses
	@hack/haproxy.sh

##@ Test
.PHONY: test
test: go gcc apiserver ## run all tests with the race detector, against a real HAProxy (one package at a time: they measure)
	@$(haproxy) && CGO_ENABLED=1 go test -race -p 1 -timeout 40m $(TESTFLAGS) $(PKGS)

.PHONY: torture
torture: go gcc ## run the tests of docs/field-reports.md at the scale that was reported (half an hour)
	@$(haproxy) && LIMPET_TORTURE=1 go test -count=1 -timeout 2h -run '^TestB[0-9]' $(TESTFLAGS) ./internal/behaviour

.PHONY: conformance e2e
conformance: go ## run Gateway API's conformance suite on the installed chart (RUN is one test), and write docs/conformance
	@RUN='$(RUN)' KEEP='$(KEEP)' IMAGE='$(IMAGE)' e2e/run.sh conformance
e2e: go ## run our own tests of what clients notice on the installed chart (RUN chooses some)
	@RUN='$(RUN)' KEEP='$(KEEP)' IMAGE='$(IMAGE)' e2e/run.sh e2e

.PHONY: apiserver cluster-build cluster-up cluster-down
apiserver: go ## compile the API server that some tests start, into .cache/cluster (once)
	@e2e/cluster/local.sh apiserver
cluster-build: go ## compile what a local Kubernetes node needs, into .cache/cluster (once)
	@e2e/cluster/local.sh build
cluster-up: go ## a cluster with Limpet on it, to look at (E2E_CLUSTER=local, kind or kubeconfig)
	@IMAGE='$(IMAGE)' e2e/run.sh up
cluster-down: go ## end it
	@e2e/run.sh down

.PHONY: conformance-files
conformance-files: go ## run the conformance suite's tests on `limpet serve`, without a cluster (RUN chooses some)
	@$(haproxy) && cd e2e && go test -count=1 -timeout 40m ./conformance -run 'TestLists|TestConformance/$(RUN)' $(TESTFLAGS)

.PHONY: golden
golden: go ## rewrite the golden files; review the diff
	@test -n "$(GOLDEN_PACKAGES)" || { echo "no package has golden files"; exit 1; }
	@$(haproxy) && go test -count=1 $(GOLDEN_PACKAGES:%=./%) -update
	@git --no-pager diff --stat

.PHONY: hot
hot: go ## measure what each kind of change takes, and rewrite docs/hot.md
	@$(haproxy) && go test -count=1 ./internal/behaviour -run TestHotOrNot -hot
	@git --no-pager diff --stat docs/hot.md

.PHONY: fuzz
fuzz: go ## run every fuzz target for FUZZTIME
	@$(haproxy) && FUZZTIME=$(FUZZTIME) hack/fuzz.sh $(PKGS)

.PHONY: bench
bench: build wrk ## measure ratios and growth (BENCHFLAGS are its flags)
	@$(haproxy) && LIMPET=$(CURDIR)/bin/limpet go run ./hack/bench $(BENCHFLAGS)

##@ Keep in order
.PHONY: check
check: go ## all that needs no HAProxy: format, vet, go.mod, import direction, linters, generated files
	@echo 'gofmt'; files="$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go'))" && \
	  test -z "$$files" || { echo "not formatted (gofmt -w): $$files"; exit 1; }
	@echo 'go vet'; go vet ./... && cd e2e && go vet ./...
	@echo 'go mod tidy'; go mod tidy -diff && cd e2e && go mod tidy -diff
	@echo 'import direction'; go test -count=1 ./internal/architecture
	@$(MAKE) --no-print-directory lint
	@echo 'generated files'; hack/generated.sh

.PHONY: lint
lint: go ## run the linters
	@lint="$$(hack/tools.sh golangci-lint)" && echo 'golangci-lint' && "$$lint" run && cd e2e && "$$lint" run
	@lint="$$(hack/tools.sh shellcheck)" && echo 'shellcheck' && "$$lint" -x -P SCRIPTDIR hack/*.sh e2e/*/*.sh .ci/run

.PHONY: generate
generate: go ## write what is generated from Go sources
	go generate ./...

.PHONY: clean
clean: ## remove what was built, and .cache
	rm -rf bin .cache coverage.out

.PHONY: go gcc wrk
go gcc wrk:
	@hack/tools.sh $@ >/dev/null
