//! Measures mixed precision: the same operators on f32 inputs, with and without 16-bit copies.

use anyhow::Result;
use burn::tensor::{FloatDType, Tensor};
use burn_gnn::graph::Relation;
use burn_gnn::ops::{Precision, copy_u_sum, u_mul_e_sum, with_precision};
use serde_json::json;

use crate::graphs::Homogeneous;
use crate::measure::{Entry, bench, device};
use crate::operators::inject::fwd_bwd;
use crate::operators::ops::{columns, tracked, uniform};

pub(crate) fn run(graph: &str, g: &Homogeneous) -> Result<()> {
    let device = device();
    let (n, e) = (g.nodes, g.src.len());
    let relation = Relation::from_coo(n, n, g.src.clone(), g.dst.clone())?;
    let _ = (relation.csr(), relation.csc());
    for width in [16, g.task.width.min(128)] {
        let dim = [("dim", json!(width))];
        let (x, w) = (columns(g, width, &device), uniform([e, 1], &device) + 0.5);
        let (xg, wg) = (tracked(&x), tracked(&w));
        for (name, setting) in
            [("f32", Precision::Full), ("f16", Precision::F16), ("bf16", Precision::BF16)]
        {
            let measured = |op: &str, f: &mut dyn FnMut()| {
                bench(Entry { group: "precision", graph, op: &format!("{op}.{name}") }, &dim, f)
            };
            let copy = |x: &Tensor<2>| with_precision(setting, || copy_u_sum(&relation, x.clone()));
            let product = |x: &Tensor<2>, w: &Tensor<2>| {
                with_precision(setting, || u_mul_e_sum::<2, 2, 2>(&relation, x.clone(), w.clone()))
            };
            // Inputs in f32: the cast counts.
            measured("copy_u_sum.fwd", &mut || drop(copy(&x)));
            measured("copy_u_sum.fwd+bwd", &mut fwd_bwd(|| copy(&xg)));
            measured("u_mul_e_sum.scalar.fwd", &mut || drop(product(&x, &w)));
            measured("u_mul_e_sum.scalar.fwd+bwd", &mut fwd_bwd(|| product(&xg, &wg)));
            // Inputs cast once, by hand.
            let to = |x: &Tensor<2>| match setting {
                Precision::F16 => x.clone().cast(FloatDType::F16),
                Precision::BF16 => x.clone().cast(FloatDType::BF16),
                _ => x.clone(),
            };
            let (xc, wc) = (to(&x), to(&w));
            measured("copy_u_sum.cast.fwd", &mut || drop(copy(&xc)));
            measured("u_mul_e_sum.scalar.cast.fwd", &mut || drop(product(&xc, &wc)));
        }
    }
    Ok(())
}
