//! What every operator promises, one test for each property; those of graphs that are moved about are in `invariance`,
//! of instruction sets in `instruction_sets`, of what backward keeps and of operators without kernels in the unit
//! tests.

use burn::tensor::{DType, Device};

use crate::devices;
use crate::families::{self, Family, On, Typed};
use crate::half_types::rounded;
use burn_gnn_testutil::{assert_close, assert_same_bits_on_threads, central_differences, graphs};

/// Large enough for dozens of pieces, with one destination of a tenth of the edges.
#[test]
fn any_number_of_threads() {
    let g = Typed::new(&graphs::random(2_000, 1_500, 20_000, 3.0));
    for width in [1, 8, 33] {
        for family in families::few(width) {
            let values = family.values(&g, 8);
            for (backend, device) in devices() {
                assert_same_bits_on_threads(
                    format_args!("{} x {width}, {backend}", family.name),
                    || family.run(&g, &values, (&device, DType::F32), false).concat(),
                );
            }
        }
    }
}

#[test]
fn gradients_are_finite_differences() {
    for (name, relation) in [("small", graphs::small()), ("random", graphs::random(5, 4, 12, 2.0))]
    {
        let g = Typed::new(&relation);
        for family in families::all(2) {
            let values = family.values(&g, 7);
            for (backend, device) in devices() {
                let mut gradients = family.run(&g, &values, (&device, DType::F64), false);
                gradients.pop();
                let untracked = vec![false; gradients.len()];
                let loss = |operand: usize, entry: usize, by: f64| {
                    let mut moved = values.clone();
                    moved[operand][entry] += by;
                    let (_, out) =
                        family.run_tracking(&g, &moved, (&device, DType::F64), false, &untracked);
                    out.iter().zip(&values[values.len() - 1]).map(|(y, c)| y * c).sum::<f64>()
                };
                for (operand, got) in gradients.iter().enumerate() {
                    let want = central_differences(got.len(), 1e-5, |i, by| loss(operand, i, by));
                    assert_close(
                        &format!("{}, {name}, {backend}, operand {operand}", family.name),
                        got,
                        &want,
                        1e-7,
                    );
                }
                assert!(
                    gradients.iter().flatten().any(|&d| d != 0.0),
                    "{}: gradients of zeros prove nothing",
                    family.name
                );
            }
        }
    }
}

/// The gradients of those operands that are tracked are those of a call in which all are.
#[test]
fn each_gradient_alone() {
    let g = Typed::new(&graphs::random(6, 5, 20, 2.0));
    for family in families::all(3) {
        let values = family.values(&g, 2);
        for (backend, device) in devices() {
            let all = family.run(&g, &values, (&device, DType::F64), false);
            let operands = values.len() - 1;
            for subset in 0..1u32 << operands {
                let tracked: Vec<bool> = (0..operands).map(|i| subset & 1 << i != 0).collect();
                let (some, out) =
                    family.run_tracking(&g, &values, (&device, DType::F64), false, &tracked);
                assert_eq!(
                    Some(&out),
                    all.last(),
                    "{}, {backend}, tracked {tracked:?}",
                    family.name
                );
                for (i, gradient) in some.into_iter().enumerate() {
                    let Some(gradient) = gradient else { continue };
                    assert_close(
                        &format!("{}, {backend}, tracked {tracked:?}, operand {i}", family.name),
                        &gradient,
                        &all[i],
                        1e-12,
                    );
                }
            }
        }
    }
}

/// Without edges results of nodes are those of no messages, and gradients are zeros: finite, and there.
#[test]
fn graphs_without_edges() {
    for (sources, destinations) in [(3, 2), (0, 2), (2, 0), (0, 0)] {
        let g = Typed::new(&graphs::relation(sources, destinations, &[]));
        for family in families::all(3) {
            let values = family.values(&g, 1);
            for (backend, device) in devices() {
                let what = format!("{} from {sources} to {destinations}, {backend}", family.name);
                let mut got = family.run(&g, &values, (&device, DType::F64), false);
                for ((on, width), x) in family.places().into_iter().zip(&got) {
                    assert_eq!(x.len(), g.rows(on) * width, "{what}");
                    assert!(x.iter().all(|x| x.is_finite()), "{what}: {x:?}");
                }
                let out = got.pop().unwrap();
                for ((on, _), gradient) in family.places().into_iter().zip(&got) {
                    // A bias is added where no message arrives.
                    assert!(
                        on == On::Whole || gradient.iter().all(|d| *d == 0.0),
                        "{what}: {gradient:?}"
                    );
                }
                let biased = family.name.starts_with("weighted_aggregate");
                assert!(biased || out.iter().all(|y| *y == 0.0), "{what}: {out:?}");
            }
        }
    }
}

/// Sums run in f32 and are rounded once: what f32 gives for the same numbers, rounded.
#[test]
fn half_floats_are_f32_rounded_once() {
    let g = Typed::new(&graphs::random(30, 20, 200, 2.0));
    let device = Device::flex();
    for width in [1, 9, 16] {
        for family in families::all(width) {
            for (dtype, ulp) in [(DType::F16, 2f64.powi(-11)), (DType::BF16, 2f64.powi(-8))] {
                let exact: Vec<Vec<f64>> =
                    family.values(&g, 3).iter().map(|x| rounded(x, dtype)).collect();
                let run = |dtype| family.run(&g, &exact, (&device, dtype), false);
                let (mut half, mut single) = (run(dtype), run(DType::F32));
                let what = format!("{} x {width}, {dtype:?}", family.name);
                let (out, want) = (half.pop().unwrap(), single.pop().unwrap());
                let near = |got: &[f64], want: &[f64], ulps: f64| {
                    let largest = want.iter().fold(1.0f64, |m, d| m.max(d.abs()));
                    got.iter().zip(want).all(|(a, b)| (a - b).abs() <= ulps * ulp * largest)
                };
                let several = rounds_several_times(&family);
                if several {
                    assert!(near(&out, &want, 16.0), "{what}: {out:?} for {want:?}");
                } else {
                    assert_eq!(out, rounded(&want, dtype), "{what}");
                }
                // Backward may read a result that was rounded; of sums with terms of either sign that is seen.
                for (i, (got, want)) in half.iter().zip(&single).enumerate() {
                    assert!(
                        near(got, want, if several { 16.0 } else { 4.0 }),
                        "{what}, gradient {i}: {got:?} for {want:?}"
                    );
                }
            }
        }
    }
}

/// Operators made of several, each of which rounds.
fn rounds_several_times(family: &Family) -> bool {
    ["relational Basis", "multi_gspmm_cross"].iter().any(|name| family.name.starts_with(name))
}
