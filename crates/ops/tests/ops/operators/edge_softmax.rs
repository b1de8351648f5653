//! Edge softmax: gradients against finite differences, kernels against the reference, and its corners.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::{Relation, RelationStack};
use burn_gnn_ops::*;
use proptest::prelude::*;

use crate::numerics::half_types::HALVES;
use crate::{devices, f64s, numbers, with_rows};
use burn_gnn_testutil::{assert_close, assert_same_bits_on_threads, central_differences, graphs};

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;
const BOTH: [NormBy; 2] = [NormBy::Dst, NormBy::Src];

/// Probabilities and gradient of a weighted sum of them, in f64.
type Outcome = (Vec<f64>, Vec<f64>);

fn run<const D: usize>(
    x: &TensorData,
    dtype: DType,
    device: &Device,
    f: impl Fn(Tensor<D>) -> Tensor<D>,
) -> Outcome {
    let device = device.clone().autodiff();
    let x = Tensor::<D>::from_data(x.clone(), (&device, dtype)).require_grad();
    let y = f(x.clone());
    let cotangent = TensorData::new(numbers(99, y.shape().num_elements()), y.shape());
    // The reference of a relation without edges is its input.
    let grads = (y.clone() * Tensor::from_data(cotangent, (&device, dtype))).sum().backward();
    (f64s(y), f64s(x.grad(&grads).unwrap()))
}

fn logits(rows: usize, features: &[usize], seed: u64) -> TensorData {
    let shape = with_rows(rows, features);
    TensorData::new(numbers(seed, shape.iter().product()), shape)
}

/// `f` at the rank of the data.
macro_rules! by_rank {
    ($x:expr, $dtype:expr, $device:expr, $f:expr) => {
        match $x.shape().num_dims() {
            1 => run::<1>($x, $dtype, $device, $f),
            2 => run::<2>($x, $dtype, $device, $f),
            3 => run::<3>($x, $dtype, $device, $f),
            other => panic!("no run for rank {other}"),
        }
    };
}

const FEATURES: [&[usize]; 9] = [&[], &[1], &[3], &[4], &[8], &[13], &[8, 1], &[2, 3], &[0]];

fn agree(what: &str, relation: &Relation, features: &[usize], norm_by: NormBy, seed: u64) {
    let x = logits(relation.num_edges(), features, seed);
    for (backend, device) in devices() {
        let what = format!("{what}, {backend}, {features:?} {norm_by:?}");
        let got = by_rank!(&x, DType::F64, &device, |x| edge_softmax(relation, x, norm_by));
        let want =
            by_rank!(&x, DType::F64, &device, |x| edge_softmax_reference(relation, x, norm_by));
        assert_close(&format!("{what}, y"), &got.0, &want.0, 1e-12);
        assert_close(&format!("{what}, d x"), &got.1, &want.1, 1e-12);
    }
}

#[test]
fn named_graphs() {
    for (name, relation) in graphs::named() {
        for (features, norm_by) in FEATURES.into_iter().flat_map(|f| BOTH.map(|n| (f, n))) {
            agree(name, &relation, features, norm_by, 3);
        }
    }
    agree("skewed", &graphs::random(90, 70, 900, 3.0), &[5], NormBy::Dst, 4);
}

proptest! {
    #[test]
    fn any_graph(
        (a, b, edges) in (1u32..9, 1u32..9).prop_flat_map(|(a, b)| {
            (Just(a), Just(b), proptest::collection::vec((0..a, prop_oneof![1 => Just(0), 2 => 0..b]), 0..40))
        }),
        features in 0..FEATURES.len(),
        src in any::<bool>(),
        seed in 0u64..1000,
    ) {
        let norm_by = if src { NormBy::Src } else { NormBy::Dst };
        agree("any", &graphs::relation(a as usize, b as usize, &edges), FEATURES[features], norm_by, seed);
    }

    /// Softmax over a subset is softmax on the graph of those edges, and a mask of `-inf` for the others.
    #[test]
    fn a_subset_is_a_mask(chosen in proptest::collection::vec(any::<bool>(), 60), reversed in any::<bool>(), seed in 0u64..1000) {
        let relation = graphs::random(7, 5, 60, 1.5);
        let mut eids: Vec<u32> = (0..60).filter(|&e| chosen[e as usize]).collect();
        if reversed {
            eids.reverse();
        }
        let x = logits(60, &[2], seed);
        let all: Vec<f64> = x.try_to_vec().unwrap();
        let device = Device::flex();
        for norm_by in BOTH {
            let some: Vec<f64> = eids.iter().flat_map(|&e| all[2 * e as usize..][..2].to_vec()).collect();
            let some = Tensor::<2>::from_data(TensorData::new(some, [eids.len(), 2]), (&device, DType::F64));
            let got = f64s(edge_softmax_on(&relation, &eids, some, norm_by));
            let masked: Vec<f64> = all.iter().enumerate().map(|(i, &x)| if chosen[i / 2] { x } else { f64::NEG_INFINITY }).collect();
            let masked = Tensor::<2>::from_data(TensorData::new(masked, [60, 2]), (&device, DType::F64));
            let want = f64s(edge_softmax(&relation, masked, norm_by));
            let want: Vec<f64> = eids.iter().flat_map(|&e| want[2 * e as usize..][..2].to_vec()).collect();
            assert_close("subset", &got, &want, 1e-12);
        }
    }
}

#[test]
fn finite_differences() {
    let relation = graphs::small();
    let eids = [6, 0, 2, 3, 7];
    for (backend, device) in devices() {
        for (features, norm_by) in
            [&[][..], &[3], &[8], &[2, 3]].into_iter().flat_map(|f: &[usize]| BOTH.map(|n| (f, n)))
        {
            for on in [false, true] {
                let x = logits(if on { eids.len() } else { 8 }, features, 5);
                let f = |x: &TensorData| {
                    if on {
                        by_rank!(x, DType::F64, &device, |x| edge_softmax_on(
                            &relation, &eids, x, norm_by
                        ))
                    } else {
                        by_rank!(x, DType::F64, &device, |x| edge_softmax(&relation, x, norm_by))
                    }
                };
                let loss = |x: &TensorData| {
                    f(x).0
                        .iter()
                        .zip(numbers(99, x.num_elements()))
                        .map(|(a, b)| a * b)
                        .sum::<f64>()
                };
                let differences = central_differences(x.num_elements(), 1e-5, |i, by| {
                    let mut x = x.clone();
                    x.as_mut_slice::<f64>().unwrap()[i] += by;
                    loss(&x)
                });
                assert_close(
                    &format!("{backend}, {features:?} {norm_by:?}, subset {on}"),
                    &f(&x).1,
                    &differences,
                    1e-8,
                );
            }
        }
    }
}

#[test]
fn hand_computed() {
    let rel = graphs::relation(2, 3, &[(0, 0), (1, 0), (1, 2), (0, 2), (1, 2)]);
    for (_, device) in devices() {
        let ln = |x: f32| x.ln();
        let x = Tensor::<1>::from_data([ln(1.0), ln(3.0), ln(2.0), ln(2.0), ln(4.0)], &device);
        assert_close(
            "dst",
            &f64s(edge_softmax(&rel, x.clone(), NormBy::Dst)),
            &[0.25, 0.75, 0.25, 0.25, 0.5],
            1e-6,
        );
        let (a, b) = (3.0, 9.0);
        assert_close(
            "src",
            &f64s(edge_softmax(&rel, x, NormBy::Src)),
            &[1.0 / a, 3.0 / b, 2.0 / b, 2.0 / a, 4.0 / b],
            1e-6,
        );
    }
}

#[test]
fn large_logits_do_not_overflow() {
    let rel = graphs::relation(3, 1, &[(0, 0), (1, 0), (2, 0)]);
    for (backend, device) in devices() {
        for at in [3e38f32, -3e38, 1e4, -1e4] {
            let x = Tensor::<1>::from_data([at, at, at], &device);
            assert_close(backend, &f64s(edge_softmax(&rel, x, NormBy::Dst)), &[1.0 / 3.0; 3], 1e-6);
        }
        let x = Tensor::<1>::from_data([3e38f32, -3e38, 0.0], &device);
        assert_eq!(f64s(edge_softmax(&rel, x, NormBy::Dst)), [1.0, 0.0, 0.0], "{backend}");
    }
}

#[test]
fn masks_infinities_and_nan() {
    // Destination 0: a mask and two numbers; 1: masks only; 2: +inf; 3: NaN; 4: one masked, one not; 5: a mask, NaN.
    let endpoints = [
        (0, 0),
        (1, 1),
        (1, 0),
        (0, 2),
        (0, 0),
        (0, 1),
        (1, 2),
        (0, 3),
        (1, 3),
        (0, 4),
        (1, 4),
        (0, 5),
        (1, 5),
    ];
    let rel = graphs::relation(2, 6, &endpoints);
    let reversed = graphs::relation(6, 2, &endpoints.map(|(u, v)| (v, u)));
    type Softmax = fn(&Relation, Tensor<1>, NormBy) -> Tensor<1>;
    let kernel: Softmax = edge_softmax;
    for (backend, device, dtype) in places() {
        let device = device.autodiff();
        for (name, f, rel, norm_by) in [
            ("kernel", kernel, &rel, NormBy::Dst),
            ("kernel, sources", kernel, &reversed, NormBy::Src),
            ("reference", edge_softmax_reference, &rel, NormBy::Dst),
            (
                "subset",
                |rel, x, by| edge_softmax_on(rel, &(0..13).collect::<Vec<_>>(), x, by),
                &rel,
                NormBy::Dst,
            ),
        ] {
            let what = format!("{backend}, {dtype:?}, {name}");
            let x = [-INF, -INF, 0.0, INF, 0.0, -INF, 1.0, NAN, 1.0, 7.0, -INF, -INF, NAN];
            let x = Tensor::<1>::from_data(x, (&device, dtype)).require_grad();
            let y = f(rel, x.clone(), norm_by);
            let seen: Vec<Option<f64>> =
                f64s(y.clone()).into_iter().map(|y| (!y.is_nan()).then_some(y)).collect();
            let (zero, half, one) = (Some(0.0), Some(0.5), Some(1.0));
            assert_eq!(
                seen,
                [zero, zero, half, None, half, zero, None, None, None, one, zero, None, None],
                "{what}"
            );
            // A mask has gradient 0 and lets others be.
            let c = [5.0, 1.0, 1.0, 1.0, 3.0, 4.0, 1.0, 1.0, 1.0, 2.0, 9.0, 1.0, 1.0];
            let grads = (y * Tensor::<1>::from_data(c, (&device, dtype))).sum().backward();
            let d = f64s(x.grad(&grads).unwrap());
            assert_eq!(
                [d[0], d[1], d[2], d[4], d[5], d[9], d[10]],
                [0.0, 0.0, -0.5, 0.5, 0.0, 0.0, 0.0],
                "{what}"
            );
            assert!(d[3].is_nan() && d[7].is_nan() && d[12].is_nan(), "{what}: {d:?}");
        }
    }
}

fn places() -> Vec<(&'static str, Device, DType)> {
    let half = [DType::F16, DType::BF16].map(|dtype| ("flex", Device::flex(), dtype));
    let both = devices().into_iter().flat_map(|(name, device)| {
        [DType::F32, DType::F64].map(|dtype| (name, device.clone(), dtype))
    });
    both.chain(half).collect()
}

/// Nodes of masks only in some columns: their columns are 0, and all others have the bits that they have without.
#[test]
fn masked_nodes_leave_others_alone() {
    let rel = graphs::random(9, 7, 60, 1.5);
    let masked = |e: usize, j: usize, width: usize| {
        rel.dst()[e].is_multiple_of(3) && (j % 3 == 1 || j + 1 == width)
    };
    for (backend, device, dtype) in places() {
        for width in [1, 3, 4, 8, 13] {
            for f in [edge_softmax::<2>, edge_softmax_reference::<2>] {
                let what = format!("{backend}, {dtype:?}, {width}");
                let plain = numbers(4, 60 * width);
                let x = (0..60 * width)
                    .map(|i| {
                        if masked(i / width, i % width, width) {
                            f64::NEG_INFINITY
                        } else {
                            plain[i]
                        }
                    })
                    .collect();
                let of = |x: Vec<f64>| {
                    let x = TensorData::new(x, [60, width]);
                    run::<2>(&x, dtype, &device, |x| f(&rel, x, NormBy::Dst))
                };
                let ((y, d), (want, want_d)) = (of(x), of(plain.clone()));
                let mut count = 0;
                for i in 0..60 * width {
                    let is_masked = masked(i / width, i % width, width);
                    count += usize::from(is_masked);
                    assert_eq!(
                        (y[i], d[i]),
                        if is_masked { (0.0, 0.0) } else { (want[i], want_d[i]) },
                        "{what}, entry {i}"
                    );
                }
                assert!(count > 5 && count < 60 * width, "{what}: the test does not test");
            }
        }
    }
    // Over relations too: destination 0 has masks only in both, destination 1 in one.
    let (a, b) =
        (graphs::relation(2, 2, &[(0, 0), (1, 1)]), graphs::relation(2, 2, &[(0, 1), (1, 0)]));
    let stack = RelationStack::new(2, &[2], &[(0, a), (0, b)]).unwrap();
    for (backend, device) in devices() {
        let x = [[-INF, 3.0], [-INF, -INF]].map(|x| Tensor::<1>::from_data(x, &device));
        let y = edge_softmax_across(&stack, x.to_vec());
        assert_eq!(
            y.into_iter().map(f64s).collect::<Vec<_>>(),
            [[0.0, 1.0], [0.0, 0.0]],
            "{backend}"
        );
    }
}

#[test]
fn across_relations() {
    let (a, b, c) =
        (graphs::random(6, 5, 20, 1.0), graphs::relation(3, 5, &[]), graphs::random(6, 5, 11, 2.0));
    let stack =
        RelationStack::new(5, &[6, 3], &[(0, a.clone()), (1, b.clone()), (0, c.clone())]).unwrap();
    for (backend, device) in devices() {
        let device = device.autodiff();
        let x: Vec<_> = [20, 0, 11]
            .into_iter()
            .zip(1..)
            .map(|(n, seed)| {
                Tensor::<2>::from_data(logits(n, &[2], seed), (&device, DType::F64)).require_grad()
            })
            .collect();
        let y = edge_softmax_across(&stack, x.clone());
        assert_eq!(y.iter().map(|y| y.dims()[0]).collect::<Vec<_>>(), [20, 0, 11], "{backend}");
        // The shares of all edges into a destination sum to 1.
        let mut sums = [0.0; 5];
        for (y, relation) in y.iter().zip([&a, &b, &c]) {
            f64s(y.clone().slice_dim(1, 0..1))
                .iter()
                .zip(relation.dst())
                .for_each(|(y, &v)| sums[v as usize] += y);
        }
        let reached: Vec<bool> = (0..5).map(|v| stack.concatenated().dst().contains(&v)).collect();
        for (sum, reached) in sums.iter().zip(reached) {
            assert!((sum - f64::from(u8::from(reached))).abs() < 1e-12, "{backend}: {sums:?}");
        }
        // As the reference on the joint relation, gradients too.
        let cotangents = [numbers(7, 40), numbers(8, 22)].map(|c| {
            Tensor::<2>::from_data(
                TensorData::new(c.clone(), [c.len() / 2, 2]),
                (&device, DType::F64),
            )
        });
        let grads = ((y[0].clone() * cotangents[0].clone()).sum()
            + (y[2].clone() * cotangents[1].clone()).sum())
        .backward();
        let all: Vec<f64> = x.iter().flat_map(|x| f64s(x.clone())).collect();
        let joint = Tensor::<2>::from_data(TensorData::new(all, [31, 2]), (&device, DType::F64))
            .require_grad();
        let want = edge_softmax_reference(stack.concatenated(), joint.clone(), NormBy::Dst);
        assert_close(
            backend,
            &y.iter().flat_map(|y| f64s(y.clone())).collect::<Vec<_>>(),
            &f64s(want.clone()),
            1e-12,
        );
        let want = (want * Tensor::cat(cotangents.to_vec(), 0)).sum().backward();
        let want = f64s(joint.grad(&want).unwrap());
        let got: Vec<f64> =
            [0, 2].into_iter().flat_map(|r| f64s(x[r].grad(&grads).unwrap())).collect();
        assert_close(&format!("{backend}, gradients"), &got, &want, 1e-12);
    }
    let none = RelationStack::new(4, &[], &[]).unwrap();
    assert!(edge_softmax_across::<2>(&none, vec![]).is_empty());
}

#[test]
fn finite_differences_across_relations() {
    // Destination 0 is reached by both, 1 by one of them, 2 by none; relation 1 has no edge.
    let (a, b, c) = (
        graphs::relation(4, 3, &[(0, 0), (3, 1), (0, 0)]),
        graphs::relation(2, 3, &[]),
        graphs::relation(4, 3, &[(1, 0), (2, 0)]),
    );
    let stack = RelationStack::new(3, &[4, 2], &[(0, a), (1, b), (0, c)]).unwrap();
    let counts = [3, 0, 2];
    for (backend, device) in devices() {
        let device = device.autodiff();
        for width in [1, 3, 8] {
            let data = |r: usize| numbers(r as u64 + 1, counts[r] * width);
            let leaf = |r: usize, x: Vec<f64>| {
                Tensor::<2>::from_data(
                    TensorData::new(x, [counts[r], width]),
                    (&device, DType::F64),
                )
            };
            let loss = |x: Vec<Tensor<2>>| {
                let y = edge_softmax_across(&stack, x);
                (0..3)
                    .map(|r| {
                        (y[r].clone() * leaf(r, numbers(20 + r as u64, counts[r] * width))).sum()
                    })
                    .reduce(|a, b| a + b)
                    .unwrap()
            };
            let x: Vec<_> = (0..3).map(|r| leaf(r, data(r)).require_grad()).collect();
            let grads = loss(x.clone()).backward();
            for r in [0, 2] {
                let differences = central_differences(counts[r] * width, 1e-5, |i, by| {
                    let mut values: Vec<_> = (0..3).map(data).collect();
                    values[r][i] += by;
                    f64s(loss(values.into_iter().enumerate().map(|(r, x)| leaf(r, x)).collect()))[0]
                });
                let got = f64s(x[r].grad(&grads).unwrap());
                assert_close(
                    &format!("{backend}, width {width}, relation {r}"),
                    &got,
                    &differences,
                    1e-8,
                );
                assert!(
                    got.iter().any(|d| d.abs() > 1e-3),
                    "{backend}, width {width}, relation {r}: zeros prove nothing"
                );
            }
        }
    }
}

#[test]
fn any_number_of_threads() {
    let relation = graphs::random(900, 700, 40_000, 3.0);
    for (backend, device) in devices() {
        for (features, norm_by) in
            [&[8usize][..], &[13], &[1]].into_iter().flat_map(|f| BOTH.map(|n| (f, n)))
        {
            let x = logits(40_000, features, 6);
            assert_same_bits_on_threads(
                format_args!("{backend}, {features:?} {norm_by:?}"),
                || {
                    let (y, d) =
                        by_rank!(&x, DType::F32, &device, |x| edge_softmax(&relation, x, norm_by));
                    [y, d].concat()
                },
            );
        }
    }
}

#[test]
fn half_floats_are_f32_rounded_once() {
    let relation = graphs::random(30, 20, 400, 2.0);
    let device = Device::flex();
    for (dtype, ulp) in HALVES {
        for features in [&[][..], &[8], &[7]] {
            let x = logits(400, features, 2).convert_dtype(dtype);
            let half = by_rank!(&x, dtype, &device, |x| edge_softmax(&relation, x, NormBy::Dst));
            let x = x.convert_dtype(DType::F32);
            let single =
                by_rank!(&x, DType::F32, &device, |x| edge_softmax(&relation, x, NormBy::Dst));
            // Half a unit in the last place; gradients see rounded probabilities and cotangents.
            assert_close(&format!("{dtype:?}, {features:?}"), &half.0, &single.0, ulp);
            assert_close(&format!("{dtype:?}, {features:?}, d x"), &half.1, &single.1, 4.0 * ulp);
        }
    }
}

/// 10^5 edges of one destination: sums of half floats do not stall, and one row does not need to fit anywhere.
#[test]
fn a_star() {
    let leaves = 100_000;
    let rel =
        graphs::relation(leaves, 1, &(0..leaves as u32).rev().map(|u| (u, 0)).collect::<Vec<_>>());
    for (backend, device) in devices() {
        let y = edge_softmax(&rel, Tensor::<2>::full([leaves, 8], 60.0, &device), NormBy::Dst);
        assert!(f64s(y).iter().all(|y| (y - 1e-5).abs() < 1e-11), "{backend}");
        let y = edge_softmax(&rel, Tensor::<2>::full([leaves, 1], 60.0, &device), NormBy::Src);
        assert!(f64s(y).iter().all(|&y| y == 1.0), "{backend}");
    }
    let y = edge_softmax(
        &rel,
        Tensor::<1>::zeros([leaves], (&Device::flex(), DType::F16)),
        NormBy::Dst,
    );
    assert!(f64s(y).iter().all(|y| (y - 1e-5).abs() < 1e-7));
}

#[test]
fn inputs_that_are_not_contiguous() {
    let rel = graphs::small();
    for (backend, device) in devices() {
        let x = Tensor::<2>::from_data(logits(8, &[3], 1), (&device, DType::F64));
        let want = f64s(edge_softmax(&rel, x.clone(), NormBy::Dst));
        let stored = Tensor::<2>::from_data(x.transpose().into_data(), (&device, DType::F64));
        assert_eq!(f64s(edge_softmax(&rel, stored.transpose(), NormBy::Dst)), want, "{backend}");
    }
}

#[test]
fn errors() {
    let rel = graphs::small();
    let zeros = |rows: usize| Tensor::<1>::zeros([rows], &Device::flex());
    let text = |e: OpsError| e.to_string();
    let error = try_edge_softmax(&rel, zeros(5), NormBy::Dst).unwrap_err();
    assert_eq!(
        text(error),
        "edge_softmax: `logits` must have 8 rows (one per edge of the relation), got 5; give as many rows"
    );
    let error = try_edge_softmax_on(&rel, &[1, 2], zeros(3), NormBy::Dst).unwrap_err();
    assert_eq!(
        text(error),
        "edge_softmax_on: `logits` must have 2 rows (one per entry of `eids`), got 3; give as many rows"
    );
    let error = try_edge_softmax_on(&rel, &[1, 8], zeros(2), NormBy::Dst).unwrap_err();
    assert_eq!(
        text(error),
        "edge_softmax_on: `eids[1]` must lie in 0..8 (edges of the relation), got 8; number them from 0"
    );
    let error = try_edge_softmax_on(&rel, &[5, 3, 0, 3], zeros(4), NormBy::Dst).unwrap_err();
    assert_eq!(
        text(error),
        "edge_softmax_on: `eids[3]` is edge 3, and so is `eids[1]`; give every edge once"
    );
    let none = graphs::relation(2, 2, &[]);
    let error = try_edge_softmax(
        &none,
        Tensor::<3>::zeros([0, 1 << 20, 1 << 20], &Device::flex()),
        NormBy::Dst,
    )
    .unwrap_err();
    assert!(
        matches!(error, OpsError::Plan(PlanError::TooWide { op: "edge_softmax", .. })),
        "{error}"
    );

    let stack = RelationStack::new(4, &[5], &[(0, rel.clone()), (0, rel)]).unwrap();
    let across = |x| text(try_edge_softmax_across::<1>(&stack, x).unwrap_err());
    let want = "edge_softmax_across: `logits` must have 2 entries (one tensor per relation of the stack), got 1; give as many entries";
    assert_eq!(across(vec![zeros(8)]), want);
    let want = "edge_softmax_across: number of rows (edges of its relation) of `logits[1]` must be 8, got 7; \
                give the tensors in the order of the stack";
    assert_eq!(across(vec![zeros(8), zeros(7)]), want);
    let double = Tensor::<1>::zeros([8], (&Device::flex(), DType::F64));
    assert_eq!(
        across(vec![zeros(8), double]),
        "edge_softmax_across: element type of `logits[1]` must be F32, got F64; cast it"
    );
    let elsewhere = Tensor::<1>::zeros([8], &burn_gnn_testutil::other_device());
    assert!(
        across(vec![zeros(8), elsewhere])
            .starts_with("edge_softmax_across: device of `logits[1]` must be ")
    );
    let wide = |n| Tensor::<2>::zeros([8, n], &Device::flex());
    let error = try_edge_softmax_across(&stack, vec![wide(2), wide(3)]).unwrap_err();
    let want = "edge_softmax_across: feature shape (first axis left out) of `logits[1]` must be [2], got [3]; reshape it";
    assert_eq!(text(error), want);
}

#[test]
#[should_panic(
    expected = "edge_softmax: `logits` must have 8 rows (one per edge of the relation), got 4"
)]
fn the_panic_says_the_same() {
    let _ =
        edge_softmax(&graphs::small(), Tensor::<2>::zeros([4, 1], &Device::flex()), NormBy::Src);
}
