//! Measures operators with a result per edge: GSDDMM and edge softmax.

use burn::tensor::{Distribution, Tensor};
use burn_gnn::graph::Relation;
use burn_gnn::ops::{NormBy, edge_softmax, u_add_v, u_dot_v};
use serde_json::json;

use crate::graphs::Homogeneous;
use crate::measure::{Entry, bench, device};
use crate::operators::inject::fwd_bwd;
use crate::operators::ops::{columns, tracked, uniform};

pub(crate) fn run(graph: &str, g: &Homogeneous, relation: &Relation) {
    let device = device();
    let (n, e) = (g.nodes, g.src.len());
    let widths: &[usize] = if graph == "products-slice" { &[16, 100] } else { &[16, 128] };
    for &width in widths {
        let dim = [("dim", json!(width))];
        let (x, y) = (columns(g, width, &device), uniform([n, width], &device));
        let (xg, yg) = (tracked(&x), tracked(&y));
        let dot = |x: &Tensor<2>, y: &Tensor<2>| u_dot_v::<2, 2, 2>(relation, x.clone(), y.clone());
        bench(Entry { group: "gsddmm", graph, op: "u_dot_v.fwd" }, &dim, || drop(dot(&x, &y)));
        bench(
            Entry { group: "gsddmm", graph, op: "u_dot_v.fwd+bwd" },
            &dim,
            fwd_bwd(|| dot(&xg, &yg)),
        );
    }
    // Shapes of an attention layer of 8 heads.
    let dim = [("dim", json!(8))];
    let (a, b) = (uniform([n, 8, 1], &device), uniform([n, 8, 1], &device));
    let (ag, bg) = (tracked(&a), tracked(&b));
    let add = |a: &Tensor<3>, b: &Tensor<3>| u_add_v::<3, 3, 3>(relation, a.clone(), b.clone());
    bench(Entry { group: "gsddmm", graph, op: "u_add_v.8heads.fwd" }, &dim, || drop(add(&a, &b)));
    bench(
        Entry { group: "gsddmm", graph, op: "u_add_v.8heads.fwd+bwd" },
        &dim,
        fwd_bwd(|| add(&ag, &bg)),
    );
    let scores = Tensor::<3>::random([e, 8, 1], Distribution::Normal(0.0, 1.0), &device);
    let sg = tracked(&scores);
    let softmax = |s: &Tensor<3>| edge_softmax(relation, s.clone(), NormBy::Dst);
    bench(Entry { group: "softmax", graph, op: "edge_softmax.8heads.fwd" }, &dim, || {
        drop(softmax(&scores))
    });
    bench(
        Entry { group: "softmax", graph, op: "edge_softmax.8heads.fwd+bwd" },
        &dim,
        fwd_bwd(|| softmax(&sg)),
    );
}
