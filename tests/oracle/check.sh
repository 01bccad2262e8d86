#!/bin/sh
# Compares image references and quantities with Go's packages: builds the Go program, and runs the
# test that asks both.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command -v go >/dev/null || { echo "go is not installed: it builds the oracle" >&2 && exit 2; }
cd "$here"
mkdir -p "$here/../../.cache"
oracle=$(cd "$here/../../.cache" && pwd)/oracle/oracle
CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -trimpath -o "$oracle" .
cd "$here/../.."
ORACLE=$oracle "${CARGO:-cargo}" test --locked --features oracle --test oracle -- --nocapture
