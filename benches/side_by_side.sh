#!/usr/bin/env bash
# Measures this library and DGL alternately and prints the ratio of every entry.
#
#   benches/side_by_side.sh PYTHON DATA ROUNDS [OUT]
#
# PYTHON: the interpreter of an environment that benches/dgl/setup.sh made; DATA: a folder for the graphs, which are written if they do not
# exist; OUT: folder of all lines (a temporary folder). Sections and graphs: SECTIONS="ops:arxiv-like train:mag-slice".
# BENCH_THREADS, BENCH_SECONDS, BENCH_LEAST and BENCH_ONLY apply to both systems. A round runs both systems
# sequentially, so that the state of the machine is the same for both; the table has medians over rounds.
set -euo pipefail
if [ $# -lt 3 ]; then
  sed -n '2,9p' "$0" | sed 's/^# \{0,1\}//' >&2
  exit 2
fi
mkdir -p "$2"
python=$1 data=$(cd "$2" && pwd) rounds=$3
out=${4:-$(mktemp -d)}
mkdir -p "$out" && out=$(cd "$out" && pwd)
if compgen -G "$out/*.jsonl" >/dev/null; then
  echo "side_by_side: $out holds lines of an earlier run; name another folder" >&2
  exit 1
fi
# Make a path absolute, because the folder changes below.
case $python in */*) python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python") ;; esac
cd "$(dirname "$0")/.."
sections=${SECTIONS:-ops:cora-like ops:arxiv-like train:cora-like train:arxiv-like train:mag-slice train:am-slice
  memory:arxiv-like:gcn memory:arxiv-like:gat}
export BENCH_THREADS=${BENCH_THREADS:-2} BENCH_SECONDS=${BENCH_SECONDS:-4}
# As `cargo bench` sets it, see `.cargo/config.toml`.
export MIMALLOC_PURGE_DELAY=${MIMALLOC_PURGE_DELAY:--1}
# The number of threads of the peer.
export OMP_NUM_THREADS=$BENCH_THREADS MKL_NUM_THREADS=$BENCH_THREADS DGLBACKEND=pytorch

# BENCH_BINARY: a binary that was built before; nothing is compiled then.
ours=${BENCH_BINARY:-}
if [ -z "$ours" ]; then
  ours=$(cargo bench -p burn-gnn-benches --bench peers --no-run --message-format=json |
    grep -F '"name":"peers"' | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
fi
[ -x "$ours" ] || { echo "side_by_side: no benchmark binary was built" >&2; exit 1; }

for section in $sections; do
  IFS=: read -r -a words <<<"$section"
  [ -f "$data/${words[1]}/meta.json" ] || "$ours" write "$data" "${words[1]}"
done
for ((round = 1; round <= rounds; round++)); do
  for section in $sections; do
    IFS=: read -r -a words <<<"$section"
    echo "round $round of $rounds: $section" >&2
    "$ours" "${words[@]}" >>"$out/ours.$round.jsonl"
    # Continue if the peer fails on a graph.
    "$python" benches/dgl/bench.py "$data" "${words[@]}" >>"$out/peer.$round.jsonl" 2>>"$out/peer.log" ||
      echo "side_by_side: the peer failed on $section, see $out/peer.log" >&2
  done
done
for side in ours peer; do
  "$ours" merge "$out/$side".*.jsonl >"$out/$side.jsonl"
done
echo "lines of all rounds: $out" >&2
"$python" benches/dgl/compare.py "$out/ours.jsonl" "$out/peer.jsonl"
