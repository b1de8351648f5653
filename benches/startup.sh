#!/usr/bin/env bash
# Measures seconds from the start of each example to its first line about an epoch, peak memory and size of the program.
#
#   benches/startup.sh [FOLDER]     FOLDER: folder of the programs; target/release/examples by default
#
# One JSON line per example. Needs GNU time for the peak memory (Debian: time).
set -euo pipefail
cd "$(dirname "$0")/.."
programs=${1:-${CARGO_TARGET_DIR:-target}/release/examples}
report=$(mktemp)
trap 'rm -f "$report"' EXIT

measure() { # example, arguments
  local program="$programs/$1" start first=null now line
  [ -x "$program" ] || { echo "startup: no $program; build it with \`cargo build --release --examples\`" >&2; return 0; }
  start=$(date +%s%N)
  while IFS= read -r line; do
    if [ "$first" = null ] && [[ "$line" == *epoch* || "$line" == *step* ]]; then
      now=$(date +%s%N)
      first=$(((now - start) / 1000000))
    fi
  done < <(command time -f %M -o "$report" "$program" "${@:2}" 2>&1)
  printf '{"example": "%s", "first_epoch_ms": %s, "peak_mib": %d, "program_mib": %.1f}\n' \
    "$*" "$first" "$(($(tail -n 1 "$report") / 1024))" "$(($(stat -c %s "$program") / 104858))e-1"
}
for name in gcn sage rgcn link_prediction graph_classification custom_layer distributed; do measure "$name"; done
measure graphlearn_tables
measure reproduce rgcn-distributed --epochs 2
measure reproduce sage-distributed --graph cora-like --epochs 2
