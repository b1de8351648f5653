//! GSDDMM: gradients against finite differences, kernels against the reference, and its corners.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::Relation;
use burn_gnn_ops::*;
use proptest::prelude::*;

use crate::{assert_near, devices, f64s, graphs, numbers, with_rows};

/// Feature shapes (first axis left out) of `lhs` and `rhs`, one pair for each way to broadcast.
const KINDS: [(&[usize], &[usize]); 12] = [
    (&[], &[]),
    (&[3], &[3]),
    (&[3], &[]),
    (&[], &[3]),
    (&[3], &[1]),
    (&[1], &[3]),
    (&[2, 3], &[2, 3]),
    (&[2, 3], &[2, 1]),
    (&[2, 1], &[1, 3]),
    (&[2, 3], &[]),
    (&[3], &[2, 3]),
    (&[2, 1], &[2, 1]),
];

fn pairs() -> impl Iterator<Item = [Target; 2]> {
    Target::ALL.into_iter().flat_map(|l| Target::ALL.map(|r| [l, r]))
}

#[derive(Clone, Debug)]
struct Call {
    relation: Relation,
    op: SddmmOp,
    targets: [Target; 2],
    lhs: TensorData,
    rhs: TensorData,
    dtype: DType,
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Kernel,
    /// The kernel without its gradients.
    Forward,
    Reference,
}

/// Result and gradients, in f64.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    out: Vec<f64>,
    lhs: Vec<f64>,
    rhs: Vec<f64>,
}

impl Outcome {
    #[track_caller]
    fn assert_near(&self, what: &str, other: &Self, tolerance: f64) {
        assert_near(&format!("{what}, out"), &self.out, &other.out, tolerance);
        assert_near(&format!("{what}, d lhs"), &self.lhs, &other.lhs, tolerance);
        assert_near(&format!("{what}, d rhs"), &self.rhs, &other.rhs, tolerance);
    }
    fn bits(&self) -> Vec<u64> {
        [&self.out, &self.lhs, &self.rhs].into_iter().flatten().map(|x| x.to_bits()).collect()
    }
}

impl Call {
    fn new(
        relation: &Relation,
        op: SddmmOp,
        targets: [Target; 2],
        (lhs, rhs): (&[usize], &[usize]),
        seed: u64,
    ) -> Self {
        let data = |seed, target: Target, features: &[usize]| {
            let shape = with_rows(target.rows(relation), features);
            TensorData::new(numbers(seed, shape.iter().product()), shape)
        };
        let (l, r) = (data(2 * seed, targets[0], lhs), data(2 * seed + 1, targets[1], rhs));
        Self { relation: relation.clone(), op, targets, lhs: l, rhs: r, dtype: DType::F64 }
    }

    fn kernel(&self, device: &Device) -> Outcome {
        self.by_rank(device, Mode::Kernel)
    }

    fn reference(&self, device: &Device) -> Outcome {
        self.by_rank(device, Mode::Reference)
    }

    fn loss(&self, device: &Device) -> f64 {
        let out = self.by_rank(device, Mode::Forward).out;
        let cotangent = numbers(99, out.len());
        out.iter().zip(cotangent).map(|(a, b)| a * b).sum()
    }

    fn by_rank(&self, device: &Device, mode: Mode) -> Outcome {
        match (self.lhs.shape().num_dims(), self.rhs.shape().num_dims(), self.op) {
            (1, 1, _) => self.run::<1, 1, 1>(device, mode),
            (2, 2, _) => self.run::<2, 2, 2>(device, mode),
            (3, 3, _) => self.run::<3, 3, 3>(device, mode),
            (2, 1, SddmmOp::CopyRhs) => self.run::<2, 1, 1>(device, mode),
            (2, 1, _) => self.run::<2, 1, 2>(device, mode),
            (1, 2, SddmmOp::CopyLhs) => self.run::<1, 2, 1>(device, mode),
            (1, 2, _) => self.run::<1, 2, 2>(device, mode),
            (3, 1, SddmmOp::CopyRhs) => self.run::<3, 1, 1>(device, mode),
            (3, 1, _) => self.run::<3, 1, 3>(device, mode),
            (2, 3, SddmmOp::CopyLhs) => self.run::<2, 3, 2>(device, mode),
            (2, 3, _) => self.run::<2, 3, 3>(device, mode),
            other => panic!("no run for {other:?}"),
        }
    }

    fn run<const L: usize, const R: usize, const O: usize>(
        &self,
        device: &Device,
        mode: Mode,
    ) -> Outcome {
        let device = device.clone().autodiff();
        let lhs = Tensor::<L>::from_data(self.lhs.clone(), (&device, self.dtype)).require_grad();
        let rhs = Tensor::<R>::from_data(self.rhs.clone(), (&device, self.dtype)).require_grad();
        let reference = mode == Mode::Reference;
        let f = if reference { gsddmm_reference::<L, R, O> } else { gsddmm::<L, R, O> };
        let out =
            f(&self.relation, self.op, self.targets[0], self.targets[1], lhs.clone(), rhs.clone());
        if mode == Mode::Forward {
            return Outcome { out: f64s(out), lhs: vec![], rhs: vec![] };
        }
        let cotangent = TensorData::new(numbers(99, out.shape().num_elements()), out.shape());
        let mut loss = (out.clone() * Tensor::from_data(cotangent, (&device, self.dtype))).sum();
        if reference {
            // The reference of a relation without edges, and a copy's other operand, are not in the graph.
            loss = loss + (lhs.clone() * 0.0).sum() + (rhs.clone() * 0.0).sum();
        }
        let grads = loss.backward();
        // A kernel gives every operand that it uses a gradient, if only zeros.
        let zeros = |data: &TensorData, used| {
            if used { panic!("no gradient") } else { vec![0.0; data.num_elements()] }
        };
        Outcome {
            out: f64s(out),
            lhs: lhs.grad(&grads).map_or_else(|| zeros(&self.lhs, self.op.uses_lhs()), f64s),
            rhs: rhs.grad(&grads).map_or_else(|| zeros(&self.rhs, self.op.uses_rhs()), f64s),
        }
    }
}

/// Central differences of the loss in every entry of one operand.
fn differences(call: &Call, device: &Device, side: fn(&mut Call) -> &mut TensorData) -> Vec<f64> {
    let step = 1e-5;
    let n = side(&mut call.clone()).num_elements();
    let moved = |i: usize, by: f64| {
        let mut call = call.clone();
        side(&mut call).as_mut_slice::<f64>().unwrap()[i] += by;
        call.loss(device)
    };
    (0..n).map(|i| (moved(i, step) - moved(i, -step)) / (2.0 * step)).collect()
}

#[test]
fn finite_differences() {
    let relation = graphs::small();
    for (backend, device) in devices() {
        for (op, targets) in SddmmOp::ALL.into_iter().flat_map(|op| pairs().map(move |t| (op, t))) {
            for (i, kind) in KINDS.into_iter().enumerate() {
                let what = format!("{backend}, {op:?} {targets:?}, {kind:?}");
                let call = Call::new(&relation, op, targets, kind, i as u64 + 1);
                let got = call.kernel(&device);
                assert_near(
                    &format!("{what}, d lhs"),
                    &got.lhs,
                    &differences(&call, &device, |c| &mut c.lhs),
                    1e-7,
                );
                assert_near(
                    &format!("{what}, d rhs"),
                    &got.rhs,
                    &differences(&call, &device, |c| &mut c.rhs),
                    1e-7,
                );
                let seen = |used: bool, d: &[f64]| !used || d.iter().any(|&g| g != 0.0);
                assert!(
                    seen(op.uses_lhs(), &got.lhs) && seen(op.uses_rhs(), &got.rhs),
                    "{what}: gradients of zeros prove nothing"
                );
            }
        }
    }
}

fn agree(what: &str, call: &Call) {
    for (backend, device) in devices() {
        let what = format!("{what}, {backend}, {:?} {:?}", call.op, call.targets);
        call.kernel(&device).assert_near(&what, &call.reference(&device), 1e-12);
    }
}

#[test]
fn named_graphs() {
    for (name, relation) in graphs::named() {
        for (op, targets) in SddmmOp::ALL.into_iter().flat_map(|op| pairs().map(move |t| (op, t))) {
            for kind in KINDS {
                agree(&format!("{name}, {kind:?}"), &Call::new(&relation, op, targets, kind, 3));
            }
        }
    }
}

#[test]
fn widths() {
    let relation = graphs::random(20, 15, 90, 2.0);
    for width in [0, 1, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40] {
        for op in SddmmOp::ALL {
            for targets in [
                [Target::Src, Target::Dst],
                [Target::Dst, Target::Src],
                [Target::Edge, Target::Dst],
                [Target::Src, Target::Src],
            ] {
                for (lhs, rhs) in [
                    (vec![width], vec![width]),
                    (vec![width], vec![1]),
                    (vec![2, width], vec![2, width]),
                    (vec![2, width], vec![2, 1]),
                ] {
                    agree(
                        &format!("width {width}"),
                        &Call::new(&relation, op, targets, (&lhs, &rhs), 4),
                    );
                }
            }
        }
    }
}

/// Edges that are sorted by destination have no permutation, and dots then run in edge order.
#[test]
fn sorted_edges_have_the_same_bits() {
    let relation = graphs::random(30, 20, 200, 2.0);
    let mut order: Vec<usize> = (0..200).collect();
    order.sort_by_key(|&e| relation.dst()[e]);
    let sorted = graphs::relation(
        30,
        20,
        &order.iter().map(|&e| (relation.src()[e], relation.dst()[e])).collect::<Vec<_>>(),
    );
    let device = Device::flex();
    for features in [&[40usize][..], &[4, 8], &[3, 33]] {
        let mut call =
            Call::new(&relation, SddmmOp::Dot, [Target::Src, Target::Dst], (features, features), 2);
        call.dtype = DType::F32;
        let heads = call.kernel(&device).out.len() / 200;
        let a = call.kernel(&device).out;
        let b = Call { relation: sorted.clone(), ..call }.kernel(&device).out;
        let permuted: Vec<f64> =
            order.iter().flat_map(|&e| a[e * heads..][..heads].to_vec()).collect();
        assert_eq!(permuted, b, "{features:?}");
    }
}

fn any_graph() -> impl Strategy<Value = Relation> {
    (1usize..9, 1usize..9, any::<bool>()).prop_flat_map(|(a, b, square)| {
        let b = if square { a } else { b };
        let edge = (0..a as u32, prop_oneof![1 => Just(0), 2 => 0..b as u32]);
        proptest::collection::vec(edge, 0..40).prop_map(move |edges| graphs::relation(a, b, &edges))
    })
}

proptest! {
    #[test]
    fn any_graph_and_call(
        relation in any_graph(),
        op in proptest::sample::select(SddmmOp::ALL.to_vec()),
        lhs in proptest::sample::select(Target::ALL.to_vec()),
        rhs in proptest::sample::select(Target::ALL.to_vec()),
        kind in 0..KINDS.len(),
        seed in 0u64..1000,
    ) {
        agree("any", &Call::new(&relation, op, [lhs, rhs], KINDS[kind], seed));
    }
}

#[test]
fn any_number_of_threads() {
    let relation = graphs::random(900, 700, 9000, 3.0);
    for (backend, device) in devices() {
        for (op, targets) in [SddmmOp::Add, SddmmOp::Div, SddmmOp::Dot]
            .into_iter()
            .flat_map(|op| pairs().map(move |t| (op, t)))
        {
            for kind in [(&[33usize][..], &[33usize][..]), (&[4, 16], &[4, 1])] {
                let mut call = Call::new(&relation, op, targets, kind, 8);
                call.dtype = DType::F32;
                let run = |n| {
                    rayon::ThreadPoolBuilder::new()
                        .num_threads(n)
                        .build()
                        .unwrap()
                        .install(|| call.kernel(&device))
                        .bits()
                };
                let one = run(1);
                for n in [2, 3] {
                    assert!(run(n) == one, "{backend}, {op:?} {targets:?}, {kind:?}, {n} threads");
                }
            }
        }
    }
}

#[test]
fn half_floats_are_f32_rounded_once() {
    let relation = graphs::random(30, 20, 400, 2.0);
    let device = Device::flex();
    for (dtype, op, targets) in [DType::F16, DType::BF16]
        .into_iter()
        .flat_map(|d| SddmmOp::ALL.into_iter().flat_map(move |op| pairs().map(move |t| (d, op, t))))
    {
        for kind in [(&[9usize][..], &[9usize][..]), (&[2, 1], &[1, 3]), (&[34], &[34])] {
            let mut half = Call::new(&relation, op, targets, kind, 5);
            half.dtype = dtype;
            half.lhs = half.lhs.convert_dtype(dtype);
            half.rhs = half.rhs.convert_dtype(dtype);
            // The same call in f32, on operands that are exact in the smaller type.
            let mut single = half.clone();
            single.dtype = DType::F32;
            single.lhs = single.lhs.convert_dtype(DType::F32);
            single.rhs = single.rhs.convert_dtype(DType::F32);
            let what = format!("{dtype:?}, {op:?} {targets:?}, {kind:?}");
            let (a, b) = (half.kernel(&device), single.kernel(&device));
            // Half a unit in the last place, and the cotangent of `single` is not rounded.
            let ulp = if dtype == DType::F16 { 1.0 / 2048.0 } else { 1.0 / 256.0 };
            assert_near(&format!("{what}, out"), &a.out, &b.out, ulp);
            let size = |x: &[f64]| x.iter().fold(0.0f64, |m, v| m.max(v.abs()));
            for (a, b) in [(&a.lhs, &b.lhs), (&a.rhs, &b.rhs)] {
                let bound = 4.0 * ulp * (1.0 + size(b));
                assert!(
                    a.iter().zip(b.iter()).all(|(a, b)| (a - b).abs() <= bound),
                    "{what}: gradients"
                );
            }
        }
    }
}

/// One small input with hand-computed answers, under every name.
#[test]
fn names() {
    let rel = graphs::relation(2, 2, &[(0, 1), (1, 1), (1, 0)]);
    for (_, device) in devices() {
        let t = |x: [f32; 2]| Tensor::<1>::from_data(x, &device);
        let (u, v, e) =
            (t([2.0, 4.0]), t([8.0, 16.0]), Tensor::<1>::from_data([1.0, -2.0, 4.0], &device));
        assert_eq!(f64s(copy_u(&rel, u.clone())), [2.0, 4.0, 4.0]);
        assert_eq!(f64s(copy_v(&rel, v.clone())), [16.0, 16.0, 8.0]);
        assert_eq!(f64s(copy_e(&rel, e.clone())), [1.0, -2.0, 4.0]);
        type F = fn(&Relation, Tensor<1>, Tensor<1>) -> Tensor<1>;
        let check = |name: &str, f: F, l: &Tensor<1>, r: &Tensor<1>, want: [f64; 3]| {
            assert_eq!(f64s(f(&rel, l.clone(), r.clone())), want, "{name}");
        };
        check("u_add_v", u_add_v, &u, &v, [18.0, 20.0, 12.0]);
        check("v_add_u", v_add_u, &v, &u, [18.0, 20.0, 12.0]);
        check("u_add_e", u_add_e, &u, &e, [3.0, 2.0, 8.0]);
        check("e_add_u", e_add_u, &e, &u, [3.0, 2.0, 8.0]);
        check("v_add_e", v_add_e, &v, &e, [17.0, 14.0, 12.0]);
        check("e_add_v", e_add_v, &e, &v, [17.0, 14.0, 12.0]);
        check("u_sub_v", u_sub_v, &u, &v, [-14.0, -12.0, -4.0]);
        check("v_sub_u", v_sub_u, &v, &u, [14.0, 12.0, 4.0]);
        check("u_sub_e", u_sub_e, &u, &e, [1.0, 6.0, 0.0]);
        check("e_sub_u", e_sub_u, &e, &u, [-1.0, -6.0, 0.0]);
        check("v_sub_e", v_sub_e, &v, &e, [15.0, 18.0, 4.0]);
        check("e_sub_v", e_sub_v, &e, &v, [-15.0, -18.0, -4.0]);
        check("u_mul_v", u_mul_v, &u, &v, [32.0, 64.0, 32.0]);
        check("v_mul_u", v_mul_u, &v, &u, [32.0, 64.0, 32.0]);
        check("u_mul_e", u_mul_e, &u, &e, [2.0, -8.0, 16.0]);
        check("e_mul_u", e_mul_u, &e, &u, [2.0, -8.0, 16.0]);
        check("v_mul_e", v_mul_e, &v, &e, [16.0, -32.0, 32.0]);
        check("e_mul_v", e_mul_v, &e, &v, [16.0, -32.0, 32.0]);
        check("u_div_v", u_div_v, &u, &v, [0.125, 0.25, 0.5]);
        check("v_div_u", v_div_u, &v, &u, [8.0, 4.0, 2.0]);
        check("u_div_e", u_div_e, &u, &e, [2.0, -2.0, 1.0]);
        check("e_div_u", e_div_u, &e, &u, [0.5, -0.5, 1.0]);
        check("v_div_e", v_div_e, &v, &e, [16.0, -8.0, 2.0]);
        check("e_div_v", e_div_v, &e, &v, [0.0625, -0.125, 0.5]);
        for (name, f, l, r) in [("u_dot_v", u_dot_v as F, &u, &v), ("v_dot_u", v_dot_u, &v, &u)] {
            check(name, f, l, r, [32.0, 64.0, 32.0]);
        }
        for (name, f, l, r) in [("u_dot_e", u_dot_e as F, &u, &e), ("e_dot_u", e_dot_u, &e, &u)] {
            check(name, f, l, r, [2.0, -8.0, 16.0]);
        }
        for (name, f, l, r) in [("v_dot_e", v_dot_e as F, &v, &e), ("e_dot_v", e_dot_v, &e, &v)] {
            check(name, f, l, r, [16.0, -32.0, 32.0]);
        }
    }
}

/// A dot keeps its last axis with size 1 and broadcasts before it sums.
#[test]
fn shapes_of_dots() {
    let rel = graphs::small();
    let device = Device::flex();
    let dot = |l: [usize; 3], r: [usize; 3]| {
        let y: Tensor<3> =
            u_dot_v(&rel, Tensor::<3>::ones(l, &device), Tensor::<3>::ones(r, &device));
        (y.dims(), f64s(y)[0])
    };
    assert_eq!(dot([5, 2, 3], [4, 2, 3]), ([8, 2, 1], 3.0));
    assert_eq!(dot([5, 2, 3], [4, 1, 1]), ([8, 2, 1], 3.0));
    assert_eq!(dot([5, 1, 1], [4, 2, 1]), ([8, 2, 1], 1.0));
    assert_eq!(dot([5, 2, 0], [4, 2, 0]), ([8, 2, 1], 0.0));
    let y: Tensor<2> =
        u_dot_e(&rel, Tensor::<1>::ones([5], &device), Tensor::<2>::ones([8, 7], &device));
    assert_eq!((y.dims(), f64s(y)[0]), ([8, 1], 7.0));
}

#[test]
fn infinities_and_nan_stay_visible() {
    let rel = graphs::relation(3, 2, &[(0, 0), (1, 0), (2, 1)]);
    for (backend, device) in devices() {
        let u = Tensor::<1>::from_data([f32::INFINITY, f32::NAN, 1.0], &device);
        let v = Tensor::<1>::from_data([1.0, 0.0], &device);
        for y in [
            f64s::<1>(u_add_v(&rel, u.clone(), v.clone())),
            f64s::<1>(u_mul_v(&rel, u.clone(), v.clone())),
        ] {
            assert!(y[0] == f64::INFINITY && y[1].is_nan() && y[2].is_finite(), "{backend}: {y:?}");
        }
        let y: Tensor<1> = u_div_v(&rel, u, v);
        assert_eq!(f64s(y)[2], f64::INFINITY, "{backend}");
        let wide = Tensor::<2>::full([3, 40], f32::MAX, &device);
        let y: Tensor<2> = u_dot_v(&rel, wide.clone(), wide.slice_dim(0, 0..2));
        assert_eq!(f64s(y), [f64::INFINITY; 3], "{backend}");
    }
}

#[test]
fn inputs_that_are_not_contiguous() {
    let rel = graphs::small();
    for (backend, device) in devices() {
        let u =
            Tensor::<2>::from_data(TensorData::new(numbers(1, 15), [5, 3]), (&device, DType::F64));
        let v =
            Tensor::<2>::from_data(TensorData::new(numbers(2, 12), [4, 3]), (&device, DType::F64));
        let want: Tensor<2> = u_dot_v(&rel, u.clone(), v.clone());
        let strided = |x: Tensor<2>| {
            let d = x.dims();
            Tensor::<2>::from_data(x.transpose().into_data(), (&device, DType::F64))
                .reshape([d[1], d[0]])
                .transpose()
        };
        let got: Tensor<2> = u_dot_v(&rel, strided(u), strided(v));
        assert_eq!(f64s(got), f64s(want), "{backend}");
    }
}

/// A destination of 10^5 in-edges, whose gradient is a sum of as many terms.
#[test]
fn a_star() {
    let leaves = 100_000;
    let rel =
        graphs::relation(leaves, 1, &(0..leaves as u32).rev().map(|u| (u, 0)).collect::<Vec<_>>());
    for (backend, device) in devices() {
        let device = device.autodiff();
        let u = Tensor::<2>::ones([leaves, 16], &device);
        let v = Tensor::<2>::full([1, 16], 0.5, &device).require_grad();
        let y: Tensor<2> = u_dot_v(&rel, u, v.clone());
        assert_eq!(f64s(y.clone().slice_dim(0, 0..3)), [8.0; 3], "{backend}");
        let grads = y.sum().backward();
        assert_eq!(f64s(v.grad(&grads).unwrap()), [1e5; 16], "{backend}");
    }
}

#[test]
fn errors() {
    let rel = graphs::small();
    let zeros = |rows| Tensor::<2>::zeros([rows, 3], &Device::flex());
    let text = |l, r| {
        try_gsddmm::<2, 2, 2>(&rel, SddmmOp::Dot, Target::Src, Target::Dst, l, r)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        text(zeros(4), zeros(4)),
        "gsddmm: `lhs` must have 5 rows (one per source node of the relation), got 4; give as many rows"
    );
    assert_eq!(
        text(zeros(5), zeros(5)),
        "gsddmm: `rhs` must have 4 rows (one per destination node of the relation), got 5; give as many rows"
    );
    let error = try_gsddmm_copy(&rel, Target::Edge, zeros(5)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "gsddmm: `lhs` must have 8 rows (one per edge of the relation), got 5; give as many rows"
    );
    let narrow = Tensor::<2>::zeros([4, 2], &Device::flex());
    let want = "gsddmm: feature shapes [3] of `lhs` and [2] of `rhs` (first axis left out) do not broadcast: \
                aligned at the end, axes must be equal or 1; reshape one of them";
    assert_eq!(text(zeros(5), narrow), want);
    let double = Tensor::<2>::zeros([4, 3], (&Device::flex(), DType::F64));
    assert_eq!(text(zeros(5), double), "gsddmm: `lhs` is F32 and `rhs` is F64; cast one of them");
    assert!(
        text(zeros(5), Tensor::zeros([4, 3], &Device::ndarray())).ends_with("move one of them")
    );
    let error =
        try_gsddmm::<2, 2, 3>(&rel, SddmmOp::Add, Target::Src, Target::Dst, zeros(5), zeros(4))
            .unwrap_err();
    assert_eq!(
        error.to_string(),
        "gsddmm: the result has rank 2, the output type has rank 3; change the rank parameter of the output"
    );
    let (wide, tall) = (
        Tensor::<3>::zeros([0, 1 << 20, 1], &Device::flex()),
        Tensor::<3>::zeros([0, 1, 1 << 20], &Device::flex()),
    );
    let none = graphs::relation(0, 0, &[]);
    let error = try_gsddmm::<3, 3, 3>(&none, SddmmOp::Mul, Target::Src, Target::Dst, wide, tall)
        .unwrap_err();
    assert!(matches!(error, OpsError::Plan(PlanError::TooWide { op: "gsddmm", .. })), "{error}");
}

#[test]
fn a_copy_does_not_look_at_the_other_operand() {
    let wrong = Tensor::<1>::zeros([77], (&Device::ndarray(), DType::F64));
    let x = Tensor::<2>::zeros([5, 2], &Device::flex());
    let y: Tensor<2> =
        gsddmm(&graphs::small(), SddmmOp::CopyLhs, Target::Src, Target::Dst, x, wrong);
    assert_eq!(y.dims(), [8, 2]);
}

#[test]
#[should_panic(
    expected = "gsddmm: `lhs` must have 5 rows (one per source node of the relation), got 4"
)]
fn the_panic_says_the_same() {
    let _ = copy_u(&graphs::small(), Tensor::<2>::zeros([4, 1], &Device::flex()));
}
