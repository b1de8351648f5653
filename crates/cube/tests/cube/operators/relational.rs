//! Relational aggregation and its gradients.

use burn_gnn_cube::{relational, relational_grad_norm, relational_grad_weight, relational_grad_x};
use burn_gnn_graph::Relation;
use burn_gnn_plan::{RelationalIndex, RelationalPlan};

use crate::support::*;
use burn_gnn_testutil::graphs::{star, with_hub};

fn check(
    what: &str,
    relation: &Relation,
    relations: usize,
    [blocks, input, output]: [usize; 3],
    normed: bool,
    mean: bool,
) {
    let mut numbers = Numbers::new(23);
    let (src, dst, edges) = (relation.num_src(), relation.num_dst(), relation.num_edges());
    let types: Vec<u32> = (0..edges).map(|_| numbers.below(relations) as u32).collect();
    let x = numbers.numbers(src * blocks * input);
    let w = numbers.numbers(relations * blocks * input * output);
    let norm = if normed { numbers.numbers(edges) } else { vec![1.0; edges] };
    let grad = numbers.numbers(dst * blocks * output);
    let key = |e: usize| relation.dst()[e] as usize * relations + types[e] as usize;
    let mut counts = vec![0u32; dst * relations];
    (0..edges).for_each(|e| counts[key(e)] += 1);
    let share = |e: usize| if mean { 1.0 / f64::from(counts[key(e)]) } else { 1.0 };
    let (mut out, mut dx, mut dw, mut dn) =
        (vec![0.0; grad.len()], vec![0.0; x.len()], vec![0.0; w.len()], vec![0.0; edges]);
    for e in 0..edges {
        let (u, v, r) = (relation.src()[e] as usize, relation.dst()[e] as usize, types[e] as usize);
        for b in 0..blocks {
            for i in 0..input {
                for o in 0..output {
                    let (at_x, at_y) =
                        ((u * blocks + b) * input + i, (v * blocks + b) * output + o);
                    let at_w = ((r * blocks + b) * input + i) * output + o;
                    out[at_y] += norm[e] * share(e) * x[at_x] * w[at_w];
                    dx[at_x] += norm[e] * share(e) * grad[at_y] * w[at_w];
                    dw[at_w] += norm[e] * share(e) * grad[at_y] * x[at_x];
                    dn[e] += share(e) * grad[at_y] * x[at_x] * w[at_w];
                }
            }
        }
    }
    let index = RelationalIndex::new(relation, &types, relations);
    let index = if mean { index.mean() } else { index };
    let w_shape = if blocks == 1 {
        vec![relations, input, output]
    } else {
        vec![relations, blocks, input, output]
    };
    let plan = RelationalPlan::new(&index, &w_shape[1..]).unwrap();
    let (x_t, w_t) = (tensor(&x, &[src, blocks * input]), tensor(&w, &w_shape));
    let g_t = tensor(&grad, &[dst, blocks * output]);
    let n_t = normed.then(|| tensor(&norm, &[edges]));
    let run = || {
        [
            relational(&plan, x_t.clone(), w_t.clone(), n_t.clone()),
            relational_grad_x(&plan, g_t.clone(), w_t.clone(), n_t.clone()),
            relational_grad_weight(&plan, g_t.clone(), x_t.clone(), n_t.clone()),
            relational_grad_norm(&plan, g_t.clone(), x_t.clone(), w_t.clone()),
        ]
    };
    let got = run();
    let shapes =
        [vec![dst, blocks * output], vec![src, blocks * input], w_shape.clone(), vec![edges]];
    let what =
        format!("{what}, {blocks} blocks of {input} by {output}, norm {normed}, mean {mean}");
    for (((name, got), want), dims) in
        ["out", "d x", "d w", "d norm"].iter().zip(&got).zip([&out, &dx, &dw, &dn]).zip(shapes)
    {
        assert_eq!(shape(got), dims, "{what}: {name}");
        close(&format!("{what}: {name}"), got, want, 3e-4);
    }
    assert_eq!(got.map(|x| bytes(&x)), run().map(|x| bytes(&x)), "{what}");
}

#[test]
fn named_graphs() {
    let Some(()) = adapter() else { return };
    for (name, relation) in named() {
        for (normed, mean) in [(false, false), (true, false), (false, true), (true, true)] {
            check(name, &relation, 3, [1, 4, 5], normed, mean);
        }
    }
}

#[test]
fn widths_and_blocks() {
    let Some(()) = adapter() else { return };
    let relation = with_hub(30, 25, 400, 2);
    for block in [[1, 1, 1], [1, 16, 17], [1, 64, 3], [4, 3, 2], [2, 16, 16], [1, 0, 3], [1, 3, 0]]
    {
        check("widths", &relation, 5, block, true, true);
    }
    // A relation with more rows than a tile.
    check("tiles", &with_hub(300, 200, 4000, 3), 3, [4, 5, 3], true, false);
}

#[test]
fn star_of_many_leaves() {
    let Some(()) = adapter() else { return };
    check("star", &star(100_000), 2, [1, 2, 2], false, true);
}
