//! Weighted aggregation and its gradients.

use burn_gnn_cube::{aggregate, aggregate_grad, aggregate_grad_weight};
use burn_gnn_graph::Relation;
use burn_gnn_plan::{Activation, AggregateOptions, AggregatePlan, DegreeScale};

use crate::support::*;
use burn_gnn_testutil::graphs::{star, with_hub};

const ACTIVATIONS: [Activation; 4] =
    [Activation::None, Activation::Relu, Activation::LeakyRelu(0.25), Activation::Elu(0.75)];

/// Whether the plan has weights, factors of sources, factors of destinations, and a bias.
type Given = [bool; 4];

fn check(
    what: &str,
    relation: &Relation,
    width: usize,
    given: Given,
    activation: Activation,
    tolerance: f64,
) {
    let (src, dst, edges) = (relation.num_src(), relation.num_dst(), relation.num_edges());
    let mut numbers = Numbers::new(41);
    let x = numbers.numbers(src * width);
    let mut maybe = |given: bool, n: usize, other: f64| {
        if given { numbers.divisors(n) } else { vec![other; n] }
    };
    let w = maybe(given[0], edges, 1.0);
    let bias = maybe(given[3], width, 0.0);
    let mut scale = |given: bool, n: usize| {
        let degrees: Vec<u32> = (0..n).map(|_| numbers.below(9) as u32).collect();
        let factors = degrees
            .iter()
            .map(|&d| if given { f64::from(d.max(1)).powf(-0.5) } else { 1.0 })
            .collect::<Vec<_>>();
        (given.then(|| DegreeScale::new(&degrees, -0.5)), factors)
    };
    let ((source, l), (destination, r)) = (scale(given[1], src), scale(given[2], dst));
    let grad = numbers.numbers(dst * width);
    let endpoints = |e: usize| (relation.src()[e] as usize, relation.dst()[e] as usize);
    let mut out = vec![0.0; dst * width];
    for e in 0..edges {
        let (u, v) = endpoints(e);
        (0..width).for_each(|j| out[v * width + j] += w[e] * l[u] * x[u * width + j]);
    }
    let mut h = vec![0.0; dst * width];
    for v in 0..dst {
        for j in 0..width {
            let at = v * width + j;
            let y = r[v] * out[at] + bias[j];
            let (value, slope) = match activation {
                _ if y > 0.0 => (y, 1.0),
                Activation::None => (y, 1.0),
                Activation::Relu => (0.0, 0.0),
                Activation::LeakyRelu(a) => (a * y, a),
                Activation::Elu(a) => (a * (y.exp() - 1.0), a * y.exp()),
            };
            (out[at], h[at]) = (value, slope * grad[at]);
        }
    }
    let (mut dx, mut dw, mut db) = (vec![0.0; src * width], vec![0.0; edges], vec![0.0; width]);
    for e in 0..edges {
        let (u, v) = endpoints(e);
        for j in 0..width {
            dx[u * width + j] += l[u] * w[e] * r[v] * h[v * width + j];
            dw[e] += l[u] * r[v] * x[u * width + j] * h[v * width + j];
        }
    }
    h.chunks(width.max(1)).for_each(|row| db.iter_mut().zip(row).for_each(|(b, h)| *b += h));
    let there = |given: bool, values: &[f64]| given.then(|| tensor(values, &[values.len()]));
    let options = AggregateOptions { source, destination, activation };
    let plan = AggregatePlan::new(relation, width, options, given[0], given[3]).unwrap();
    let (x, g) = (tensor(&x, &[src, width]), tensor(&grad, &[dst, width]));
    let what = format!("{what}, width {width}, {given:?}, {activation:?}");
    let got = aggregate(&plan, x.clone(), there(given[0], &w), there(given[3], &bias));
    assert_eq!(shape(&got), [dst, width], "{what}");
    close(&format!("{what}: out"), &got, &out, tolerance);
    let kept = (activation != Activation::None).then(|| tensor(&out, &[dst, width]));
    let run = || aggregate_grad(&plan, g.clone(), kept.clone(), there(given[0], &w), true, true);
    let (got_x, got_b) = run();
    let (got_x, got_b) = (got_x.unwrap(), got_b.unwrap());
    assert_eq!((shape(&got_x), shape(&got_b)), (vec![src, width], vec![width]), "{what}");
    close(&format!("{what}: d x"), &got_x, &dx, tolerance);
    close(&format!("{what}: d bias"), &got_b, &db, tolerance);
    assert_eq!(
        (bytes(&got_x), bytes(&got_b)),
        (bytes(&run().0.unwrap()), bytes(&run().1.unwrap())),
        "{what}"
    );
    let (no_x, no_b) =
        aggregate_grad(&plan, g.clone(), kept.clone(), there(given[0], &w), false, false);
    assert!(no_x.is_none() && no_b.is_none());
    let got_w = aggregate_grad_weight(&plan, g, kept, x);
    assert_eq!(shape(&got_w), [edges], "{what}");
    close(&format!("{what}: d weight"), &got_w, &dw, tolerance);
}

#[test]
fn named_graphs() {
    let Some(()) = adapter() else { return };
    for (name, relation) in named() {
        for activation in ACTIVATIONS {
            check(name, &relation, 3, [true; 4], activation, 2e-4);
        }
        check(name, &relation, 4, [false; 4], Activation::None, 2e-4);
        check(name, &relation, 4, [false, true, true, false], Activation::Relu, 2e-4);
    }
}

#[test]
fn widths() {
    let Some(()) = adapter() else { return };
    let relation = with_hub(40, 30, 500, 3);
    for width in [0, 1, 16, 17, 64, 128] {
        check("widths", &relation, width, [true, false, true, true], Activation::Relu, 2e-4);
    }
}

#[test]
fn star_of_many_leaves() {
    let Some(()) = adapter() else { return };
    check("star", &star(100_000), 2, [true; 4], Activation::LeakyRelu(0.25), 2e-3);
}
