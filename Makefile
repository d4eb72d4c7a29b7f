.DEFAULT_GOAL := help

.PHONY: help
help: ## print these targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## start the server, data in ./mayfly-data
	go run ./cmd/mayfly

.PHONY: build
build: ## build the binary into ./bin
	go build -o bin/mayfly ./cmd/mayfly

.PHONY: test
test: ## run the tests, under two minutes
	go test ./...

.PHONY: lint
lint: ## formatting, vet and tidiness
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	go vet ./...
	go mod tidy -diff

.PHONY: bench
bench: ## run the benchmarks
	go test -run '^$$' -bench . -benchmem ./...
