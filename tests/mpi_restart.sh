#!/usr/bin/env bash
# A run under MPI that is killed and started again:  tests/mpi_restart.sh REPRODUCE
# REPRODUCE: that example, built with the feature `mpi`; its command `rgcn-distributed` runs. A rank is killed with SIGKILL some time after each of the first
# epochs; the run that goes on from the checkpoint must print the losses of a run that was never stopped. With another number of ranks the
# checkpoint is refused.
set -euo pipefail
binary=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
train() { # ranks, arguments
  timeout 300 mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -n "$1" "$binary" rgcn-distributed --mpi --epochs 6 "${@:2}"
}
losses() { grep -oE 'epoch +[0-9]+ +loss +[0-9.]+' "$1" | sort -u; }

killed=0
train 3 --out "$work/parts" >"$work/whole"
[ "$(losses "$work/whole" | wc -l)" = 6 ]
for epoch in 1 2 3 4 5; do
  rank=$((epoch % 3))
  rm -rf "$work/kept"
  train 3 --out "$work/parts.$epoch" --resume "$work/kept" >"$work/first" 2>&1 &
  job=$!
  until grep -qE "epoch +$epoch +loss" "$work/first" || ! kill -0 "$job" 2>/dev/null; do sleep 0.02; done
  # Not the moment of the checkpoint itself every time.
  sleep "0.$epoch"
  # None is left where the run was faster.
  mapfile -t pids < <(pgrep -f "^$binary rgcn-distributed --mpi")
  victim=${pids[rank]:-}
  if [ -n "$victim" ] && kill -9 "$victim" 2>/dev/null; then
    killed=$((killed + 1))
    ended="rank $rank was killed"
    # The kill may have come behind the last call of MPI, so the exit code says nothing; the losses below do.
    wait "$job" || true
  else
    ended="it had ended before rank $rank could be killed"
    wait "$job"
  fi
  if [ "$(losses "$work/first" | wc -l)" -lt "$epoch" ]; then
    cat "$work/first" >&2
    exit 1
  fi
  train 3 --out "$work/parts.$epoch" --resume "$work/kept" >"$work/second"
  diff <(losses "$work/whole") <(cat "$work/first" "$work/second" >"$work/all"; losses "$work/all")
  echo "mpi restart: after epoch $epoch $ended; $(losses "$work/first" | wc -l) epochs before, $(losses "$work/second" | wc -l) after, losses are those of one run"
done
if [ "$killed" -lt 3 ]; then
  echo "mpi restart: only $killed of five ranks were killed in time" >&2
  exit 1
fi
if train 2 --out "$work/parts.2" --resume "$work/kept" >"$work/other" 2>&1; then
  echo "mpi restart: two ranks went on from the checkpoint of three" >&2
  exit 1
fi
grep -m 1 -i "checkpoint" "$work/other"
echo "mpi restart: done"
