//! Results have the same bits on every instruction set that kernels are compiled for.
//!
//! A process selects its instruction set once, so this test starts itself once per set. Products with more than 32 × 32
//! entries and bases of relations are not tested: `gemm` computes them with fused multiply-add where it is available, so
//! their bits depend on the machine.

use std::collections::BTreeMap;
use std::process::Command;

use burn::tensor::{DType, Device};

use crate::families::{self, Typed};
use burn_gnn_testutil::graphs;

const MARK: &str = "bits of ";

/// FNV-1a hash of the bits of all numbers.
fn hash(values: &[Vec<f64>]) -> u64 {
    let bytes = values.iter().flatten().flat_map(|x| x.to_bits().to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
#[ignore = "run by `every_set_gives_the_same_bits` in a process of its own"]
fn print_hashes() {
    let device = Device::flex();
    let g = Typed::new(&graphs::random(60, 50, 1500, 2.0));
    println!();
    for width in [3, 16, 21, 40] {
        for family in families::all(width).iter().filter(|f| !f.by_gemm) {
            let values = family.values(&g, 6);
            for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
                println!(
                    "{MARK}{} x {width}, {dtype:?}: {:016x}",
                    family.name,
                    hash(&family.run(&g, &values, (&device, dtype), false))
                );
            }
        }
    }
    // Few edges and many features: the argmax is saved as bits.
    let sparse = Typed::new(&graphs::random(60, 200, 500, 2.0));
    for width in [48, 128, 144] {
        for family in families::all(width).iter().filter(|f| f.name.starts_with("gspmm CopyLhs M"))
        {
            let values = family.values(&sparse, 6);
            for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
                let bits = hash(&family.run(&sparse, &values, (&device, dtype), false));
                println!("{MARK}sparse {} x {width}, {dtype:?}: {bits:016x}", family.name);
            }
        }
    }
    for dtype in [DType::F32, DType::F64] {
        for (i, decay) in crate::operators::adam::DECAYS.into_iter().enumerate() {
            println!(
                "{MARK}adam_step {i}, {dtype:?}: {:016x}",
                hash(&crate::operators::adam::run(&device, dtype, 1001, decay))
            );
        }
    }
}

/// Hashes by name, from a process with instruction set `set`.
fn hashes(set: Option<&str>) -> BTreeMap<String, String> {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([
        "--exact",
        "properties::instruction_sets::print_hashes",
        "--ignored",
        "--nocapture",
    ]);
    match set {
        Some(set) => child.env("BURN_GNN_SIMD", set),
        None => child.env_remove("BURN_GNN_SIMD"),
    };
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{set:?}: {text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = text.lines().filter_map(|line| line.strip_prefix(MARK)?.rsplit_once(": "));
    lines.map(|(name, hash)| (name.to_owned(), hash.to_owned())).collect()
}

#[test]
#[cfg_attr(miri, ignore = "starts processes")]
fn every_set_gives_the_same_bits() {
    let baseline = hashes(Some("baseline"));
    assert!(baseline.len() > 1000, "only {} results", baseline.len());
    for set in [Some("avx2"), None] {
        let other = hashes(set);
        assert_eq!(other.len(), baseline.len());
        let differ: Vec<_> = baseline
            .iter()
            .filter(|(name, hash)| other[*name] != **hash)
            .map(|(name, _)| name)
            .collect();
        assert!(
            differ.is_empty(),
            "{set:?} against baseline: {} of {} differ: {differ:#?}",
            differ.len(),
            baseline.len()
        );
    }
}
