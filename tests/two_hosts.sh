#!/usr/bin/env bash
# Tests ranks on two hosts that are connected only by a network:  tests/two_hosts.sh DIST_TEST [REPRODUCE]
# DIST_TEST: the test `dist` of crates/dist; REPRODUCE: the example `reproduce`, whose command `rgcn-distributed` is run.
# Both are built with the feature `mpi`. The hosts are network namespaces of this machine, connected only by TCP. Needs
# root, iproute2 and Open MPI.
set -euo pipefail
binary=$(realpath "$1")
example=${2:+$(realpath "$2")}
a=gnn-a b=gnn-b
work=$(mktemp -d)

clean() {
  ip netns pids "$a" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
  ip netns pids "$b" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
  ip netns del "$a" 2>/dev/null || true
  ip netns del "$b" 2>/dev/null || true
  rm -rf "$work"
}
trap clean EXIT

ip netns add "$a"
ip netns add "$b"
ip link add gnn-va netns "$a" type veth peer name gnn-vb netns "$b"
host() { # namespace, device, address
  ip -n "$1" addr add "$3/24" dev "$2"
  ip -n "$1" link set "$2" up
  ip -n "$1" link set lo up
}
host "$a" gnn-va 10.77.0.1
host "$b" gnn-vb 10.77.0.2

# Replaces ssh: the first argument is the host. Each host has a host name, by which ranks find the other ranks of their host.
cat >"$work/agent" <<EOF
#!/usr/bin/env bash
shift
exec ip netns exec $b unshare --uts bash -c 'hostname $b; eval "\$0"' "\$*"
EOF
chmod +x "$work/agent"
start() { # ranks, binary, arguments
  ip netns exec "$a" unshare --uts bash -c 'hostname "$0"; exec "$@"' "$a" \
    mpirun --allow-run-as-root --mca mpi_yield_when_idle 1 --mca plm_rsh_agent "$work/agent" --mca btl tcp,self,vader \
    --mca oob_tcp_keepalive_time 3 --mca oob_tcp_keepalive_intvl 1 --mca oob_tcp_keepalive_probes 3 \
    -H "10.77.0.1:$((($1 + 1) / 2)),10.77.0.2:$(($1 / 2))" -n "$1" \
    ${BURN_GNN_MPI_CASE:+-x BURN_GNN_MPI_CASE} "${@:2}"
}

test=(--ignored --exact processes::as_processes --test-threads 1 --nocapture)
for ranks in 2 3 4; do
  timeout 120 bash -c "$(declare -f start); a=$a work=$work; start $ranks $binary ${test[*]}"
done

if [ -n "$example" ]; then
  losses() { grep -oE 'epoch +[0-9]+ +loss +[0-9.]+' "$1"; }
  "$example" rgcn-distributed --parts 2 --epochs 3 >"$work/alone"
  start 2 "$example" rgcn-distributed --mpi --epochs 3 --out "$work/parts" >"$work/both"
  diff <(losses "$work/alone") <(losses "$work/both")
  [ -n "$(losses "$work/both")" ]
  echo "two hosts: the losses of three sampled epochs equal those of one process"
fi

ranks_left() { { ip netns pids "$a"; ip netns pids "$b"; } | xargs -r -n1 ps -o comm= -p | grep -c "^$(basename "$binary" | cut -c1-15)$" || true; }
ends() { # what happened
  for tenth in $(seq 1 100); do
    if [ "$(ranks_left)" = 0 ]; then
      echo "two hosts: $1: all ranks ended after $((tenth / 10)).$((tenth % 10)) s"
      return
    fi
    sleep 0.1
  done
  echo "two hosts: $1: $(ranks_left) ranks are still running after 10 s" >&2
  exit 1
}
traffic() {
  BURN_GNN_MPI_CASE=traffic start 4 "$binary" "${test[@]}" >"$work/log" 2>&1 &
  job=$!
  for _ in $(seq 1 100); do [ "$(ranks_left)" = 4 ] && break; sleep 0.1; done
  sleep 3
  [ "$(ranks_left)" = 4 ] || { cat "$work/log" >&2; exit 1; }
}

traffic
ip netns pids "$b" | xargs -n1 ps -o pid=,comm= -p | awk -v name="$(basename "$binary" | cut -c1-15)" '$2 == name {print $1; exit}' | xargs kill -9
ends "a rank on the other host was killed"
wait "$job" && exit 1

traffic
ip -n "$a" link set gnn-va down
ends "the cable was cut"
kill -9 "$job" 2>/dev/null || true
echo "two hosts: done"
