#!/usr/bin/env bash
# Runs DGL's distributed GraphSAGE on this host: for every part a server and a trainer of one thread, connected by sockets.
#
#   benches/dgl/distributed.sh PYTHON DATA GRAPH PARTS EPOCHS
#
# PYTHON and DATA as for benches/side_by_side.sh. To compare: mpirun -n PARTS target/release/examples/reproduce sage-distributed --mpi, with
# RAYON_NUM_THREADS=1. Every part has a separate /dev/shm, so that parts share no memory; this needs root. PORT (31500): the first one of 100.
set -euo pipefail
if [ $# != 5 ]; then
  sed -n '2,7p' "$0" | sed 's/^# \{0,1\}//' >&2
  exit 2
fi
python=$1 data=$2 graph=$3 parts=$4 epochs=$5 port=${PORT:-31500}
script=$(cd "$(dirname "$0")" && pwd)/distributed.py
work=$(mktemp -d)
parts_of=()
clean() {
  [ ${#parts_of[@]} = 0 ] || kill "${parts_of[@]}" 2>/dev/null || true
  rm -rf "$work"
}
trap clean EXIT

"$python" "$script" partition "$data" "$graph" "$parts" "$work" >&2
for ((part = 0; part < parts; part++)); do
  echo "127.0.0.1 $((port + 10 * part))"
done >"$work/hosts"
export DGL_DIST_MODE=distributed DGL_IP_CONFIG=$work/hosts DGL_CONF_PATH=$work/$graph.json DGL_GRAPH_FORMAT=csc
export DGL_NUM_SERVER=1 DGL_NUM_SAMPLER=0 DGL_NUM_CLIENT=$parts WORLD_SIZE=$parts MASTER_ADDR=127.0.0.1 MASTER_PORT=$((port + 99))
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
one_part() { # part; in separate namespaces, which end its processes
  mount -t tmpfs tmpfs /dev/shm
  export PART=$1 RANK=$1 LOCAL_RANK=0 DGL_SERVER_ID=$1
  local run=("$python" "$script" train "$DGL_CONF_PATH" "$DGL_IP_CONFIG" "$epochs")
  # DGL prints joining processes to stdout; lines of measurements begin with a brace.
  DGL_ROLE=server "${run[@]}" >&2 &
  DGL_ROLE=client "${run[@]}" | { grep '^{' || true; }
  wait
}
export -f one_part
export python script epochs
for ((part = 0; part < parts; part++)); do
  unshare --mount --pid --fork --kill-child --mount-proc bash -euo pipefail -c 'one_part "$1"' part "$part" &
  parts_of+=($!)
done
for ((part = 0; part < parts; part++)); do
  # End if a part fails, because the other parts would wait.
  wait -n "${parts_of[@]}"
done
