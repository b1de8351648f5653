//! Compares user-defined message and reduce functions with builtin ones for the same sum.

use anyhow::Result;
use burn::tensor::Tensor;
use burn_gnn::ops::MessageOps;
use burn_gnn::ops::function::{by_degree, copy_u, sum};
use burn_gnn::ops::{EdgeBatch, Fields, NodeBatch, OpsError};
use burn_gnn::prelude::*;
use serde_json::json;

use crate::graphs::Homogeneous;
use crate::measure::{Entry, bench, device};
use crate::operators::inject::fwd_bwd;
use crate::operators::ops::{columns, tracked};

fn message(e: &EdgeBatch) -> Result<Fields, OpsError> {
    Ok(Fields::of("m", e.src::<2>("x")?))
}

fn ragged(n: &NodeBatch) -> Result<Fields, OpsError> {
    Ok(Fields::of("y", n.mailbox::<2>("m")?.sum()?))
}

/// As Burn's own sum of a dense mailbox, whose backward makes a row per message and multiplies it.
fn dense(n: &NodeBatch) -> Result<Fields, OpsError> {
    let m: Tensor<3> = n.mailbox::<2>("m")?.dense()?;
    Ok(Fields::of("y", m.sum_dim(1).squeeze_dim::<2>(1)))
}

pub(crate) fn run(name: &str, g: &Homogeneous) -> Result<()> {
    let graph = Graph::homogeneous(g.nodes, g.src.clone(), g.dst.clone())?;
    graph.relations()[0].csc();
    graph.relations()[0].csr();
    for width in [16, 128] {
        let x = columns(g, width, &device());
        let with = |x: Tensor<2>| {
            let mut g = graph.clone();
            g.nodes_mut("_N").and_then(|f| f.insert("x", x)).expect("one row per node");
            g
        };
        let y = |g: Graph| {
            g.nodes("_N").and_then(|f| f.get::<2>("y")).expect("the result has this field")
        };
        let fused = |x: Tensor<2>| {
            y(with(x).update_all(copy_u("x", "m"), sum("m", "y")).expect("fields are there"))
        };
        let by_message =
            |x: Tensor<2>| y(with(x).update_all(message, sum("m", "y")).expect("fields are there"));
        let by_mailbox =
            |x: Tensor<2>| y(with(x).update_all(message, ragged).expect("fields are there"));
        let by_dense = |x: Tensor<2>| {
            y(with(x).update_all(message, by_degree(dense)).expect("fields are there"))
        };
        let by_bucket = |x: Tensor<2>| {
            y(with(x).update_all(message, by_degree(ragged)).expect("fields are there"))
        };
        let ways: [(&str, &dyn Fn(Tensor<2>) -> Tensor<2>); 5] = [
            ("builtins", &fused),
            ("message closure", &by_message),
            ("closures, ragged", &by_mailbox),
            ("closures, by_degree", &by_bucket),
            ("closures, by_degree, dense", &by_dense),
        ];
        let dim = [("dim", json!(width))];
        for (way, f) in ways {
            bench(
                Entry { group: "messages", graph: name, op: &format!("copy_u_sum.{way}.fwd") },
                &dim,
                || drop(f(x.clone())),
            );
            let xg = tracked(&x);
            bench(
                Entry { group: "messages", graph: name, op: &format!("copy_u_sum.{way}.fwd+bwd") },
                &dim,
                fwd_bwd(|| f(xg.clone())),
            );
        }
    }
    Ok(())
}
