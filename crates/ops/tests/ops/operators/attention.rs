//! Fused attention against its composition and finite differences, and corner cases.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::Relation;
use burn_gnn_ops::*;
use proptest::prelude::*;

use crate::numerics::half_types::{HALVES, rounded};
use crate::{devices, f64s, numbers};
use burn_gnn_testutil::{
    assert_close, assert_close_to_largest, assert_same_bits_on_threads, central_differences, graphs,
};

/// One call: sizes, operands, element type. Without `slope` the scores are the logits `first`.
#[derive(Clone, Debug)]
struct Case {
    relation: Relation,
    heads: usize,
    dim: usize,
    slope: Option<f64>,
    dropout: Option<EdgeDropout>,
    z: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
    dtype: DType,
}

/// Result and gradients of `z`, `a_src` or logits, and `a_dst`.
type Outcome = [Vec<f64>; 4];

const NAMES: [&str; 4] = ["out", "d z", "d first", "d second"];

impl Case {
    fn new(
        relation: &Relation,
        heads: usize,
        dim: usize,
        gat: bool,
        prob: Option<f64>,
        seed: u64,
    ) -> Self {
        let n = relation.num_edges() as u64;
        let ids = (0..n).map(|e| 1_000_000 - 3 * e).collect::<Vec<_>>();
        let dropout = prob.map(|prob| EdgeDropout {
            prob,
            stream: Stream::new(seed, "attention", 1),
            ids: Some(ids.into()),
        });
        let rows = if gat { relation.num_src() } else { relation.num_edges() };
        Self {
            relation: relation.clone(),
            heads,
            dim,
            slope: gat.then_some(0.2),
            dropout,
            z: numbers(3 * seed, relation.num_src() * heads * dim),
            first: numbers(3 * seed + 1, rows * heads),
            second: numbers(3 * seed + 2, relation.num_dst() * heads),
            dtype: DType::F64,
        }
    }

    fn run(&self, device: &Device, reference: bool) -> Outcome {
        let device = device.clone().autodiff();
        let two = |data: &[f64], rows: usize| {
            Tensor::<2>::from_data(
                TensorData::new(data.to_vec(), [rows, self.heads]),
                (&device, self.dtype),
            )
            .require_grad()
        };
        let shape = [self.relation.num_src(), self.heads, self.dim];
        let z =
            Tensor::<3>::from_data(TensorData::new(self.z.clone(), shape), (&device, self.dtype))
                .require_grad();
        let second = two(&self.second, self.relation.num_dst());
        let (first, out) = match self.slope {
            Some(slope) => {
                let options = GatOptions { slope, dropout: self.dropout.clone() };
                let first = two(&self.first, self.relation.num_src());
                let f = if reference { gat_attention_reference } else { gat_attention };
                (first.clone(), f(&self.relation, z.clone(), first, second.clone(), &options))
            }
            None => {
                let first = two(&self.first, self.relation.num_edges());
                let f = if reference { attention_reference } else { attention };
                (first.clone(), f(&self.relation, first, z.clone(), self.dropout.as_ref()))
            }
        };
        let cotangent = TensorData::new(numbers(99, out.shape().num_elements()), out.shape());
        let mut loss = (out.clone() * Tensor::from_data(cotangent, (&device, self.dtype))).sum();
        if self.first.iter().all(|x| x.is_finite()) && (reference || self.slope.is_none()) {
            // The reference on a relation without edges, and `a_dst` with given logits, are not in the autodiff graph.
            // The product with 0 would be NaN for masks.
            loss = loss
                + (z.clone() * 0.0).sum()
                + (first.clone() * 0.0).sum()
                + (second.clone() * 0.0).sum();
        }
        let grads = loss.backward();
        assert_eq!(out.dtype(), self.dtype);
        let second_grad = second.grad(&grads).map_or_else(|| vec![0.0; self.second.len()], f64s);
        [f64s(out), f64s(z.grad(&grads).unwrap()), f64s(first.grad(&grads).unwrap()), second_grad]
    }

    #[track_caller]
    fn agree(&self, what: &str, tolerance: f64) {
        for (backend, device) in devices() {
            let (a, b) = (self.run(&device, false), self.run(&device, true));
            for i in 0..4 {
                assert_close(
                    &format!("{what}, {backend}, {} x {}, {}", self.heads, self.dim, NAMES[i]),
                    &a[i],
                    &b[i],
                    tolerance,
                );
            }
        }
    }
}

const SIZES: [(usize, usize); 9] =
    [(1, 1), (1, 8), (8, 8), (1, 40), (3, 5), (2, 9), (9, 16), (0, 3), (3, 0)];

#[test]
fn named_graphs() {
    for (name, relation) in graphs::named() {
        for (heads, dim) in SIZES {
            for gat in [true, false] {
                for prob in [None, Some(0.4)] {
                    let what = format!("{name}, gat {gat}, dropout {prob:?}");
                    Case::new(&relation, heads, dim, gat, prob, 5).agree(&what, 1e-12);
                }
            }
        }
    }
}

/// Rows with more edges than a block of the kernel, and numbers of draws that are no multiple of the lanes.
#[test]
fn long_rows() {
    for seed in 1..4 {
        let relation = graphs::random(60, 50, 1500 + 7 * seed as usize, 3.0);
        for (heads, dim) in [(8, 8), (1, 40), (5, 3), (6, 8)] {
            for gat in [true, false] {
                Case::new(&relation, heads, dim, gat, Some(0.5), seed).agree("long rows", 1e-11);
            }
        }
    }
}

fn differences(case: &Case, device: &Device, side: fn(&mut Case) -> &mut Vec<f64>) -> Vec<f64> {
    let loss = |case: &Case| -> f64 {
        let out = case.run(device, false)[0].clone();
        numbers(99, out.len()).iter().zip(&out).map(|(a, b)| a * b).sum()
    };
    central_differences(side(&mut case.clone()).len(), 1e-5, |i, by| {
        let mut case = case.clone();
        side(&mut case)[i] += by;
        loss(&case)
    })
}

#[test]
fn finite_differences() {
    for (backend, device) in devices() {
        for gat in [true, false] {
            for (heads, dim, prob) in
                [(2, 3, None), (2, 3, Some(0.3)), (8, 8, Some(0.3)), (1, 40, None)]
            {
                let case = Case::new(&graphs::small(), heads, dim, gat, prob, 2);
                let got = case.run(&device, false);
                let what = |i: usize| {
                    format!("{backend}, gat {gat}, {heads} x {dim}, {prob:?}, {}", NAMES[i])
                };
                assert_close(&what(1), &got[1], &differences(&case, &device, |c| &mut c.z), 1e-7);
                assert_close(
                    &what(2),
                    &got[2],
                    &differences(&case, &device, |c| &mut c.first),
                    1e-7,
                );
                assert!(
                    got[1].iter().any(|&g| g != 0.0) && got[2].iter().any(|&g| g.abs() > 1e-3),
                    "{}",
                    what(2)
                );
                if gat {
                    assert_close(
                        &what(3),
                        &got[3],
                        &differences(&case, &device, |c| &mut c.second),
                        1e-7,
                    );
                    assert!(got[3].iter().any(|&g| g.abs() > 1e-3), "{}", what(3));
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn any_graph_and_call(relation in graphs::any_relation(0..60), size in 0..SIZES.len(), gat: bool, drop: bool, seed in 1u64..1000) {
        let (heads, dim) = SIZES[size];
        Case::new(&relation, heads, dim, gat, drop.then_some(0.3), seed).agree("any graph", 1e-11);
    }

    /// Reordering edges with their ids and logits does not change results, as on a part of a graph.
    #[test]
    fn edge_order_does_not_matter(relation in graphs::any_relation(0..60), gat: bool, seed in 1u64..1000) {
        let n = relation.num_edges();
        let case = Case::new(&relation, 5, 3, gat, Some(0.4), seed);
        let mut reversed = case.clone();
        let edges: Vec<_> = (0..n).rev().map(|e| (relation.src()[e], relation.dst()[e])).collect();
        reversed.relation = graphs::relation(relation.num_src(), relation.num_dst(), &edges);
        let dropout = reversed.dropout.as_mut().unwrap();
        dropout.ids = dropout.ids.as_ref().map(|ids| ids.iter().rev().copied().collect());
        if !gat {
            reversed.first = case.first.chunks(5).rev().flatten().copied().collect();
        }
        let device = Device::flex();
        let (a, mut b) = (case.run(&device, false), reversed.run(&device, false));
        if !gat {
            b[2] = b[2].chunks(5).rev().flatten().copied().collect();
        }
        for i in 0..4 {
            assert_close(NAMES[i], &b[i], &a[i], 1e-11);
        }
    }
}

#[test]
fn any_number_of_threads() {
    let relation = graphs::random(900, 700, 9000, 3.0);
    for (backend, device) in devices() {
        for (heads, dim, dtype) in
            [(8, 8, DType::F32), (1, 40, DType::F32), (3, 7, DType::F32), (8, 8, DType::F64)]
        {
            for gat in [true, false] {
                let mut case = Case::new(&relation, heads, dim, gat, Some(0.5), 3);
                case.dtype = dtype;
                let what = format_args!("{backend}, {heads} x {dim}, gat {gat}");
                assert_same_bits_on_threads(what, || case.run(&device, false).concat());
            }
        }
    }
}

/// A star of 10⁵ leaves: weights add up to 1, forward and backward.
#[test]
fn star() {
    let leaves = 100_000usize;
    let relation =
        graphs::relation(leaves, 1, &(0..leaves as u32).map(|u| (u, 0)).collect::<Vec<_>>());
    for (heads, dim) in [(8, 8), (1, 1)] {
        let mut case = Case::new(&relation, heads, dim, true, None, 1);
        case.dtype = DType::F32;
        case.z.fill(1.0);
        let [out, dz, da, db] = case.run(&Device::flex(), false);
        assert_close("out", &out, &vec![1.0; heads * dim], 1e-4);
        let cotangent = numbers(99, heads * dim);
        for (c, want) in cotangent.iter().enumerate() {
            let sum: f64 = dz.iter().skip(c).step_by(heads * dim).sum();
            assert!((sum - want).abs() < 1e-4, "{sum} against {want}");
        }
        // All messages are equal, so scores do not matter.
        assert!(da.iter().chain(&db).all(|d| d.abs() < 1e-4));
    }
}

fn logits(device: &Device, values: &[f32]) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len(), 1]), device)
}

#[test]
fn infinities_and_nan_stay_visible() {
    const INF: f32 = f32::INFINITY;
    let rel = graphs::relation(3, 2, &[(0, 0), (1, 0), (2, 0)]);
    for (backend, device) in devices() {
        let z = Tensor::<3>::from_data([[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 9.0]]], &device);
        let out = |l: &[f32]| f64s(attention(&rel, logits(&device, l), z.clone(), None));
        // Scores for which exp would overflow.
        assert_eq!(out(&[1e30, -1e30, -1e30]), [1.0, 2.0, 0.0, 0.0], "{backend}");
        assert_eq!(out(&[3e38, 3e38, -3e38]), [2.0, 3.0, 0.0, 0.0]);
        assert_eq!(out(&[-INF, 0.0, -INF]), [3.0, 4.0, 0.0, 0.0]);
        for bad in
            [[f32::NAN, 0.0, 0.0], [0.0, 0.0, f32::NAN], [INF, 0.0, 0.0], [-INF, f32::NAN, -INF]]
        {
            let y = out(&bad);
            assert!(
                y[0].is_nan() && y[1].is_nan() && y[2..] == [0.0, 0.0],
                "{backend}, {bad:?}: {y:?}"
            );
            let r = f64s(attention_reference(&rel, logits(&device, &bad), z.clone(), None));
            assert!(r[0].is_nan() && r[2..] == [0.0, 0.0], "{backend}, {bad:?}: {r:?}");
        }
        let z = Tensor::<3>::from_data([[[1.0, INF]], [[3.0, 4.0]], [[5.0, f32::NAN]]], &device);
        let y = f64s(attention(&rel, logits(&device, &[0.0; 3]), z.slice(0..3), None));
        assert!(y[0] == 3.0 && y[1].is_nan(), "{backend}: {y:?}");
    }
}

/// Sources 0 and 1 are masked: destination 0 has no other source, destination 1 has two others, destination 2 has one
/// in-edge, destination 3 none. Results equal those without the masked edges, with exact zeros.
#[test]
fn masks() {
    let edges = [(0, 0), (2, 1), (1, 0), (0, 1), (3, 1), (2, 2)];
    let kept = [1, 4, 5];
    let (all, part) =
        (graphs::relation(4, 4, &edges), graphs::relation(4, 4, &kept.map(|e: usize| edges[e])));
    for (heads, dim) in [(1, 2), (8, 8), (1, 40), (9, 3)] {
        for (gat, dtype, reference) in [true, false].into_iter().flat_map(|g| {
            [DType::F32, DType::F64].into_iter().flat_map(move |d| [true, false].map(|r| (g, d, r)))
        }) {
            let mut masked = Case::new(&all, heads, dim, gat, None, 3);
            masked.dtype = dtype;
            let mut without = masked.clone();
            without.relation = part.clone();
            if gat {
                masked.first[..2 * heads].fill(f64::NEG_INFINITY);
            } else {
                without.first = kept
                    .iter()
                    .flat_map(|&e| masked.first[e * heads..][..heads].to_vec())
                    .collect();
                [0, 2, 3]
                    .into_iter()
                    .for_each(|e| masked.first[e * heads..][..heads].fill(f64::NEG_INFINITY));
            }
            for (backend, device) in devices() {
                let what = format!(
                    "{backend}, {heads} x {dim}, gat {gat}, {dtype:?}, reference {reference}"
                );
                let (a, b) = (masked.run(&device, reference), without.run(&device, reference));
                let tolerance = if dtype == DType::F64 { 1e-12 } else { 1e-5 };
                for i in [0, 1, 3] {
                    assert_close(&format!("{what}, {}", NAMES[i]), &a[i], &b[i], tolerance);
                }
                let width = heads * dim;
                assert!(
                    a[0][..width].iter().chain(&a[0][3 * width..]).all(|&y| y == 0.0),
                    "{what}: {:?}",
                    a[0]
                );
                assert!(a[1][..2 * width].iter().all(|&d| d == 0.0), "{what}, d z");
                let zeros: &[usize] = if gat { &[0, 1] } else { &[0, 2, 3] };
                for &row in zeros {
                    assert!(
                        a[2][row * heads..][..heads].iter().all(|&d| d == 0.0),
                        "{what}, d scores: {:?}",
                        a[2]
                    );
                }
                assert!(a[3][..heads].iter().all(|&d| d == 0.0), "{what}, d a_dst");
                let rows = if gat { vec![2, 3] } else { kept.to_vec() };
                let got: Vec<f64> =
                    rows.iter().flat_map(|&r| a[2][r * heads..][..heads].to_vec()).collect();
                assert_close(
                    &format!("{what}, d scores"),
                    &got,
                    if gat { &b[2][2 * heads..] } else { &b[2] },
                    tolerance,
                );
            }
        }
    }
    for (backend, device) in devices() {
        let device = device.autodiff();
        for dtype in [DType::F32, DType::F64] {
            let a_src = Tensor::<2>::from_data(
                [[f64::NEG_INFINITY], [f64::NEG_INFINITY], [1.0], [1.0]],
                (&device, dtype),
            )
            .require_grad();
            let weights = gat_attention_weights(
                &all,
                a_src.clone(),
                Tensor::zeros([4, 1], (&device, dtype)),
                &GatOptions::default(),
            );
            assert_eq!(
                f64s(weights.clone()),
                [0.0, 0.5, 0.0, 0.0, 0.5, 1.0],
                "{backend}, {dtype:?}"
            );
            let c = Tensor::<2>::from_data(
                [[3.0], [1.0], [5.0], [7.0], [2.0], [8.0]],
                (&device, dtype),
            );
            let d = f64s(a_src.grad(&(weights * c).sum().backward()).unwrap());
            assert_eq!(d, [0.0, 0.0, -0.25, 0.25], "{backend}, {dtype:?}");
        }
    }
}

#[test]
fn half_floats_are_f32_rounded_once() {
    let relation = graphs::random(30, 20, 400, 2.0);
    for (dtype, ulp) in HALVES {
        for gat in [true, false] {
            for (heads, dim) in [(8, 8), (3, 5)] {
                let mut half = Case::new(&relation, heads, dim, gat, Some(0.25), 4);
                for x in [&mut half.z, &mut half.first, &mut half.second] {
                    *x = rounded(x, dtype);
                }
                half.dtype = dtype;
                let mut single = half.clone();
                single.dtype = DType::F32;
                let (a, b) = (half.run(&Device::flex(), false), single.run(&Device::flex(), false));
                assert_close(&format!("{dtype:?}, out"), &a[0], &b[0], ulp);
                // The cotangent of `single` is not rounded, and T is computed from the rounded result.
                for i in 1..4 {
                    let what = format_args!("{dtype:?}, {}", NAMES[i]);
                    assert_close_to_largest(what, &a[i], &b[i], 4.0 * ulp);
                }
            }
        }
    }
}

#[test]
fn weights_are_those_of_the_fused_operator() {
    for (name, relation) in graphs::named() {
        for (backend, device) in devices() {
            for prob in [None, Some(0.5)] {
                let case = Case::new(&relation, 3, 2, true, prob, 8);
                let options = GatOptions { slope: 0.2, dropout: case.dropout.clone() };
                let two = |x: &[f64], n: usize| {
                    Tensor::<2>::from_data(
                        TensorData::new(x.to_vec(), [n, 3]),
                        (&device, DType::F64),
                    )
                };
                let (a_src, a_dst) =
                    (two(&case.first, relation.num_src()), two(&case.second, relation.num_dst()));
                let weights = f64s(gat_attention_weights(&relation, a_src, a_dst, &options));
                assert_eq!(weights.len(), relation.num_edges() * 3);
                let mut want = vec![0.0; relation.num_dst() * 6];
                for e in 0..relation.num_edges() {
                    let (u, v) = (relation.src()[e] as usize, relation.dst()[e] as usize);
                    for h in 0..3 {
                        for d in 0..2 {
                            want[v * 6 + h * 2 + d] +=
                                weights[e * 3 + h] * case.z[u * 6 + h * 2 + d];
                        }
                    }
                }
                assert_close(
                    &format!("{name}, {backend}"),
                    &case.run(&device, false)[0],
                    &want,
                    1e-12,
                );
            }
        }
    }
}

#[test]
fn only_what_is_tracked_gets_a_gradient() {
    let case = Case::new(&graphs::small(), 2, 3, true, None, 6);
    let all = case.run(&Device::flex(), false);
    let device = Device::flex().autodiff();
    for tracked in 1..8u32 {
        let track2 = |x: Tensor<2>, bit: u32| if tracked & bit != 0 { x.require_grad() } else { x };
        let two = |x: &[f64], n: usize| {
            Tensor::<2>::from_data(TensorData::new(x.to_vec(), [n, 2]), (&device, DType::F64))
        };
        let z = Tensor::<3>::from_data(
            TensorData::new(case.z.clone(), [5, 2, 3]),
            (&device, DType::F64),
        );
        let z = if tracked & 1 != 0 { z.require_grad() } else { z };
        let (a, b) = (track2(two(&case.first, 5), 2), track2(two(&case.second, 4), 4));
        let y =
            gat_attention(&case.relation, z.clone(), a.clone(), b.clone(), &GatOptions::default());
        let c = Tensor::<3>::from_data(
            TensorData::new(numbers(99, 24), [4, 2, 3]),
            (&device, DType::F64),
        );
        let grads = (y * c).sum().backward();
        let found = [z.grad(&grads).map(f64s), a.grad(&grads).map(f64s), b.grad(&grads).map(f64s)];
        for (i, got) in found.into_iter().enumerate() {
            assert_eq!(
                got,
                (tracked >> i & 1 != 0).then(|| all[i + 1].clone()),
                "tracked {tracked:b}, {}",
                NAMES[i + 1]
            );
        }
    }
}

#[test]
fn errors() {
    let rel = graphs::small();
    let device = Device::flex();
    let z = || Tensor::<3>::zeros([5, 2, 3], &device);
    let two = |n: usize, h: usize| Tensor::<2>::zeros([n, h], &device);
    let text = |r: Result<Tensor<3>, OpsError>| r.unwrap_err().to_string();
    let gat = |z: Tensor<3>, a: Tensor<2>, b: Tensor<2>, o: GatOptions| {
        text(try_gat_attention(&rel, z, a, b, &o))
    };
    let plain = GatOptions::default;
    assert_eq!(
        gat(Tensor::zeros([4, 2, 3], &device), two(5, 2), two(4, 2), plain()),
        "gat_attention: `z` must have 5 rows (one per source node of the relation), got 4; give as many rows"
    );
    assert_eq!(
        gat(z(), two(4, 2), two(4, 2), plain()),
        "gat_attention: `a_src` must have 5 rows (one per source node of the relation), got 4; give as many rows"
    );
    assert_eq!(
        gat(z(), two(5, 2), two(5, 2), plain()),
        "gat_attention: `a_dst` must have 4 rows (one per destination node of the relation), got 5; give as many rows"
    );
    assert_eq!(
        gat(z(), two(5, 3), two(4, 2), plain()),
        "gat_attention: `a_src` must have feature size 2 (one per head), got 3; give as many features"
    );
    assert_eq!(
        gat(z(), two(5, 2), two(4, 1), plain()),
        "gat_attention: `a_dst` must have feature size 2 (one per head), got 1; give as many features"
    );
    let double = Tensor::<2>::zeros([4, 2], (&device, DType::F64));
    assert_eq!(
        gat(z(), two(5, 2), double, plain()),
        "gat_attention: `a_dst` is F64 and `z` is F32; cast one of them"
    );
    let elsewhere = Tensor::<2>::zeros([5, 2], &burn_gnn_testutil::other_device());
    let e = gat(z(), elsewhere, two(4, 2), plain());
    assert!(
        e.starts_with("gat_attention: `a_src` is on ") && e.ends_with("move one of them"),
        "{e}"
    );
    let slope = GatOptions { slope: f64::NAN, dropout: None };
    assert_eq!(
        gat(z(), two(5, 2), two(4, 2), slope),
        "gat_attention: `slope` must be a finite number, got NaN"
    );
    let dropout = |prob, ids| EdgeDropout { prob, stream: Stream::new(0, "d", 0), ids };
    let with = |d| GatOptions { slope: 0.2, dropout: Some(d) };
    assert_eq!(
        gat(z(), two(5, 2), two(4, 2), with(dropout(1.0, None))),
        "gat_attention: `dropout.prob` must lie in [0, 1), got 1; give 0 for no dropout"
    );
    assert_eq!(
        gat(z(), two(5, 2), two(4, 2), with(dropout(0.5, Some([1, 2].into())))),
        "gat_attention: `dropout.ids` must have 8 rows (one per edge of the relation), got 2; give as many rows"
    );
    assert_eq!(
        text(try_attention(&rel, two(7, 2), z(), None)),
        "attention: `logits` must have 8 rows (one per edge of the relation), got 7; give as many rows"
    );
    assert_eq!(
        text(try_attention(&rel, two(8, 1), z(), None)),
        "attention: `logits` must have feature size 2 (one per head), got 1; give as many features"
    );
    let none = graphs::relation(0, 0, &[]);
    let wide = Tensor::<3>::zeros([0, 1 << 20, 1 << 20], &device);
    let e = text(try_attention(&none, Tensor::zeros([0, 1 << 20], &device), wide, None));
    assert!(
        e.contains("a row of feature shape [1048576, 1048576]")
            && e.contains("at most 134217727 entries"),
        "{e}"
    );
    let e =
        try_gat_attention_weights(&rel, two(5, 2), two(4, 3), &plain()).unwrap_err().to_string();
    assert_eq!(
        e,
        "gat_attention_weights: `a_dst` must have feature size 2 (one per head), got 3; give as many features"
    );
}

#[test]
#[should_panic(expected = "attention: `z` must have 5 rows")]
fn the_panic_says_the_same() {
    let device = Device::flex();
    let _ = attention(
        &graphs::small(),
        Tensor::zeros([8, 1], &device),
        Tensor::zeros([1, 1, 1], &device),
        None,
    );
}
