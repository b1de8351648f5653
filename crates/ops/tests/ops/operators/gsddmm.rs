//! GSDDMM: gradients against finite differences, kernels against the reference, and corner cases.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::Relation;
use burn_gnn_ops::*;
use proptest::prelude::*;

use crate::calls::{Call, Gsddmm};
use crate::{devices, f64s, numbers};
use burn_gnn_testutil::graphs;

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

#[test]
fn finite_differences() {
    let relation = graphs::small();
    for operation in Gsddmm::all() {
        for (i, kind) in KINDS.into_iter().enumerate() {
            Call::new(&relation, operation, kind, i as u64 + 1)
                .check_gradients(&format!("{kind:?}"));
        }
    }
}

#[test]
fn named_graphs() {
    for (name, relation) in graphs::named() {
        for operation in Gsddmm::all() {
            for kind in KINDS {
                Call::new(&relation, operation, kind, 3).agree(&format!("{name}, {kind:?}"));
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
                    Call::new(&relation, Gsddmm(op, targets), (&lhs, &rhs), 4)
                        .agree(&format!("width {width}"));
                }
            }
        }
    }
}

/// Edges that are sorted by destination need no permutation, and dot products run in edge order.
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
        let dot = Gsddmm(SddmmOp::Dot, [Target::Src, Target::Dst]);
        let mut call = Call::new(&relation, dot, (features, features), 2);
        call.dtype = DType::F32;
        let heads = call.kernel(&device).out.len() / 200;
        let a = call.kernel(&device).out;
        let b = Call { relation: sorted.clone(), ..call }.kernel(&device).out;
        let permuted: Vec<f64> =
            order.iter().flat_map(|&e| a[e * heads..][..heads].to_vec()).collect();
        assert_eq!(permuted, b, "{features:?}");
    }
}

proptest! {
    #[test]
    fn any_graph_and_call(
        relation in graphs::any_relation(0..40),
        op in proptest::sample::select(SddmmOp::ALL.to_vec()),
        lhs in proptest::sample::select(Target::ALL.to_vec()),
        rhs in proptest::sample::select(Target::ALL.to_vec()),
        kind in 0..KINDS.len(),
        seed in 0u64..1000,
    ) {
        Call::new(&relation, Gsddmm(op, [lhs, rhs]), KINDS[kind], seed).agree("any");
    }
}

#[test]
fn any_number_of_threads() {
    let relation = graphs::random(900, 700, 9000, 3.0);
    for operation in [SddmmOp::Add, SddmmOp::Div, SddmmOp::Dot].into_iter().flat_map(Gsddmm::all_of)
    {
        for kind in [(&[33usize][..], &[33usize][..]), (&[4, 16], &[4, 1])] {
            Call::new(&relation, operation, kind, 8).check_threads(&format!("{kind:?}"));
        }
    }
}

#[test]
fn half_floats_are_f32_rounded_once() {
    let relation = graphs::random(30, 20, 400, 2.0);
    for operation in Gsddmm::all() {
        for kind in [(&[9usize][..], &[9usize][..]), (&[2, 1], &[1, 3]), (&[34], &[34])] {
            Call::new(&relation, operation, kind, 5).check_halves(&format!("{kind:?}"));
        }
    }
}

/// A small input with hand-computed results, for every named operator.
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

/// A dot product broadcasts before it sums, and its last axis has size 1.
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
        text(zeros(5), Tensor::zeros([4, 3], &burn_gnn_testutil::other_device()))
            .ends_with("move one of them")
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
    let wrong = Tensor::<1>::zeros([77], (&burn_gnn_testutil::other_device(), DType::F64));
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
