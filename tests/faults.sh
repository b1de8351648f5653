#!/usr/bin/env bash
# Kills every writer of files a hundred times at random moments, and runs each on a full disk:  tests/faults.sh
# The remaining files must be the complete old or new version; the last lines count how often each was found.
#   BURN_GNN_KILLS=1000 tests/faults.sh     sets the number of kills of each writer
# Full disks are small tmpfs in a mount namespace (`unshare -Urm`); without one, these tests are reported as skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
export BURN_GNN_KILLS="${BURN_GNN_KILLS:-100}"

run() { # package, test target, filters
  cargo test --locked -p "$1" "$2" ${3:+"$3"} -- --nocapture --test-threads 1 "${@:4}" 2>&1
}
out=$(mktemp)
trap 'rm -f "$out"' EXIT
fail() { cat "$out"; exit 1; }
# Graphs, topologies, rows of features, tables, single files; downloads and archives.
run burn-gnn-data --lib "" tests::faults fetch_tests >"$out" || fail
# Weights.
run burn-gnn-models --lib "" weight_files::tests::writers >>"$out" || fail
# Graphs in files, rows, numberings, packed batches, parts.
run burn-gnn-store --test store faults:: >>"$out" || fail
# Partitionings (also chunked), checkpoints, training.
run burn-gnn-dist --test dist faults:: minibatch::a_run_killed >>"$out" || fail
sed -E 's/^test .* \.\.\. //' "$out" | grep -E "kills|full disk|skipped"
echo "faults: done, BURN_GNN_KILLS=$BURN_GNN_KILLS"
