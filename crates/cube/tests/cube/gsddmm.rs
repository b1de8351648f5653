//! GSDDMM and its gradients.

use burn_gnn_cube::{EdgeOp, Gsddmm, Side, Target, gsddmm, gsddmm_grad};
use burn_gnn_graph::Relation;

use crate::support::*;

const OPS: [EdgeOp; 7] = [EdgeOp::Add, EdgeOp::Sub, EdgeOp::Mul, EdgeOp::Div, EdgeOp::Dot, EdgeOp::CopyLhs, EdgeOp::CopyRhs];
const TARGETS: [Target; 3] = [Target::Src, Target::Dst, Target::Edge];
const KINDS: [(&[usize], &[usize]); 6] = [(&[3], &[3]), (&[16], &[1]), (&[2, 8], &[2, 1]), (&[2, 3], &[3]), (&[], &[]), (&[2, 1], &[1, 4])];

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

fn check(what: &str, call: &Gsddmm<'_>, seed: u64, tolerance: f64) {
    let relation = call.relation;
    let product = joined(call.lhs, call.rhs);
    let mut out = product.clone();
    let dotted = if call.op == EdgeOp::Dot { product.last().copied().unwrap_or(1) } else { 1 };
    if let (EdgeOp::Dot, Some(last)) = (call.op, out.last_mut()) {
        *last = 1;
    }
    let (width, out_width, edges) = (size(&product), size(&out), relation.num_edges());
    let mut numbers = Numbers::new(seed);
    let lhs = numbers.numbers(rows(relation, call.targets[0]) * size(call.lhs));
    let rhs = numbers.divisors(rows(relation, call.targets[1]) * size(call.rhs));
    let grad = numbers.numbers(edges * out_width);
    let (mut want, mut d_lhs, mut d_rhs) = (vec![0.0; edges * out_width], vec![0.0; lhs.len()], vec![0.0; rhs.len()]);
    for e in 0..edges {
        for j in 0..width {
            let l = row(relation, call.targets[0], e) * size(call.lhs) + offset(call.lhs, &product, j);
            let r = row(relation, call.targets[1], e) * size(call.rhs) + offset(call.rhs, &product, j);
            let (x, y) = (lhs[l], rhs[r]);
            let (m, dx, dy) = match call.op {
                EdgeOp::Add => (x + y, 1.0, 1.0),
                EdgeOp::Sub => (x - y, 1.0, -1.0),
                EdgeOp::Mul | EdgeOp::Dot => (x * y, y, x),
                EdgeOp::Div => (x / y, 1.0 / y, -x / (y * y)),
                EdgeOp::CopyLhs => (x, 1.0, 0.0),
                EdgeOp::CopyRhs => (y, 0.0, 1.0),
            };
            let at = e * out_width + j / dotted;
            want[at] += m;
            d_lhs[l] += dx * grad[at];
            d_rhs[r] += dy * grad[at];
        }
    }
    let what = format!("{what}, {:?} {:?} {:?} {:?}", call.op, call.targets, call.lhs, call.rhs);
    let l = Some(tensor(&lhs, &dims(rows(relation, call.targets[0]), call.lhs)));
    let r = Some(tensor(&rhs, &dims(rows(relation, call.targets[1]), call.rhs)));
    let got = gsddmm(*call, l.clone(), r.clone());
    assert_eq!(shape(&got), dims(edges, &out), "{what}");
    close(&format!("{what}: out"), &got, &want, tolerance);
    let g = tensor(&grad, &dims(edges, &out));
    let got = gsddmm_grad(*call, Side::Lhs, g.clone(), l.clone(), r.clone());
    assert_eq!(shape(&got), dims(rows(relation, call.targets[0]), call.lhs), "{what}");
    close(&format!("{what}: d lhs"), &got, &d_lhs, tolerance);
    let got = gsddmm_grad(*call, Side::Rhs, g, l, r);
    assert_eq!(shape(&got), dims(rows(relation, call.targets[1]), call.rhs), "{what}");
    close(&format!("{what}: d rhs"), &got, &d_rhs, tolerance);
}

fn call<'a>(relation: &'a Relation, op: EdgeOp, targets: [Target; 2], (lhs, rhs): (&'a [usize], &'a [usize])) -> Gsddmm<'a> {
    match op {
        EdgeOp::CopyLhs => Gsddmm { relation, op, targets: [targets[0]; 2], lhs, rhs: lhs },
        EdgeOp::CopyRhs => Gsddmm { relation, op, targets: [targets[1]; 2], lhs: rhs, rhs },
        _ => Gsddmm { relation, op, targets, lhs, rhs },
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
    let relation = random(9, 7, 40, 3);
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
    let relation = random(9, 7, 40, 5);
    for width in [0, 1, 3, 16, 17, 64, 128] {
        for op in [EdgeOp::Dot, EdgeOp::Mul, EdgeOp::Sub] {
            check("widths", &call(&relation, op, [Target::Src, Target::Dst], (&[width], &[width])), 6, 1e-4);
            check("heads", &call(&relation, op, [Target::Dst, Target::Src], (&[3, width], &[3, width])), 7, 1e-4);
        }
    }
}

#[test]
fn star_of_many_leaves() {
    let Some(()) = adapter() else { return };
    let relation = star(100_000);
    for op in [EdgeOp::Dot, EdgeOp::Sub] {
        check("star", &call(&relation, op, [Target::Src, Target::Dst], (&[4], &[4])), 8, 1e-3);
    }
    // Summed over edges and over columns at once.
    check("star", &call(&relation, EdgeOp::Mul, [Target::Src, Target::Edge], (&[1], &[2])), 9, 1e-3);
}

#[test]
fn runs_repeat() {
    let Some(()) = adapter() else { return };
    let relation = random(50, 40, 3000, 10);
    let mut numbers = Numbers::new(11);
    let l = Some(tensor(&numbers.numbers(50 * 64), &[50, 2, 32]));
    let r = Some(tensor(&numbers.numbers(40 * 64), &[40, 2, 32]));
    let g = tensor(&numbers.numbers(3000 * 2), &[3000, 2, 1]);
    let call = call(&relation, EdgeOp::Dot, [Target::Src, Target::Dst], (&[2, 32], &[2, 32]));
    let run = || {
        let grad = |side| bytes(&gsddmm_grad(call, side, g.clone(), l.clone(), r.clone()));
        [bytes(&gsddmm(call, l.clone(), r.clone())), grad(Side::Lhs), grad(Side::Rhs)]
    };
    assert_eq!(run(), run());
}
