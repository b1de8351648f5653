//! Threads that share a layer share its cache of sorted relations without deadlocks.

use std::sync::Barrier;

use burn::tensor::Device;
use burn_gnn_graph::{Graph, Stream};
use burn_gnn_models::*;

use crate::{matrix, values};
use burn_gnn_testutil::Watchdog;

const NODES: [usize; 2] = [900, 700];
/// So many that relations are sorted in parallel.
const EDGES: u64 = 40_000;

/// Three relations, two of which end in one type.
fn fresh() -> Graph {
    let s = Stream::new(1, "fresh", 0);
    let ids = |column, n: usize| {
        (0..EDGES).map(|e| (s.uniform(e, column) * n as f64) as u32).collect::<Vec<_>>()
    };
    let [a, b] = NODES;
    let g =
        Graph::builder().nodes("a", a).nodes("b", b).edges(("a", "r", "b"), ids(0, a), ids(1, b));
    g.edges(("a", "s", "a"), ids(2, a), ids(3, a))
        .edges(("b", "t", "a"), ids(4, b), ids(5, a))
        .build()
        .unwrap()
}

fn numbers(y: &NodeTensors) -> Vec<f64> {
    y.iter().flat_map(|(_, y)| values(y)).collect()
}

#[test]
fn layers_with_several_relations() {
    let (dog, d) = (Watchdog::new(), &Device::flex());
    let x = || {
        ["a", "b"]
            .into_iter()
            .zip(NODES)
            .map(|(t, n)| (t, matrix(d, "x", n, 4).cast(burn::tensor::FloatDType::F32)))
            .collect::<NodeTensors>()
    };
    let (relational, hgt) = seeded(0, || {
        (RelGraphConvConfig::new(4, 6, 3).init(d), HgtConvConfig::new(4, 3, 2, 2, 3).init(d))
    });
    let pool =
        |n| rayon::ThreadPoolBuilder::new().num_threads(n).stack_size(16 << 20).build().unwrap();
    let both = |r: &RelGraphConv, h: &HgtConv, g: &Graph| {
        [numbers(&r.forward(g, x())), numbers(&h.forward(g, x()))]
    };
    let want = pool(1).install(|| both(&relational, &hgt, &fresh()));
    for workers in [1, 2, 4, 8] {
        let (g, start, pool) = (fresh(), Barrier::new(8), pool(workers));
        std::thread::scope(|s| {
            for thread in 0..8 {
                // Clones share what is kept.
                let (relational, hgt) = (relational.clone(), hgt.clone());
                let (g, start, pool, both, want, dog) = (&g, &start, &pool, &both, &want, &dog);
                s.spawn(move || {
                    let _task = dog.task(format!("thread {thread}"), format!("pool of {workers}"));
                    start.wait();
                    let got = if thread % 2 == 0 {
                        pool.install(|| both(&relational, &hgt, g))
                    } else {
                        both(&relational, &hgt, g)
                    };
                    assert!(got == *want, "thread {thread}, pool of {workers}");
                });
            }
        });
    }
}
