//! Nodes of 10⁵ edges: results and gradients against plain operations in f64, and the same bits for any number
//! of threads.

use burn::tensor::{DType, Device};
use burn_gnn_graph::Relation;

use crate::families::{self, Family, Typed};
use crate::graphs;

const LEAVES: usize = 100_000;

/// All leaves to one node and every tenth to another, so that leaves too have choices to make, and the same
/// turned round. Edges do not stand in the order of nodes.
fn stars() -> [(&'static str, Relation); 2] {
    let leaf = |e: usize| (e * 7919 % LEAVES) as u32;
    let ends: Vec<_> = (0..LEAVES).map(|e| (leaf(e), 0)).chain((0..LEAVES / 10).map(|e| (leaf(10 * e), 1))).collect();
    let star = graphs::relation(LEAVES, 2, &ends);
    [("in", star.clone()), ("out", star.reverse())]
}

/// All but a few edges are of type 0: one huge segment, one huge type, one huge relation.
fn typed(relation: &Relation) -> Typed {
    let mut g = Typed::new(relation);
    g.types = (0..relation.num_edges()).map(|e| if e % 1000 == 7 { 1 + u8::from(e % 3 == 0) } else { 0 }).collect();
    g
}

/// `values` that f32 holds exactly, so that every element type starts from the same numbers.
fn exact(values: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    values.into_iter().map(|v| v.into_iter().map(|x| f64::from(x as f32)).collect()).collect()
}

/// Compares by the size of the largest entry: entries of sums of both signs may be anything below.
#[track_caller]
fn assert_close(what: &str, got: &[Vec<f64>], want: &[Vec<f64>], tolerance: f64) {
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let size = want.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        assert!(size > 0.0, "{what}, {i}: zeros prove nothing");
        assert_eq!(got.len(), want.len(), "{what}, {i}");
        let worst = got.iter().zip(want).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
        assert!(worst <= tolerance * size, "{what}, {i}: off by {worst:e} at a size of {size:e}");
    }
}

/// Operands, and results of plain operations in f64.
fn oracle(family: &Family, g: &Typed, device: &Device) -> [Vec<Vec<f64>>; 2] {
    let values = exact(family.values(g, 5));
    let want = family.run(g, &values, (device, DType::F64), true);
    [values, want]
}

/// Each of the 10⁵ steps of a sum of size √10⁵ rounds by half a unit in its last place.
const SINGLE: f64 = 1e-4;

#[test]
fn on_flex() {
    let device = Device::flex();
    for (name, relation) in stars() {
        let g = typed(&relation);
        for family in families::few(3) {
            let what = format!("{}, {name}", family.name);
            let [values, want] = oracle(&family, &g, &device);
            assert_close(&what, &family.run(&g, &values, (&device, DType::F64), false), &want, 1e-10);
            let threads = |n| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
                pool.install(|| family.run(&g, &values, (&device, DType::F32), false))
            };
            let one = threads(1);
            assert_close(&format!("{what}, f32"), &one, &want, SINGLE);
            let bits = |x: &[Vec<f64>]| x.iter().flatten().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert!(bits(&threads(3)) == bits(&one), "{what}, 3 threads");
        }
    }
}

/// The same kernels, so one element type is enough.
#[test]
fn on_ndarray() {
    let device = Device::ndarray();
    for (name, relation) in stars() {
        let g = typed(&relation);
        for family in families::few(3) {
            let [values, want] = oracle(&family, &g, &device);
            let got = family.run(&g, &values, (&device, DType::F32), false);
            assert_close(&format!("{}, {name}", family.name), &got, &want, SINGLE);
        }
    }
}
