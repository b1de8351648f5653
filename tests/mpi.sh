#!/usr/bin/env bash
# Tests ranks as processes:  tests/mpi.sh BINARY
# BINARY: the test `dist` of crates/dist, whose test `as_processes` runs the tests of crates/dist/tests/dist/list.rs on
# processes. If one rank fails, all ranks must fail within seconds.
set -euo pipefail
binary=$1
run() { # ranks, seconds
  timeout "$2" mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -n "$1" \
    "$binary" --ignored --exact processes::as_processes --test-threads 1 --nocapture
}
for ranks in 1 2 3 4; do
  run "$ranks" 600
done
for case in error panic panic-in-task other-call killed missing; do
  for ranks in 2 3; do
    code=0
    BURN_GNN_MPI_CASE=$case run "$ranks" 20 >/dev/null 2>&1 || code=$?
    if [ "$code" = 0 ] || [ "$code" = 124 ]; then
      echo "mpi: case $case on $ranks ranks ended with $code, expected an error at once" >&2
      exit 1
    fi
  done
  echo "mpi: case $case ends all ranks"
done
