//! Edge softmax and its gradient.

use burn_gnn_cube::{edge_softmax, edge_softmax_grad};
use burn_gnn_graph::Relation;
use burn_gnn_plan::{NormBy, SoftmaxPlan};

use crate::support::*;
use burn_gnn_testutil::graphs::{self, star, with_hub};

fn loops(relation: &Relation, x: &[f64], grad: &[f64], width: usize) -> (Vec<f64>, Vec<f64>) {
    let (n, dst) = (relation.num_dst(), relation.dst());
    let at = |e: usize, j: usize| dst[e] as usize * width + j;
    let mut largest = vec![f64::NEG_INFINITY; n * width];
    let (mut sum, mut dot) = (vec![0.0; n * width], vec![0.0; n * width]);
    let (mut y, mut dx) = (vec![0.0; x.len()], vec![0.0; x.len()]);
    let all = || (0..relation.num_edges()).flat_map(|e| (0..width).map(move |j| (e, j)));
    for (e, j) in all() {
        let m = &mut largest[at(e, j)];
        *m = if x[e * width + j] > *m { x[e * width + j] } else { *m };
    }
    for m in &mut largest {
        *m = if *m == f64::NEG_INFINITY { 0.0 } else { *m };
    }
    for (e, j) in all() {
        sum[at(e, j)] += (x[e * width + j] - largest[at(e, j)]).exp();
    }
    for (e, j) in all() {
        let s = sum[at(e, j)];
        y[e * width + j] =
            (x[e * width + j] - largest[at(e, j)]).exp() / if s == 0.0 { 1.0 } else { s };
        dot[at(e, j)] += y[e * width + j] * grad[e * width + j];
    }
    for (e, j) in all() {
        dx[e * width + j] = y[e * width + j] * (grad[e * width + j] - dot[at(e, j)]);
    }
    (y, dx)
}

/// A plan for the in-edges of every destination.
pub(crate) fn softmax(relation: &Relation, features: &[usize]) -> SoftmaxPlan {
    SoftmaxPlan::edges("edge_softmax", relation, NormBy::Dst, features).unwrap()
}

fn check(what: &str, relation: &Relation, x: &[f64], features: &[usize], tolerance: f64) {
    let (edges, width) = (relation.num_edges(), size(features));
    let grad = Numbers::new(99).numbers(edges * width);
    let (y, dx) = loops(relation, x, &grad, width);
    let plan = softmax(relation, features);
    let got = edge_softmax(&plan, tensor(x, &dims(edges, features)));
    assert_eq!(shape(&got), dims(edges, features));
    close(&format!("{what}: y"), &got, &y, tolerance);
    let g = tensor(&grad, &dims(edges, features));
    let got = edge_softmax_grad(&plan, tensor(&y, &dims(edges, features)), g);
    close(&format!("{what}: d x"), &got, &dx, tolerance);
}

#[test]
fn named_graphs_and_widths() {
    let Some(()) = adapter() else { return };
    for (name, relation) in named() {
        for features in [&[][..], &[1], &[3], &[2, 8], &[17]] {
            let x: Vec<f64> = Numbers::new(1)
                .numbers(relation.num_edges() * size(features))
                .iter()
                .map(|x| 20.0 * x)
                .collect();
            check(name, &relation, &x, features, 1e-5);
            check(name, &relation.reverse(), &x, features, 1e-5);
        }
    }
}

#[test]
fn star_of_many_leaves() {
    let Some(()) = adapter() else { return };
    let relation = star(100_000);
    let x: Vec<f64> = Numbers::new(2).numbers(200_000 * 2).iter().map(|x| 5.0 * x).collect();
    check("star", &relation, &x, &[2], 1e-5);
}

#[test]
fn large_logits_do_not_overflow() {
    let Some(()) = adapter() else { return };
    let relation = with_hub(5, 3, 700, 3);
    let x: Vec<f64> = Numbers::new(4).numbers(700).iter().map(|x| 1e4 + 300.0 * x).collect();
    check(
        "large",
        &relation,
        &x.iter().map(|&x| f64::from(x as f32)).collect::<Vec<_>>(),
        &[1],
        1e-5,
    );
}

#[test]
fn masked_logits_are_zero_and_nan_propagates() {
    let Some(()) = adapter() else { return };
    const INF: f64 = f64::INFINITY;
    let edges: Vec<_> = [0, 0, 1, 1, 2, 2, 3, 3].iter().map(|&v| (0, v)).collect();
    let relation = graphs::relation(1, 4, &edges);
    check("masks", &relation, &[-INF, -INF, 2.0, -INF, f64::NAN, 1.0, INF, 1.0], &[1], 1e-6);
    // In rows that are split into chunks: whole chunks of masked logits, before and after large negative numbers.
    let edges: Vec<_> = (0..2000u32).map(|e| (0, e / 1000)).collect();
    let relation = graphs::relation(1, 2, &edges);
    check("only masks", &relation, &[-INF; 2000], &[1], 1e-6);
    let x: Vec<f64> =
        (0..2000).map(|e| if (600..610).contains(&(e % 1000)) { -500.0 } else { -INF }).collect();
    check("chunks of masks", &relation, &x, &[1], 1e-6);
}

#[test]
fn results_repeat_bit_for_bit() {
    let Some(()) = adapter() else { return };
    let relation = with_hub(50, 40, 6000, 5);
    let x = tensor(&Numbers::new(6).numbers(6000 * 8), &[6000, 8]);
    let g = tensor(&Numbers::new(7).numbers(6000 * 8), &[6000, 8]);
    let plan = softmax(&relation, &[8]);
    let run = || {
        let y = edge_softmax(&plan, x.clone());
        [bytes(&y), bytes(&edge_softmax_grad(&plan, y.clone(), g.clone()))]
    };
    assert_eq!(run(), run());
}
