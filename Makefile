.DEFAULT_GOAL := help

# LONG is how many times longer than usual the long runs are.
LONG ?= 100
FUZZTIME ?= 30s
# CLUSTERTIME is how long faults happen to the nodes of a cluster.
CLUSTERTIME ?= 10m

.PHONY: help
help: ## print these targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## start the server, data in ./mayfly-data
	go run ./cmd/mayfly

.PHONY: build
build: ## build the binary into ./bin
	go build -o bin/mayfly ./cmd/mayfly

.PHONY: test
test: ## run the tests, under two minutes
	go test ./...

.PHONY: race
race: ## run the tests with the race detector and the invariants
	go test -race -tags invariants ./...

.PHONY: long
long: ## crash points by the thousand, a million concurrent operations, nodes under faults (an hour; LONG=10 is a tenth of it)
	MAYFLY_LONG=$(LONG) go test -count=1 -timeout 6h ./...
	@if command -v chromium >/dev/null; then \
	  echo "== the explorer with a million items"; MAYFLY_LONG=$(LONG) MAYFLY_REQUIRE_BROWSER=1 go test -count=1 -timeout 1h -run ExplorerOfAMillionItems .; \
	else echo "SKIPPED: no Chromium, so the explorer is not tried with a million items"; fi
	MAYFLY_REQUIRE_POSTGRES=1 test/cluster/run -for $(CLUSTERTIME)

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (30s)
	@for pkg in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "== $$pkg $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; \
	done

.PHONY: bench
bench: ## run the benchmarks
	go test -run '^$$' -bench . -benchmem ./...

.PHONY: forget
forget: ## measure purge beside the loads that it must keep up with (20 minutes)
	go test -run '^$$' -bench Forget -benchtime 1x -timeout 1h -v ./cmd/mayfly
	go test -run '^$$' -bench StormTraffic -benchtime 1x -timeout 1h -v ./internal/engine

.PHONY: measure
measure: ## measure the CPU of reads and creates over all transports (4 minutes)
	MAYFLY_MEASURE=14 go test -count=1 -run TestMeasure -v ./internal/direct

.PHONY: compat
compat: ## run the official SDKs against the server
	test/compat/run

.PHONY: clients
clients: ## test the packages for tests in other languages
	clients/run

.PHONY: suites
suites: ## run the SDKs' own suites (AZURE_SDK_FOR_JS, _JAVA and _RUST name checkouts)
	test/compat/azcosmos/run
	test/compat/jssuite/run
	test/compat/javasuite/run
	test/compat/rustsuite/run

.PHONY: kill
kill: ## kill the real server 20 times under load; nothing may be lost
	test/kill/run

.PHONY: cluster
cluster: ## several nodes on one PostgreSQL, under faults for CLUSTERTIME (10m)
	test/cluster/run -for $(CLUSTERTIME)

.PHONY: explorer
explorer: ## check the explorer: types, style, and every view in Chromium
	test/explorer/run

.PHONY: alerts
alerts: ## evaluate the alerts and the dashboard with Prometheus's engine
	test/alerts/run

.PHONY: tikv
tikv: ## run the tests on TiKV's protocol, on PD and a store that it builds; MAYFLY_LONG=10 is nightly length
	engine/tikv/run

.PHONY: lint
lint: ## formatting, vet, staticcheck and tidiness
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	go vet ./...
	go vet -tags invariants ./...
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	go mod tidy -diff
