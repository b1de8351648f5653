//! Measures single operators, forward and with the gradients of all inputs.

use std::time::Instant;

use anyhow::{Result, bail};
use burn::tensor::{Device, Distribution, Tensor, TensorData};
use burn_gnn::graph::Relation;
use burn_gnn::ops::{copy_u_max, copy_u_mean, copy_u_sum, u_mul_e_sum};
use serde_json::json;

use crate::alloc;
use crate::graphs::Homogeneous;
use crate::measure::{Entry, Times, bench, device, emit};
use crate::operators::inject::fwd_bwd;

/// The first `width` columns of the features.
pub(crate) fn columns(g: &Homogeneous, width: usize, device: &Device) -> Tensor<2> {
    let rows = g.task.features.chunks_exact(g.task.width).flat_map(|row| &row[..width]);
    Tensor::from_data(
        TensorData::new(rows.copied().collect::<Vec<f32>>(), [g.nodes, width]),
        device,
    )
}

pub(crate) fn tracked<const D: usize>(x: &Tensor<D>) -> Tensor<D> {
    x.clone().autodiff().require_grad()
}

pub(crate) fn uniform<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::random(shape, Distribution::Uniform(0.0, 1.0), device)
}

fn gspmm<'a>(graph: &'a str, op: &'a str) -> Entry<'a> {
    Entry { group: "gspmm", graph, op }
}

pub(crate) fn run(graph: &str, g: &Homogeneous) -> Result<()> {
    let device = device();
    let (n, e) = (g.nodes, g.src.len());
    let relation = Relation::from_coo(n, n, g.src.clone(), g.dst.clone())?;
    let start = Instant::now();
    let _ = (relation.csr(), relation.csc());
    emit(
        Entry { group: "build", graph, op: "coo+csr+csc" },
        Some(&Times::once(start.elapsed().as_secs_f64())),
        &[],
    );

    let big = e > 5_000_000;
    let widths: &[usize] = if graph == "products-slice" { &[1, 16, 100] } else { &[1, 16, 128] };
    let relation = &relation;
    for &width in widths {
        let dim = [("dim", json!(width))];
        let x = columns(g, width, &device);
        let xg = tracked(&x);
        type Copy = fn(&Relation, Tensor<2>) -> Tensor<2>;
        let copies: [(&str, Copy); 3] =
            [("sum", copy_u_sum), ("mean", copy_u_mean), ("max", copy_u_max)];
        for (name, f) in copies {
            bench(gspmm(graph, &format!("copy_u_{name}.fwd")), &dim, || {
                drop(f(relation, x.clone()))
            });
            bench(
                gspmm(graph, &format!("copy_u_{name}.fwd+bwd")),
                &dim,
                fwd_bwd(|| f(relation, xg.clone())),
            );
        }
        let weighted = |name: &str, w: Tensor<2>| {
            bench(gspmm(graph, &format!("u_mul_e_sum.{name}.fwd")), &dim, || {
                drop(u_mul_e_sum::<2, 2, 2>(relation, x.clone(), w.clone()))
            });
            let wg = tracked(&w);
            bench(
                gspmm(graph, &format!("u_mul_e_sum.{name}.fwd+bwd")),
                &dim,
                fwd_bwd(|| u_mul_e_sum::<2, 2, 2>(relation, xg.clone(), wg.clone())),
            );
        };
        weighted("scalar", uniform([e, 1], &device) + 0.5);
        if !big {
            weighted("full", uniform([e, width], &device));
        }
    }

    // Shapes of attention layers: heads, and features of each.
    for (heads, size) in [(8, 8), (4, 32)] {
        let (name, dim) = (format!("u_mul_e_sum.{heads}x{size}heads"), heads * size);
        let dim = [("dim", json!(dim))];
        let scores = Tensor::<3>::random([e, heads, 1], Distribution::Normal(0.0, 1.0), &device);
        let z = uniform([n, heads, size], &device);
        bench(gspmm(graph, &format!("{name}.fwd")), &dim, || {
            drop(u_mul_e_sum::<3, 3, 3>(relation, z.clone(), scores.clone()))
        });
        let (zg, sg) = (tracked(&z), tracked(&scores));
        bench(
            gspmm(graph, &format!("{name}.fwd+bwd")),
            &dim,
            fwd_bwd(|| u_mul_e_sum::<3, 3, 3>(relation, zg.clone(), sg.clone())),
        );
    }
    crate::operators::edges::run(graph, g, relation);
    Ok(())
}

/// Measures the resident memory that maximum aggregation of 128 features adds for backward, without
/// its output: the argmax.
pub(crate) fn saved(graph: &str, g: &Homogeneous) -> Result<()> {
    const WIDTH: usize = 128;
    let relation = Relation::from_coo(g.nodes, g.nodes, g.src.clone(), g.dst.clone())?;
    let x = tracked(&columns(g, WIDTH, &device()));
    let _ = (relation.csr(), relation.csc());
    let before = alloc::begin();
    // `x` stays alive, so that only memory of the operator beyond its result is counted.
    let y = copy_u_max(&relation, x.clone());
    let kept = alloc::begin() as f64 - before as f64 - (g.nodes * WIDTH * size_of::<f32>()) as f64;
    if before == 0 {
        bail!("bytes in use are counted with BENCH_ALLOCATOR=counted alone; set it");
    }
    let mb = kept / f64::from(1 << 20);
    emit(
        Entry { group: "memory", graph, op: "copy_u_max.saved" },
        None,
        &[("dim", json!(WIDTH)), ("saved_mb", json!(mb.round()))],
    );
    drop((x, y));
    Ok(())
}
