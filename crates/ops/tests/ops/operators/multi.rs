//! Reductions over stacks of relations against loops over dense rows.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::{Relation, RelationStack};
use burn_gnn_ops::*;

use crate::numerics::half_types::{HALVES, rounded};
use crate::{devices, f64s, numbers};
use burn_gnn_testutil::{
    assert_close, assert_close_to_largest, assert_same_bits_on_threads, central_differences, graphs,
};

const WIDTH: usize = 3;

/// Two tables, four relations: one without edges, none reaching destination 4, one reaching all others.
fn stack() -> (RelationStack, Vec<(usize, Relation)>) {
    let relations = vec![
        (0, graphs::relation(4, 5, &[(0, 0), (1, 0), (1, 0), (3, 2)])),
        (1, graphs::relation(3, 5, &[(2, 0), (0, 1), (1, 2), (1, 3), (2, 3)])),
        (0, graphs::relation(4, 5, &[])),
        (0, graphs::relation(4, 5, &[(2, 2), (0, 2), (0, 0)])),
    ];
    (RelationStack::new(5, &[4, 3], &relations).unwrap(), relations)
}

fn sources(device: &Device) -> Vec<Tensor<2>> {
    [4, 3]
        .map(|n| {
            Tensor::from_data(
                TensorData::new(numbers(n as u64, n * WIDTH), [n, WIDTH]),
                (device, DType::F64),
            )
        })
        .to_vec()
}

/// Reduction of some numbers; 0 of none.
fn reduced(how: Reduce, x: &[f64]) -> f64 {
    match how {
        _ if x.is_empty() => 0.0,
        Reduce::Sum => x.iter().sum(),
        Reduce::Mean => x.iter().sum::<f64>() / x.len() as f64,
        Reduce::Max => x.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Reduce::Min => x.iter().copied().fold(f64::INFINITY, f64::min),
    }
}

#[test]
fn every_pair_of_reducers() {
    let (stack, relations) = stack();
    for (backend, device) in devices() {
        let x: Vec<Vec<f64>> = sources(&device).into_iter().map(f64s).collect();
        let messages = |r: usize, v: usize, j: usize| -> Vec<f64> {
            let (table, relation) = &relations[r];
            let edges = relation.src().iter().zip(relation.dst());
            edges
                .filter(|e| *e.1 as usize == v)
                .map(|e| x[*table][*e.0 as usize * WIDTH + j])
                .collect()
        };
        for reduce in Reduce::ALL {
            let each = |f: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
                (0..5 * WIDTH).map(|i| f(i / WIDTH, i % WIDTH)).collect()
            };
            let all = each(&|v, j| {
                reduced(reduce, &(0..4).flat_map(|r| messages(r, v, j)).collect::<Vec<_>>())
            });
            assert_close(
                &format!("{backend}, joint {reduce:?}"),
                &f64s(multi_gspmm(&stack, sources(&device), reduce)),
                &all,
                1e-12,
            );
            for cross in CrossReduce::ALL {
                let over = match cross {
                    CrossReduce::Sum => Reduce::Sum,
                    CrossReduce::Mean => Reduce::Mean,
                    CrossReduce::Max => Reduce::Max,
                    CrossReduce::Min => Reduce::Min,
                };
                let want = each(&|v, j| {
                    let takes_part = |r: &usize| {
                        reduce != over || !reduce.selects() || !messages(*r, v, j).is_empty()
                    };
                    reduced(
                        over,
                        &(0..4)
                            .filter(takes_part)
                            .map(|r| reduced(reduce, &messages(r, v, j)))
                            .collect::<Vec<_>>(),
                    )
                });
                let got = f64s(multi_gspmm_cross(&stack, sources(&device), reduce, cross));
                assert_close(&format!("{backend}, {reduce:?} then {cross:?}"), &got, &want, 1e-12);
            }
        }
    }
}

#[test]
fn finite_differences() {
    let (stack, _) = stack();
    for (backend, device) in devices() {
        let device = device.autodiff();
        for reduce in Reduce::ALL {
            for cross in CrossReduce::ALL {
                let tracked: Vec<_> =
                    sources(&device).into_iter().map(|x| x.require_grad()).collect();
                let loss = |x: Vec<Tensor<2>>| {
                    let y = multi_gspmm_cross(&stack, x, reduce, cross);
                    (y * Tensor::from_data(
                        TensorData::new(numbers(9, 5 * WIDTH), [5, WIDTH]),
                        (&device, DType::F64),
                    ))
                    .sum()
                };
                let grads = loss(tracked.clone()).backward();
                for (table, x) in tracked.iter().enumerate() {
                    let base = f64s(x.clone());
                    let differences = central_differences(base.len(), 1e-5, |i, by| {
                        let mut values = base.clone();
                        values[i] += by;
                        let mut all = sources(&device);
                        all[table] = Tensor::from_data(
                            TensorData::new(values, x.shape()),
                            (&device, DType::F64),
                        );
                        f64s(loss(all))[0]
                    });
                    assert_close(
                        &format!("{backend}, {reduce:?} {cross:?}"),
                        &f64s(x.grad(&grads).unwrap()),
                        &differences,
                        1e-7,
                    );
                }
            }
        }
    }
}

/// Four relations divide by a number that f32 holds, three do not. Losses are linear, so differences are exact.
#[test]
fn the_mean_over_three_relations_in_f64() {
    let stack = RelationStack::new(5, &[4, 3], &stack().1[..3]).unwrap();
    for (backend, device) in devices() {
        let device = device.autodiff();
        for reduce in [Reduce::Sum, Reduce::Mean] {
            let x: Vec<_> = sources(&device).into_iter().map(|x| x.require_grad()).collect();
            let weight = || {
                Tensor::<2>::from_data(
                    TensorData::new(numbers(9, 5 * WIDTH), [5, WIDTH]),
                    (&device, DType::F64),
                )
            };
            let loss = |x: Vec<Tensor<2>>| {
                (multi_gspmm_cross(&stack, x, reduce, CrossReduce::Mean) * weight()).sum()
            };
            let grads = loss(x.clone()).backward();
            let base = f64s(x[0].clone());
            let moved = |i: usize, by: f64| {
                let (mut values, mut all) = (base.clone(), sources(&device));
                values[i] += by;
                all[0] =
                    Tensor::from_data(TensorData::new(values, x[0].shape()), (&device, DType::F64));
                f64s(loss(all))[0]
            };
            let want: Vec<f64> = (0..base.len()).map(|i| moved(i, 0.5) - moved(i, -0.5)).collect();
            assert_close(
                &format!("{backend}, {reduce:?}"),
                &f64s(x[0].grad(&grads).unwrap()),
                &want,
                1e-13,
            );
        }
    }
}

/// Tables `[3]` and `[2]`; relation 0 is empty at destination 1, relation 1 at 0, and destination 2 has no edge.
fn corners() -> RelationStack {
    let (a, b) =
        (graphs::relation(3, 3, &[(2, 0), (0, 0)]), graphs::relation(2, 3, &[(0, 1), (1, 1)]));
    RelationStack::new(3, &[3, 2], &[(0, a), (1, b)]).unwrap()
}

#[test]
fn infinities_and_nan_stay_visible() {
    const INF: f32 = f32::INFINITY;
    let stack = corners();
    for (backend, device) in devices() {
        let of = |a: [f32; 3], b: [f32; 2]| {
            vec![Tensor::<1>::from_data(a, &device), Tensor::from_data(b, &device)]
        };
        for reduce in Reduce::ALL {
            let what = format!("{backend}, {reduce:?}");
            for bad in [f32::NAN, INF, -INF] {
                let is_bad = |y: f64| if bad.is_nan() { y.is_nan() } else { y == f64::from(bad) };
                // The only messages of destination 0 are bad: that is an answer, not "no answer".
                let y = f64s(multi_gspmm(&stack, of([bad, 9.0, bad], [1.0, 2.0]), reduce));
                assert!(is_bad(y[0]) && y[1].is_finite() && y[2] == 0.0, "{what}, {bad}: {y:?}");
                for cross in CrossReduce::ALL {
                    let y = f64s(multi_gspmm_cross(
                        &stack,
                        of([bad, 9.0, bad], [1.0, 2.0]),
                        reduce,
                        cross,
                    ));
                    // Relation 1 has no message for destination 0 and takes part with 0, unless both take the best.
                    let same = matches!(
                        (reduce, cross),
                        (Reduce::Max, CrossReduce::Max) | (Reduce::Min, CrossReduce::Min)
                    );
                    let zero_wins = !same
                        && (cross == CrossReduce::Max && bad == -INF
                            || cross == CrossReduce::Min && bad == INF);
                    assert!(
                        if zero_wins { y[0] == 0.0 } else { is_bad(y[0]) },
                        "{what} {cross:?}, {bad}: {y:?}"
                    );
                    assert!(y[1].is_finite() && y[2] == 0.0, "{what} {cross:?}, {bad}: {y:?}");
                }
            }
            // The second table has a better value, so this one is not the result.
            let y = f64s(multi_gspmm(
                &stack,
                of([1.0, 2.0, 3.0], [f32::NAN, if reduce == Reduce::Min { -5.0 } else { 5.0 }]),
                reduce,
            ));
            assert!(y[1].is_nan() && y[0].is_finite(), "{what}: {y:?}");
        }
    }
}

/// Of equal messages the first relation's wins, inside it the first edge; the first NaN likewise.
#[test]
fn the_first_relation_wins_then_the_first_edge() {
    // Both relations give destination 0 two messages; edges in falling order of sources.
    let (a, b) = (
        graphs::relation(3, 2, &[(0, 1), (2, 0), (1, 0)]),
        graphs::relation(3, 2, &[(2, 0), (0, 0), (0, 1)]),
    );
    let stack = RelationStack::new(2, &[3, 3], &[(1, a), (0, b)]).unwrap();
    let leaf =
        |data: [f32; 3], device: &Device| Tensor::<1>::from_data(data, device).require_grad();
    for (backend, device) in devices() {
        let device = device.autodiff();
        for (reduce, cross) in [(Reduce::Max, CrossReduce::Max), (Reduce::Min, CrossReduce::Min)] {
            for joint in [true, false] {
                let of = |x: [Tensor<1>; 2]| {
                    let [a, b] = x.clone();
                    let y = if joint {
                        multi_gspmm(&stack, x.to_vec(), reduce)
                    } else {
                        multi_gspmm_cross(&stack, x.to_vec(), reduce, cross)
                    };
                    let grads = y.sum().backward();
                    [f64s(a.grad(&grads).unwrap()), f64s(b.grad(&grads).unwrap())]
                };
                let what = format!("{backend}, {reduce:?}, joint {joint}");
                // Table 1 belongs to the first relation, whose edges come first: edge (2, 0), and (0, 1) for
                // destination 1.
                let ties = of([leaf([7.0; 3], &device), leaf([7.0; 3], &device)]);
                assert_eq!(ties, [[0.0; 3], [1.0, 0.0, 1.0]], "{what}");
                // NaN in source 1 of relation 0, then in all of relation 1.
                let nan = of([leaf([f32::NAN; 3], &device), leaf([7.0, f32::NAN, 7.0], &device)]);
                assert_eq!(nan, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], "{what}, NaN");
            }
        }
        // Relations without best messages of their own: the first one's sum.
        for cross in [CrossReduce::Max, CrossReduce::Min] {
            let [a, b] = [[1.0, 1.0, 1.0], [2.0, 1.0, 1.0]].map(|x| leaf(x, &device));
            let y = multi_gspmm_cross(&stack, vec![a.clone(), b.clone()], Reduce::Sum, cross)
                .slice(0..1);
            let grads = y.sum().backward();
            assert_eq!(
                [a, b].map(|x| f64s(x.grad(&grads).unwrap())),
                [[0.0; 3], [0.0, 1.0, 1.0]],
                "{backend}, {cross:?} of sums"
            );
        }
    }
}

/// Relations of random edges between 900 and 700 sources and 500 destinations.
fn large() -> RelationStack {
    let relations =
        [(0, 900, 9000, 3.0), (1, 700, 20_000, 2.0), (0, 900, 50, 1.0), (1, 700, 0, 1.0)];
    RelationStack::new(
        500,
        &[900, 700],
        &relations.map(|(t, n, edges, skew)| (t, graphs::random(n, 500, edges, skew))),
    )
    .unwrap()
}

/// Result and gradients of both tables.
fn run(
    stack: &RelationStack,
    x: &[TensorData; 2],
    how: (Reduce, Option<CrossReduce>),
    place: (&Device, DType),
) -> [Vec<f64>; 3] {
    let device = place.0.clone().autodiff();
    let x = x.clone().map(|x| Tensor::<2>::from_data(x, (&device, place.1)).require_grad());
    let y = match how.1 {
        None => multi_gspmm(stack, x.to_vec(), how.0),
        Some(cross) => multi_gspmm_cross(stack, x.to_vec(), how.0, cross),
    };
    let cotangent = TensorData::new(numbers(9, y.shape().num_elements()), y.shape());
    let grads = (y.clone() * Tensor::from_data(cotangent, (&device, place.1))).sum().backward();
    let [a, b] = x.map(|x| f64s(x.grad(&grads).unwrap()));
    [f64s(y), a, b]
}

fn every() -> impl Iterator<Item = (Reduce, Option<CrossReduce>)> {
    Reduce::ALL
        .into_iter()
        .flat_map(|r| [None].into_iter().chain(CrossReduce::ALL.map(Some)).map(move |c| (r, c)))
}

fn tables(width: usize) -> [TensorData; 2] {
    [900, 700].map(|n| TensorData::new(numbers(n as u64, n * width), [n, width]))
}

#[test]
fn any_number_of_threads() {
    let stack = large();
    for (backend, device) in devices() {
        for how in every() {
            let x = tables(20);
            assert_same_bits_on_threads(format_args!("{backend}, {how:?}"), || {
                run(&stack, &x, how, (&device, DType::F32)).concat()
            });
        }
    }
}

#[test]
fn half_floats_are_f32_rounded_once() {
    let stack = large();
    let device = Device::flex();
    for (dtype, unit) in HALVES {
        let x = tables(5).map(|x| x.convert_dtype(dtype));
        let size = |x: &[f64]| x.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        for how in every() {
            let [half, single] = [dtype, DType::F32]
                .map(|d| run(&stack, &x.clone().map(|x| x.convert_dtype(d)), how, (&device, d)));
            let what = format!("{dtype:?}, {how:?}");
            if how.1.is_none() {
                assert_eq!(half[0], rounded(&single[0], dtype), "{what}: one sum, rounded once");
            } else {
                // Four relations, rounded each, combined and divided: of rows as large as any.
                let bound = 8.0 * unit * size(&single[0]);
                assert!(
                    half[0].iter().zip(&single[0]).all(|(a, b)| (a - b).abs() <= bound),
                    "{what}, out"
                );
            }
            // Argmax indices are those of the wider type where messages are compared as they are, not as sums.
            if how.1.is_none() || !matches!(how.1, Some(CrossReduce::Max | CrossReduce::Min)) {
                for i in [1, 2] {
                    let what = format_args!("{what}, gradient {i}");
                    assert_close_to_largest(what, &half[i], &single[i], 8.0 * unit);
                }
            }
        }
    }
}

#[test]
fn no_relations_and_what_is_refused() {
    let device = Device::flex();
    let none = RelationStack::new(2, &[3], &[]).unwrap();
    let x = vec![Tensor::<2>::ones([3, 2], &device)];
    assert_eq!(f64s(multi_gspmm_cross(&none, x, Reduce::Max, CrossReduce::Mean)), [0.0; 4]);
    let (stack, _) = stack();
    let error = try_multi_gspmm(&stack, sources(&device)[..1].to_vec(), Reduce::Sum)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "multi_gspmm: `sources` must have 2 entries (one tensor per table of the stack), got 1; give as many entries"
    );
    let swapped = sources(&device).into_iter().rev().collect();
    let error = try_multi_gspmm_cross(&stack, swapped, Reduce::Sum, CrossReduce::Max)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "multi_gspmm_cross: number of rows (rows of its table) of `sources[0]` must be 4, got 3; give the tensors in the order of the stack"
    );
}
