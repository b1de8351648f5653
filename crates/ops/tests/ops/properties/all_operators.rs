//! Properties of all operators, one test each. Renumbered graphs are tested in `invariance`, instruction sets in
//! `instruction_sets`, saved tensors and the fallback without kernels in unit tests of the crate.

use burn::tensor::{DType, Device};

use crate::devices;
use crate::families::{self, Family, On, Typed};
use crate::numerics::half_types::rounded;
use burn_gnn_testutil::{assert_close, assert_same_bits_on_threads, central_differences, graphs};

/// Large enough for dozens of pieces of work, with one destination that has a tenth of the edges.
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

/// Gradients of tracked operands do not depend on whether other operands are tracked.
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

/// Whether a number is 0 and not -0.
fn is_zero(x: f64) -> bool {
    x.to_bits() == 0
}

/// Result of a family at nodes without messages: 0, or bias and activation.
fn is_biased(family: &Family) -> bool {
    family.name.starts_with("weighted_aggregate")
}

/// Without edges, results of nodes are those without messages, and gradients exist and are 0. No zero is -0.
#[test]
fn graphs_without_edges() {
    for (sources, destinations) in [(3, 2), (0, 2), (2, 0), (0, 0)] {
        let g = Typed::new(&graphs::relation(sources, destinations, &[]));
        for width in [1, 3, 16] {
            for family in families::all(width) {
                let values = family.values(&g, 1);
                for ((backend, device), dtype) in
                    devices().into_iter().flat_map(|d| [(d.clone(), DType::F64), (d, DType::F32)])
                {
                    for reference in [false, true] {
                        // Burn's product divides by 0 on ndarray.
                        if reference && family.name.starts_with("matmul_rows") {
                            continue;
                        }
                        let what = format!(
                            "{} x {width} from {sources} to {destinations}, {backend}, {dtype:?}, reference {reference}",
                            family.name
                        );
                        let mut got = family.run(&g, &values, (&device, dtype), reference);
                        for ((on, width), x) in family.shapes().into_iter().zip(&got) {
                            assert_eq!(x.len(), g.rows(on) * width, "{what}");
                            assert!(x.iter().all(|x| x.is_finite()), "{what}: {x:?}");
                        }
                        let out = got.pop().unwrap();
                        for ((on, _), gradient) in family.shapes().into_iter().zip(&got) {
                            // A bias is added to nodes without messages.
                            assert!(
                                on == On::Whole || gradient.iter().all(|&d| is_zero(d)),
                                "{what}: {gradient:?}"
                            );
                        }
                        assert!(
                            is_biased(&family) || out.iter().all(|&y| is_zero(y)),
                            "{what}: {out:?}"
                        );
                    }
                }
            }
        }
    }
}

/// Rows without edges and their gradients are +0, also next to rows with edges and for any incoming gradient: -0 would
/// give -inf under `1 / y`. Covers every feature size with a separate loop in kernels.
#[test]
fn rows_without_messages_are_positive_zeros() {
    for (backend, device) in devices() {
        let halves = [DType::F16, DType::BF16];
        // ndarray has no 16-bit floats.
        let dtypes = halves.into_iter().filter(|_| backend == "flex");
        for dtype in [DType::F64, DType::F32].into_iter().chain(dtypes) {
            for reference in [false, true] {
                rows_without_messages(backend, (&device, dtype), reference);
            }
        }
    }
}

/// Checks every operator on one device.
pub(crate) fn rows_without_messages(backend: &str, place: (&Device, DType), reference: bool) {
    // Node 2 has no out-edge, node 3 no in-edge, and no edge is of type 2.
    let relation =
        graphs::relation(5, 6, &[(0, 0), (1, 0), (1, 1), (3, 2), (4, 4), (0, 5), (3, 5), (3, 0)]);
    let mut g = Typed::new(&relation);
    g.types = vec![0, 1, 0, 0, 1, 0, 0, 0];
    for width in [1, 3, 8, 16, 33, 64, 130] {
        for family in if width <= 16 { families::all(width) } else { families::few(width) } {
            let mut values = family.values(&g, 5);
            // Incoming gradients include zeros of either sign.
            let cotangent = values.last_mut().unwrap();
            cotangent.iter_mut().step_by(3).for_each(|c| *c = -0.0);
            let got = family.run(&g, &values, place, reference);
            let results = family.shapes().len() - 1;
            for (i, ((on, width), x)) in family.shapes().into_iter().zip(&got).enumerate() {
                let is_result = i == results;
                let rows = match on {
                    On::Src => 2 * width..3 * width,
                    On::Dst if is_result && is_biased(&family) => continue,
                    On::Dst => 3 * width..4 * width,
                    // One row per type.
                    On::Whole if is_result && family.name.starts_with("segment_") => {
                        width / 3 * 2..width
                    }
                    On::Edge | On::Whole => continue,
                };
                assert!(!rows.is_empty(), "{}: no row to look at", family.name);
                let bad = rows.clone().find(|&at| !is_zero(x[at]));
                assert_eq!(
                    bad.map(|at| (at, x[at])),
                    None,
                    "{} x {width}, {backend}, {:?}, reference {reference}, {i}",
                    family.name,
                    place.1
                );
            }
        }
    }
}

/// 16-bit results are sums in f32, rounded once: the results in f32 of the same numbers, rounded.
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
                // Backward may read a rounded result, which matters for sums with terms of either sign.
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

/// Operators composed of several, each of which rounds.
fn rounds_several_times(family: &Family) -> bool {
    ["relational Basis", "multi_gspmm_cross"].iter().any(|name| family.name.starts_with(name))
}
