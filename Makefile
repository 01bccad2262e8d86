# `make help` lists what there is to make.

CARGO ?= cargo
PODGATE = target/release/podgate

.DEFAULT_GOAL := help
.PHONY: help build demo run test bench bench-handshakes bench-memory bench-start bench-pipeline bench-instructions bench-growth lint certs image deploy undeploy break-glass restore controlplane e2e bench-cluster monitoring-check fuzz oracle

IMAGE ?= podgate:0.1.0
# deploy/single-zone for clusters whose nodes carry no zone label, deploy/cert-manager for those that
# run cert-manager.
KUSTOMIZATION ?= deploy
FUZZ_SECONDS ?= 60

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1 	/p' $(MAKEFILE_LIST) | sort | expand -t 16

build: ## the release binary, target/release/podgate
	$(CARGO) build --release --locked

demo: build ## start the server, post sample reviews with curl, show the answers
	examples/demo.sh $(PODGATE)

run: build ## keep serving on 127.0.0.1:8443, and print a curl line to try
	examples/demo.sh $(PODGATE) --keep

test: ## every test that needs only Rust
	$(CARGO) test --locked

bench: ## podgate beside a server that decides nothing, over TLS on loopback
	$(CARGO) bench --locked --bench server -- requests

bench-handshakes: ## what a new connection costs, by key and group
	$(CARGO) bench --locked --bench server -- handshakes

bench-memory: ## what stays in memory after a million requests, 10,000 connections, large reviews
	$(CARGO) bench --locked --bench server -- memory

bench-start: build ## how soon podgate answers after its start, and how large it is
	$(CARGO) bench --locked --bench server -- start
	stat --format 'The program: %s bytes' target/release/podgate

bench-pipeline: ## each stage of an answer without the wire, beside decoding all of a review
	$(CARGO) bench --locked --bench pipeline

bench-instructions: ## the same in instructions, which no other program on the machine disturbs; needs valgrind
	$(CARGO) bench --locked --bench instructions

bench-growth: ## what an answer costs as reviews and configurations grow
	$(CARGO) bench --locked --bench growth

lint: ## format, clippy, documentation, dependency rules
	$(CARGO) fmt --check
	$(CARGO) fmt --check --all --manifest-path fuzz/Cargo.toml
	$(CARGO) metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null
	$(CARGO) clippy --locked --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --document-private-items
	$(CARGO) test --locked --test dependencies

fuzz: ## each fuzz target for FUZZ_SECONDS seconds
	fuzz/run.sh $(FUZZ_SECONDS)

oracle: ## image references and quantities, compared with Go's packages on generated input
	tests/oracle/check.sh

monitoring-check: ## the alerts of deploy/monitoring, checked and tried with promtool
	tests/monitoring/check.sh

certs: build ## a CA and a server certificate in certs/
	$(PODGATE) certs --dir certs

image: ## the container image; IMAGE names it
	docker build --tag $(IMAGE) .

deploy: ## install on the cluster that kubectl points at; KUSTOMIZATION=deploy/single-zone without zones
	deploy/install.sh $(KUSTOMIZATION)

undeploy: break-glass ## remove from the cluster
	kubectl delete --ignore-not-found -k $(KUSTOMIZATION)

break-glass: ## emergency exit: delete both webhook configurations
	deploy/break-glass.sh

restore: ## put the webhook configurations back
	deploy/register.sh $(wildcard $(KUSTOMIZATION)/registration)

controlplane: ## build kube-apiserver, its controllers, etcd and kubectl for the end-to-end tests
	tests/controlplane/build.sh

e2e: ## the end-to-end tests, on a control plane of their own
	assets=$$(tests/controlplane/build.sh) && KUBEBUILDER_ASSETS=$$assets \
		$(CARGO) test --locked --features e2e --test e2e -- --test-threads=1 --nocapture

bench-cluster: ## what a create costs on a real API server: no policy, podgate, the built-in policies
	KUBEBUILDER_ASSETS=$$(tests/controlplane/build.sh) $(CARGO) bench --locked --features e2e --bench cluster
