# make            builds bin/atoll (and the tools that it embeds)
# make demo       fetches a model and lets it do a job
# make test       runs all tests
# make help       lists the targets

SHELL := /bin/bash
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

GO      ?= go
PYTHON3 ?= python3
# The default build needs no C compiler.
export CGO_ENABLED ?= 0

GOFLAGS_BUILD := -trimpath
GOEXE         := $(shell $(GO) env GOEXE)
BIN           := bin/atoll$(GOEXE)

# Seconds of fuzzing per target, and how often a benchmark runs.
FUZZTIME ?= 10s
COUNT    ?= 1
# Package patterns of `make test`, `make race`, `make bench`.
PKGS ?= ./...
MODEL ?=

PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: all
all: wasm $(BIN) ## build bin/atoll

# The Go tool knows best whether anything changed.
.PHONY: $(BIN)
$(BIN):
	$(GO) build $(GOFLAGS_BUILD) -o $@ ./cmd/atoll

# ---- tools that run in the sandbox ----

WASM_DIR  := sandbox/toolset/wasm
WASM_SRC  := $(shell find tools-wasm sandbox/toolabi -name '*.go' -not -name '*_test.go') go.mod
WASM_DONE := $(WASM_DIR)/tools.json

.PHONY: wasm
wasm: $(WASM_DONE) ## build the tools for the sandbox (when their sources changed)

$(WASM_DONE): $(WASM_SRC)
	$(GO) run ./tools-wasm/internal/build
	@touch $@

# ---- tests ----

# Where the program keeps models, unless told otherwise.
ifneq ($(ATOLL_HOME),)
export ATOLL_MODELS ?= $(ATOLL_HOME)/models
endif
ifneq ($(XDG_DATA_HOME),)
export ATOLL_MODELS ?= $(XDG_DATA_HOME)/atoll/models
endif
export ATOLL_MODELS ?= $(HOME)/.local/share/atoll/models

# Tests that need a model skip where it is missing, and fail with CI=true.
.PHONY: test-models
test-models: all ## fetch the two small models that tests use
	@for model in smollm2-135m qwen2.5-coder-0.5b; do \
		$(BIN) model pull $$model >/dev/null || { [ "$$CI" != true ] && echo "the tests that need $$model are skipped"; } || exit 1; \
	done

.PHONY: test
test: wasm test-models ## run all tests
	$(GO) test -timeout 20m $(PKGS)

.PHONY: test-short
test-short: wasm ## run the tests that need no model and little time
	$(GO) test -short -timeout 10m $(PKGS)

.PHONY: race
race: wasm ## run the short tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -short -timeout 20m $(PKGS)

.PHONY: bench
bench: wasm ## run the benchmarks; COUNT=10 for benchstat
	$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) $(PKGS)

.PHONY: fuzz
fuzz: ## fuzz each target for FUZZTIME
	@set -e; for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg 2>/dev/null | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

# ---- checks ----

.PHONY: fmt
fmt: ## format the Go files
	gofmt -w $$(git ls-files '*.go')

.PHONY: lint
lint: ## vet, staticcheck, import table
	GOARCH=amd64 $(GO) vet ./...
	GOARCH=arm64 $(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) test ./cmd/internal/lint

.PHONY: format
format:
	@files=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$files" ]; then echo "not formatted (make fmt):"; echo "$$files"; exit 1; fi

.PHONY: cross
cross: wasm
	@set -e; for p in $(PLATFORMS); do \
		echo "build $$p"; \
		GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -o /dev/null ./cmd/atoll; \
		GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build ./...; \
	done

.PHONY: generate
generate: ## regenerate the committed generated files
	$(GO) generate ./...

.PHONY: check
check: generate format wasm lint cross ## all checks that are not tests; fails if a committed file changes
	git diff --exit-code

# ---- the rest ----

.PHONY: demo
demo: all ## let the model answer a question and fix a bug; MODEL=NAME or MODEL=FILE.gguf
	@ATOLL='$(abspath $(BIN))' MODEL='$(MODEL)' testdata/demo/run.sh

.PHONY: clean
clean: ## remove what was built
	rm -rf bin
	find $(WASM_DIR) -type f -not -name README.md -delete

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
