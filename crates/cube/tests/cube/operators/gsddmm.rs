//! GSDDMM and its gradients.

use burn_gnn_cube::{gsddmm, gsddmm_grad};
use burn_gnn_graph::Relation;
use burn_gnn_plan::{GsddmmPlan, SddmmOp, Side, Target};

use crate::support::*;
use burn_gnn_testutil::graphs::{star, with_hub};

const OPS: [SddmmOp; 7] = [
    SddmmOp::Add,
    SddmmOp::Sub,
    SddmmOp::Mul,
    SddmmOp::Div,
    SddmmOp::Dot,
    SddmmOp::CopyLhs,
    SddmmOp::CopyRhs,
];
const TARGETS: [Target; 3] = [Target::Src, Target::Dst, Target::Edge];
const KINDS: [(&[usize], &[usize]); 6] = [
    (&[3], &[3]),
    (&[16], &[1]),
    (&[2, 8], &[2, 1]),
    (&[2, 3], &[3]),
    (&[], &[]),
    (&[2, 1], &[1, 4]),
];

fn rows(relation: &Relation, target: Target) -> usize {
    match target {
        Target::Src => relation.num_src(),
        Target::Dst => relation.num_dst(),
        Target::Edge => relation.num_edges(),
    }
}

fn row(relation: &Relation, target: Target, e: usize) -> usize {
    match target {
        Target::Src => relation.src()[e] as usize,
        Target::Dst => relation.dst()[e] as usize,
        Target::Edge => e,
    }
}

/// The feature shape of an operand.
fn own(call: &GsddmmPlan, side: Side) -> &[usize] {
    &call.map(side).own
}

fn check(what: &str, call: &GsddmmPlan, seed: u64, tolerance: f64) {
    let relation = call.relation();
    let product = joined(own(call, Side::Lhs), own(call, Side::Rhs));
    let mut out = product.clone();
    let dotted = if call.op() == SddmmOp::Dot { product.last().copied().unwrap_or(1) } else { 1 };
    if let (SddmmOp::Dot, Some(last)) = (call.op(), out.last_mut()) {
        *last = 1;
    }
    let (width, out_width, edges) = (size(&product), size(&out), relation.num_edges());
    let mut numbers = Numbers::new(seed);
    let lhs = numbers.numbers(rows(relation, call.target(Side::Lhs)) * size(own(call, Side::Lhs)));
    let rhs = numbers.divisors(rows(relation, call.target(Side::Rhs)) * size(own(call, Side::Rhs)));
    let grad = numbers.numbers(edges * out_width);
    let (mut want, mut d_lhs, mut d_rhs) =
        (vec![0.0; edges * out_width], vec![0.0; lhs.len()], vec![0.0; rhs.len()]);
    for e in 0..edges {
        for j in 0..width {
            let l = row(relation, call.target(Side::Lhs), e) * size(own(call, Side::Lhs))
                + offset(own(call, Side::Lhs), &product, j);
            let r = row(relation, call.target(Side::Rhs), e) * size(own(call, Side::Rhs))
                + offset(own(call, Side::Rhs), &product, j);
            let (x, y) = (lhs[l], rhs[r]);
            let (m, dx, dy) = match call.op() {
                SddmmOp::Add => (x + y, 1.0, 1.0),
                SddmmOp::Sub => (x - y, 1.0, -1.0),
                SddmmOp::Mul | SddmmOp::Dot => (x * y, y, x),
                SddmmOp::Div => (x / y, 1.0 / y, -x / (y * y)),
                SddmmOp::CopyLhs => (x, 1.0, 0.0),
                SddmmOp::CopyRhs => (y, 0.0, 1.0),
            };
            let at = e * out_width + j / dotted;
            want[at] += m;
            d_lhs[l] += dx * grad[at];
            d_rhs[r] += dy * grad[at];
        }
    }
    let what = format!(
        "{what}, {:?} {:?} {:?} {:?}",
        call.op(),
        [Side::Lhs, Side::Rhs].map(|side| call.target(side)),
        own(call, Side::Lhs),
        own(call, Side::Rhs)
    );
    let l = Some(tensor(&lhs, &dims(rows(relation, call.target(Side::Lhs)), own(call, Side::Lhs))));
    let r = Some(tensor(&rhs, &dims(rows(relation, call.target(Side::Rhs)), own(call, Side::Rhs))));
    let got = gsddmm(call, l.clone(), r.clone());
    assert_eq!(shape(&got), dims(edges, &out), "{what}");
    close(&format!("{what}: out"), &got, &want, tolerance);
    let g = tensor(&grad, &dims(edges, &out));
    let got = gsddmm_grad(call, Side::Lhs, g.clone(), l.clone(), r.clone());
    assert_eq!(
        shape(&got),
        dims(rows(relation, call.target(Side::Lhs)), own(call, Side::Lhs)),
        "{what}"
    );
    close(&format!("{what}: d lhs"), &got, &d_lhs, tolerance);
    let got = gsddmm_grad(call, Side::Rhs, g, l, r);
    assert_eq!(
        shape(&got),
        dims(rows(relation, call.target(Side::Rhs)), own(call, Side::Rhs)),
        "{what}"
    );
    close(&format!("{what}: d rhs"), &got, &d_rhs, tolerance);
}

fn call(
    relation: &Relation,
    op: SddmmOp,
    targets: [Target; 2],
    (lhs, rhs): (&[usize], &[usize]),
) -> GsddmmPlan {
    match op {
        SddmmOp::CopyLhs => GsddmmPlan::new(relation, op, [targets[0]; 2], [lhs, lhs]).unwrap(),
        SddmmOp::CopyRhs => GsddmmPlan::new(relation, op, [targets[1]; 2], [rhs, rhs]).unwrap(),
        _ => GsddmmPlan::new(relation, op, targets, [lhs, rhs]).unwrap(),
    }
}

#[test]
fn named_graphs() {
    let Some(()) = adapter() else { return };
    for (name, relation) in named() {
        for op in OPS {
            check(name, &call(&relation, op, [Target::Src, Target::Dst], KINDS[0]), 1, 1e-4);
            check(name, &call(&relation, op, [Target::Dst, Target::Src], KINDS[2]), 1, 1e-4);
        }
    }
}

#[test]
fn every_operator_target_and_broadcast() {
    let Some(()) = adapter() else { return };
    let relation = with_hub(9, 7, 40, 3);
    for op in OPS {
        for l in TARGETS {
            for r in TARGETS {
                check("targets", &call(&relation, op, [l, r], KINDS[2]), 2, 1e-4);
            }
        }
        for kind in KINDS {
            check("kinds", &call(&relation, op, [Target::Src, Target::Edge], kind), 4, 1e-4);
        }
    }
}

#[test]
fn widths() {
    let Some(()) = adapter() else { return };
    let relation = with_hub(9, 7, 40, 5);
    for width in [0, 1, 3, 16, 17, 64, 128] {
        for op in [SddmmOp::Dot, SddmmOp::Mul, SddmmOp::Sub] {
            check(
                "widths",
                &call(&relation, op, [Target::Src, Target::Dst], (&[width], &[width])),
                6,
                1e-4,
            );
            check(
                "heads",
                &call(&relation, op, [Target::Dst, Target::Src], (&[3, width], &[3, width])),
                7,
                1e-4,
            );
        }
    }
}

#[test]
fn star_of_many_leaves() {
    let Some(()) = adapter() else { return };
    let relation = star(100_000);
    for op in [SddmmOp::Dot, SddmmOp::Sub] {
        check("star", &call(&relation, op, [Target::Src, Target::Dst], (&[4], &[4])), 8, 1e-3);
    }
    // The gradient is summed over edges and over columns.
    check(
        "star",
        &call(&relation, SddmmOp::Mul, [Target::Src, Target::Edge], (&[1], &[2])),
        9,
        1e-3,
    );
}

#[test]
fn results_repeat_bit_for_bit() {
    let Some(()) = adapter() else { return };
    let relation = with_hub(50, 40, 3000, 10);
    let mut numbers = Numbers::new(11);
    let l = Some(tensor(&numbers.numbers(50 * 64), &[50, 2, 32]));
    let r = Some(tensor(&numbers.numbers(40 * 64), &[40, 2, 32]));
    let g = tensor(&numbers.numbers(3000 * 2), &[3000, 2, 1]);
    let call = call(&relation, SddmmOp::Dot, [Target::Src, Target::Dst], (&[2, 32], &[2, 32]));
    let run = || {
        let grad = |side| bytes(&gsddmm_grad(&call, side, g.clone(), l.clone(), r.clone()));
        [bytes(&gsddmm(&call, l.clone(), r.clone())), grad(Side::Lhs), grad(Side::Rhs)]
    };
    assert_eq!(run(), run());
}
