#!/bin/sh
# Runs each fuzz target for so many seconds, 60 unless told otherwise, from the seeds that the cases
# are and from what earlier runs found. An input that breaks something is kept in artifacts/.
set -eu
cd "$(dirname "$0")"
seconds=${1:-60}
command -v cargo-fuzz >/dev/null || { echo "cargo-fuzz is needed: cargo install --locked cargo-fuzz" >&2 && exit 2; }

cargo run --quiet --locked --package podgate-fuzz-seeds
for target in review image_reference quantity configuration; do
    # podgate has no unsafe code for a sanitizer to watch; without one, stable Rust is enough.
    cargo fuzz run --sanitizer none --codegen-units 16 "$target" -- \
        -max_total_time="$seconds" -timeout=5 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1
done
