#!/bin/sh
# Checks deploy/monitoring: its rules with promtool, first as they are, then by what they do
# (rules_test.yaml). Builds promtool once, into .cache; PROMTOOL names another.
set -eu

version=v0.316.0
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
promtool=${PROMTOOL:-$root/.cache/promtool/$version/promtool}

if [ ! -x "$promtool" ]; then
    command -v go >/dev/null || { echo "go is not installed: it builds promtool; or set PROMTOOL" >&2 && exit 2; }
    echo "building promtool $version (a few minutes, once)" >&2
    # Without the clients of all clouds that Prometheus can discover targets in.
    (cd "$here" && GOBIN=$(dirname "$promtool") CGO_ENABLED=0 GOFLAGS=-mod=readonly \
        go install -trimpath -tags remove_all_sd -ldflags "-s -w" tool)
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# What the operator hands to Prometheus is what stands below spec.
sed -n '/^spec:$/,$ s/^  //p' "$root/deploy/monitoring/rules.yaml" >"$work/rules.yaml"
cp "$here/rules_test.yaml" "$work"
"$promtool" check rules --lint=all --lint-fatal "$work/rules.yaml"
"$promtool" test rules "$work/rules_test.yaml"
