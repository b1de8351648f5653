//! GSpMM and its gradients.

use burn::tensor::DType;
use burn_gnn_cube::{gspmm, gspmm_grad, gspmm_select};
use burn_gnn_graph::Relation;
use burn_gnn_plan::{BinaryOp, GspmmPlan, Reduce, Side};
use burn_gnn_testutil::{Kind, NO_F16, skip};

use crate::support::*;
use burn_gnn_testutil::graphs::{relation, star, with_hub};

const OPS: [BinaryOp; 6] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::CopyLhs,
    BinaryOp::CopyRhs,
];
const REDUCES: [Reduce; 4] = [Reduce::Sum, Reduce::Mean, Reduce::Max, Reduce::Min];
/// Feature shapes of both operands.
const KINDS: [(&[usize], &[usize]); 6] = [
    (&[3], &[3]),
    (&[16], &[]),
    (&[2, 8], &[2, 1]),
    (&[2, 3], &[3]),
    (&[1], &[5]),
    (&[2, 1, 2], &[1, 3, 1]),
];

/// The operands and results of a call and of its gradients, in f64.
struct Want {
    out: Vec<f64>,
    arg: Vec<u32>,
    lhs: Vec<f64>,
    rhs: Vec<f64>,
}

fn message(op: BinaryOp, l: f64, r: f64) -> f64 {
    match op {
        BinaryOp::Add => l + r,
        BinaryOp::Sub => l - r,
        BinaryOp::Mul => l * r,
        BinaryOp::Div => l / r,
        BinaryOp::CopyLhs => l,
        BinaryOp::CopyRhs => r,
    }
}

/// Derivatives of a message.
fn slopes(op: BinaryOp, l: f64, r: f64) -> (f64, f64) {
    match op {
        BinaryOp::Add => (1.0, 1.0),
        BinaryOp::Sub => (1.0, -1.0),
        BinaryOp::Mul => (r, l),
        BinaryOp::Div => (1.0 / r, -l / (r * r)),
        BinaryOp::CopyLhs => (1.0, 0.0),
        BinaryOp::CopyRhs => (0.0, 1.0),
    }
}

/// The feature shape of an operand.
fn own(call: &GspmmPlan, side: Side) -> &[usize] {
    &call.map(side).own
}

fn loops(call: &GspmmPlan, lhs: &[f64], rhs: &[f64], grad: &[f64]) -> Want {
    let (relation, out) = (call.relation(), joined(own(call, Side::Lhs), own(call, Side::Rhs)));
    let width = size(&out);
    let (n, edges) = (relation.num_dst(), relation.num_edges());
    let at = |e: usize, j: usize| {
        let l = relation.src()[e] as usize * size(own(call, Side::Lhs))
            + offset(own(call, Side::Lhs), &out, j);
        (l, e * size(own(call, Side::Rhs)) + offset(own(call, Side::Rhs), &out, j))
    };
    let mut want = Want {
        out: vec![0.0; n * width],
        arg: vec![u32::MAX; n * width],
        lhs: vec![0.0; lhs.len()],
        rhs: vec![0.0; rhs.len()],
    };
    let degrees: Vec<u32> = relation.in_degrees().collect();
    for e in 0..edges {
        let v = relation.dst()[e] as usize;
        for j in 0..width {
            let (l, r) = at(e, j);
            let m = message(call.op(), lhs[l], rhs[r]);
            let (best, arg) = (&mut want.out[v * width + j], &mut want.arg[v * width + j]);
            match call.reduce() {
                Reduce::Sum => *best += m,
                Reduce::Mean => *best += m / f64::from(degrees[v]),
                _ => {
                    let beyond = if call.reduce() == Reduce::Max { m > *best } else { m < *best };
                    if *arg == u32::MAX || beyond || (m.is_nan() && !best.is_nan()) {
                        (*best, *arg) = (m, e as u32);
                    }
                }
            }
        }
    }
    for e in 0..edges {
        let v = relation.dst()[e] as usize;
        for j in 0..width {
            let (l, r) = at(e, j);
            let share = match call.reduce() {
                Reduce::Sum => 1.0,
                Reduce::Mean => 1.0 / f64::from(degrees[v]),
                _ if want.arg[v * width + j] == e as u32 => 1.0,
                _ => continue,
            };
            let (dl, dr) = slopes(call.op(), lhs[l], rhs[r]);
            want.lhs[l] += dl * grad[v * width + j] * share;
            want.rhs[r] += dr * grad[v * width + j] * share;
        }
    }
    want
}

fn check(what: &str, call: &GspmmPlan, seed: u64, tolerance: f64) {
    let relation = call.relation();
    let mut numbers = Numbers::new(seed);
    let lhs = numbers.numbers(relation.num_src() * size(own(call, Side::Lhs)));
    let rhs = numbers.divisors(relation.num_edges() * size(own(call, Side::Rhs)));
    let out = joined(own(call, Side::Lhs), own(call, Side::Rhs));
    let grad = numbers.numbers(relation.num_dst() * size(&out));
    let want = loops(call, &lhs, &rhs, &grad);
    let what = format!(
        "{what}, {:?} {:?} {:?} {:?}",
        call.op(),
        call.reduce(),
        own(call, Side::Lhs),
        own(call, Side::Rhs)
    );
    let l = tensor(&lhs, &dims(relation.num_src(), own(call, Side::Lhs)));
    let r = tensor(&rhs, &dims(relation.num_edges(), own(call, Side::Rhs)));
    let (used_l, used_r) = (call.op() != BinaryOp::CopyRhs, call.op() != BinaryOp::CopyLhs);
    let (l, r) = (used_l.then_some(l), used_r.then_some(r));
    let mut arg = None;
    let got = if matches!(call.reduce(), Reduce::Max | Reduce::Min) {
        let (got, argmax) = gspmm_select(call, l.clone(), r.clone());
        assert_eq!(read_ids(&argmax), want.arg, "{what}: argmax");
        arg = Some(argmax);
        got
    } else {
        gspmm(call, l.clone(), r.clone())
    };
    assert_eq!(shape(&got), dims(relation.num_dst(), &out), "{what}");
    close(&format!("{what}: out"), &got, &want.out, tolerance);
    let g = tensor(&grad, &dims(relation.num_dst(), &out));
    let got = gspmm_grad(call, Side::Lhs, g.clone(), arg.clone(), l.clone(), r.clone());
    assert_eq!(shape(&got), dims(relation.num_src(), own(call, Side::Lhs)), "{what}");
    close(&format!("{what}: d lhs"), &got, &want.lhs, tolerance);
    let got = gspmm_grad(call, Side::Rhs, g, arg, l, r);
    assert_eq!(shape(&got), dims(relation.num_edges(), own(call, Side::Rhs)), "{what}");
    close(&format!("{what}: d rhs"), &got, &want.rhs, tolerance);
}

/// The shapes of a copy: the operand that is not read has the shape of the other one.
fn call(
    relation: &Relation,
    op: BinaryOp,
    reduce: Reduce,
    (lhs, rhs): (&[usize], &[usize]),
) -> GspmmPlan {
    match op {
        BinaryOp::CopyLhs => GspmmPlan::new(relation, op, reduce, lhs, lhs).unwrap(),
        BinaryOp::CopyRhs => GspmmPlan::new(relation, op, reduce, rhs, rhs).unwrap(),
        _ => GspmmPlan::new(relation, op, reduce, lhs, rhs).unwrap(),
    }
}

#[test]
fn named_graphs() {
    let Some(()) = adapter() else { return };
    for (name, relation) in named() {
        for op in OPS {
            for reduce in REDUCES {
                check(name, &call(&relation, op, reduce, KINDS[0]), 5, 1e-4);
            }
        }
        for kind in KINDS {
            check(name, &call(&relation, BinaryOp::Mul, Reduce::Sum, kind), 6, 1e-4);
        }
    }
}

#[test]
fn every_operator_reducer_and_broadcast() {
    let Some(()) = adapter() else { return };
    let relation = with_hub(20, 15, 90, 4);
    for op in OPS {
        for reduce in REDUCES {
            for kind in KINDS {
                check("random", &call(&relation, op, reduce, kind), 7, 1e-4);
            }
        }
    }
}

#[test]
fn widths() {
    let Some(()) = adapter() else { return };
    let relation = with_hub(20, 15, 90, 8);
    for width in [0, 1, 3, 16, 17, 64, 128] {
        for (lhs, rhs) in [
            (vec![width], vec![width]),
            (vec![width], vec![]),
            (vec![1], vec![width]),
            (vec![2, width], vec![2, 1]),
        ] {
            for reduce in [Reduce::Mean, Reduce::Max] {
                check("widths", &call(&relation, BinaryOp::Mul, reduce, (&lhs, &rhs)), 9, 1e-4);
                check("widths", &call(&relation, BinaryOp::CopyLhs, reduce, (&lhs, &rhs)), 9, 1e-4);
            }
        }
    }
}

#[test]
fn random_graphs() {
    let Some(()) = adapter() else { return };
    let mut numbers = Numbers::new(77);
    for seed in 0..60 {
        let (a, b) = (1 + numbers.below(9), 1 + numbers.below(9));
        let relation = with_hub(a, b, numbers.below(40), seed);
        let (op, reduce) = (OPS[numbers.below(6)], REDUCES[numbers.below(4)]);
        check("random", &call(&relation, op, reduce, KINDS[numbers.below(6)]), seed, 1e-4);
    }
}

#[test]
fn star_of_many_leaves() {
    let Some(()) = adapter() else { return };
    let relation = star(100_000);
    for reduce in REDUCES {
        check("star", &call(&relation, BinaryOp::Mul, reduce, (&[4], &[])), 11, 1e-3);
    }
    check("star", &call(&relation, BinaryOp::CopyLhs, Reduce::Sum, (&[3], &[3])), 12, 1e-3);
}

#[test]
fn results_repeat_bit_for_bit() {
    let Some(()) = adapter() else { return };
    let relation = with_hub(300, 200, 20_000, 13);
    let mut numbers = Numbers::new(14);
    let x = tensor(&numbers.numbers(300 * 16), &[300, 16]);
    let w = tensor(&numbers.numbers(20_000), &[20_000]);
    let g = tensor(&numbers.numbers(200 * 16), &[200, 16]);
    let call = call(&relation, BinaryOp::Mul, Reduce::Sum, (&[16], &[]));
    let run = || {
        let out = gspmm(&call, Some(x.clone()), Some(w.clone()));
        let dx = gspmm_grad(&call, Side::Lhs, g.clone(), None, Some(x.clone()), Some(w.clone()));
        let dw = gspmm_grad(&call, Side::Rhs, g.clone(), None, Some(x.clone()), Some(w.clone()));
        [bytes(&out), bytes(&dx), bytes(&dw)]
    };
    assert_eq!(run(), run());
}

#[test]
fn nan_and_infinities_propagate() {
    let Some(()) = adapter() else { return };
    let relation = relation(4, 3, &[(0, 0), (1, 0), (2, 0), (3, 1), (0, 1)]);
    let x = [1.0, f64::NAN, f64::NAN, f64::NEG_INFINITY];
    let t = tensor(&x, &[4, 1]);
    for (reduce, first, second) in [(Reduce::Max, 1, 4), (Reduce::Min, 1, 3)] {
        let call = call(&relation, BinaryOp::CopyLhs, reduce, (&[1], &[1]));
        let (out, arg) = gspmm_select(&call, Some(t.clone()), None);
        let out = read(&out);
        assert!(out[0].is_nan() && out[2] == 0.0);
        assert_eq!(out[1], if reduce == Reduce::Max { 1.0 } else { f64::NEG_INFINITY });
        assert_eq!(read_ids(&arg), [first, second, u32::MAX]);
    }
    let sum =
        read(&gspmm(&call(&relation, BinaryOp::CopyLhs, Reduce::Sum, (&[1], &[1])), Some(t), None));
    assert!(sum[0].is_nan() && sum[1] == f64::NEG_INFINITY && sum[2] == 0.0);
}

#[test]
fn infinities_of_other_edges_do_not_affect_the_gradient_of_max() {
    let Some(()) = adapter() else { return };
    let relation = relation(2, 1, &[(0, 0), (1, 0)]);
    let (l, r) = (tensor(&[1.0, 2.0], &[2, 1]), tensor(&[1.0, f64::NEG_INFINITY], &[2, 1]));
    let call = call(&relation, BinaryOp::Mul, Reduce::Max, (&[1], &[1]));
    let (out, arg) = gspmm_select(&call, Some(l.clone()), Some(r.clone()));
    assert_eq!(read(&out), [1.0]);
    let grad = tensor(&[3.0], &[1, 1]);
    let dl = gspmm_grad(&call, Side::Lhs, grad, Some(arg), Some(l), Some(r));
    assert_eq!(read(&dl), [3.0, 0.0]);
}

/// f16 cannot count to 4096 in steps of 1.
#[test]
fn halves_are_summed_in_single_precision() {
    let Some(()) = adapter() else { return };
    use burn::backend::Backend;
    let usage = burn_cubecl::CubeBackend::dtype_usage(&device(), DType::F16);
    if !usage.contains(burn::backend::DTypeUsage::Arithmetic) {
        return skip(Kind::F16, NO_F16);
    }
    let n = 4096;
    let edges: Vec<_> = (0..n).map(|i| (i, 0)).collect();
    let relation = relation(n as usize, 1, &edges);
    let x = tensor_of(&vec![1.0; 8 * n as usize], &[n as usize, 8], DType::F16);
    let out = gspmm(&call(&relation, BinaryOp::CopyLhs, Reduce::Sum, (&[8], &[8])), Some(x), None);
    assert_eq!((out.dtype, read(&out)), (DType::F16, vec![f64::from(n); 8]));
}
