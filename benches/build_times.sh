#!/usr/bin/env bash
# Measures the seconds to build the README's first command from an empty cargo cache, and blank crates with only Burn
# and with burn-gnn, in their default profiles. Run it on an idle machine.
#
#   benches/build_times.sh FOLDER [first] [blank-dev] [blank-release]     all by default; FOLDER takes 3 GB and is not deleted
#
# One JSON line per build: wall and processor seconds, downloads of the first command included, and the number of crates.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mkdir -p "${1:?folder}" && cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- first blank-dev blank-release
export CARGO_INCREMENTAL=0 CARGO_TERM_COLOR=never
unset CARGO_TARGET_DIR

timed() { # name, folder, command: builds in an empty target folder
  local name=$1 folder=$2 start
  shift 2
  rm -rf "$folder/target"
  start=$(date +%s)
  (cd "$folder" && TIMEFORMAT='%U %S' && { time "$@" >build.log 2>&1; } 2>times)
  printf '{"build": "%s", "wall_s": %d, "processor_s": %.0f, "crates": %d}\n' "$name" $(($(date +%s) - start)) \
    "$(awk '{print $1 + $2}' "$folder/times")" "$(grep -c '^ *Compiling' "$folder/build.log")"
}

blank() { # name, dependencies, program
  mkdir -p "$work/$1/src"
  printf '[package]\nname = "%s"\nedition = "2024"\n\n[dependencies]\n%s\n\n[workspace]\n' "$1" "$2" >"$work/$1/Cargo.toml"
  printf '%s\n' "$3" >"$work/$1/src/main.rs"
  cp "$root/Cargo.lock" "$work/$1/Cargo.lock" # the versions that are tested
  (cd "$work/$1" && cargo fetch >fetch.log 2>&1)
}

burn='burn = { version = "=0.22.1", default-features = false, features = ["std", "flex", "autodiff", "optim", "simd", "rayon"] }'
alone='use burn::nn::LinearConfig;
use burn::tensor::{Device, Distribution, Tensor};

fn main() {
    let device = Device::flex().autodiff();
    let (layer, x) = (LinearConfig::new(4, 2).init(&device), Tensor::<2>::random([5, 4], Distribution::Default, &device));
    let loss = layer.forward(x).sum();
    let gradients = loss.backward();
    println!("{}", layer.weight.grad(&gradients).unwrap());
}'
with='use burn::tensor::{Device, Distribution, Tensor};
use burn_gnn::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex().autodiff();
    let g = Graph::homogeneous(5, vec![0, 1, 2, 3], vec![1, 2, 3, 4])?.add_self_loops(0)?;
    let x = Tensor::<2>::random([5, 4], Distribution::Default, &device).require_grad();
    let layer = GraphConvConfig::new(4, 2).init(&device);
    let loss = layer.forward(&g, x.clone()).sum();
    let gradients = loss.backward();
    println!("{}", x.grad(&gradients).unwrap());
    Ok(())
}'

for what in "$@"; do
  case $what in
  first)
    rm -rf "$work/first" "$work/home"
    git clone -q "$root" "$work/first"
    CARGO_HOME="$work/home" timed "first command, empty cargo cache" "$work/first" cargo build --release --locked --timings --example rgcn
    ;;
  blank-dev | blank-release)
    profile=${what#blank-}
    blank burn-alone "$burn" "$alone"
    blank burn-and-burn-gnn "$burn"$'\n'"burn-gnn = { path = \"$root\" }" "$with"
    for crate in burn-alone burn-and-burn-gnn; do timed "blank crate, $crate, $profile" "$work/$crate" cargo build --profile "$profile"; done
    ;;
  *)
    echo "build_times: expected first, blank-dev or blank-release, found $what" >&2
    exit 2
    ;;
  esac
done
