#!/usr/bin/env bash
# Kills and restarts a run under MPI:  tests/mpi_restart.sh REPRODUCE
# REPRODUCE: the example `reproduce`, built with the feature `mpi`, whose command `rgcn-distributed` is run. In each trial a rank is killed with
# SIGKILL after one of the first epochs. The run that resumes from the checkpoint must print the losses of an uninterrupted run. Resuming with a
# different number of ranks must be an error.
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
  # Vary the time after the epoch, so that not every kill hits the checkpoint.
  sleep "0.$epoch"
  # There are no processes if the run has already ended.
  mapfile -t pids < <(pgrep -f "^$binary rgcn-distributed --mpi")
  victim=${pids[rank]:-}
  if [ -n "$victim" ] && kill -9 "$victim" 2>/dev/null; then
    killed=$((killed + 1))
    ended="rank $rank was killed"
    # The kill may come after the last call of MPI, so the exit code is ignored; the losses are compared below.
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
  echo "mpi restart: after epoch $epoch $ended; $(losses "$work/first" | wc -l) epochs before, $(losses "$work/second" | wc -l) after, losses equal those of an uninterrupted run"
done
if [ "$killed" -lt 3 ]; then
  echo "mpi restart: only $killed of five ranks were killed in time" >&2
  exit 1
fi
if train 2 --out "$work/parts.2" --resume "$work/kept" >"$work/other" 2>&1; then
  echo "mpi restart: two ranks resumed from the checkpoint of three ranks" >&2
  exit 1
fi
grep -m 1 -i "checkpoint" "$work/other"
echo "mpi restart: done"
