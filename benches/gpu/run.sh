#!/usr/bin/env bash
# Compares a prebuilt benchmark binary with PyTorch's sparse product and PyG, on a machine with a GPU.
#
#   benches/gpu/run.sh BINARY BACKEND PYTHON DEVICE DATA [OUT]
#
# BINARY: `peers`, built with the feature of BACKEND (cuda, wgpu, …); nothing is compiled here. PYTHON: an interpreter with torch and
# torch_geometric (benches/dgl/setup.sh); DEVICE: cuda or cpu; DATA: the graphs, by `peers write DATA GRAPH...`. OUT: folder of the lines (a temporary folder).
# GRAPHS="cora-like arxiv-like", TYPED="am-slice" (R-GCN) and SAMPLED="arxiv-like" choose graphs, BENCH_SECONDS the time for an entry.
# Prints ratios of wall times (ours over theirs) and, for copy_u_sum, the share of the device's copy bandwidth that the bytes of the operator make.
set -euo pipefail
if [ $# -lt 5 ]; then
  sed -n '2,9p' "$0" | sed 's/^# \{0,1\}//' >&2
  exit 2
fi
binary=$1 backend=$2 python=$3 device=$4 data=$5 out=${6:-$(mktemp -d)}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
read -r -a graphs <<<"${GRAPHS:-cora-like arxiv-like}"
read -r -a typed <<<"${TYPED-am-slice}"
read -r -a sampled <<<"${SAMPLED-arxiv-like}"
failed=0
for section in machine ops train sample; do
  case $section in
    machine) names=() ;;
    train) names=("${graphs[@]}" ${typed[@]+"${typed[@]}"}) ;;
    sample) names=(${sampled[@]+"${sampled[@]}"}) ;;
    *) names=("${graphs[@]}") ;;
  esac
  echo "$section ${names[*]-}" >&2
  # Continue if a section fails.
  BENCH_BACKEND=$backend "$binary" "$section" ${names[@]+"${names[@]}"} >>"$out/ours.jsonl" ||
    { failed=1 && echo "failed: $section, $backend" >&2; }
  [ "$section" = machine ] || "$python" "$here/peers.py" "$data" "$device" "$section" "${names[@]}" >>"$out/peers.jsonl" ||
    { failed=1 && echo "failed: $section, peers" >&2; }
done
"$python" "$here/table.py" "$out/ours.jsonl" "$out/peers.jsonl" "$data"
echo "lines: $out" >&2
exit "$failed"
