//! Times of GSpMM and its gradients, on a random graph of the size of ogbn-arxiv.
//!
//! `cargo bench --bench gspmm -- [--nodes N] [--edges E] [--width D]`; threads by `RAYON_NUM_THREADS`. Prints
//! the median of ten runs after two to warm up, in milliseconds, and the bytes of gathered rows per second.

use std::time::Instant;

use burn::tensor::{Device, Distribution, Tensor};
use burn_gnn_graph::Relation;
use burn_gnn_ops::{Stream, copy_u_max, copy_u_mean, copy_u_sum, dropout, u_mul_e_sum};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn median(mut f: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..12)
        .map(|_| {
            let start = Instant::now();
            f();
            start.elapsed().as_secs_f64() * 1e3
        })
        .skip(2)
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let option = |name: &str, default: usize| {
        let at = args.iter().position(|a| a == name);
        at.and_then(|i| args.get(i + 1)).and_then(|v| v.parse().ok()).unwrap_or(default)
    };
    let (nodes, edges, width) = (option("--nodes", 170_000), option("--edges", 1_170_000), option("--width", 128));
    let stream = Stream::new(1, "bench", 0);
    let end = |side| (0..edges as u64).map(|e| (stream.uniform(e, side) * nodes as f64) as u32).collect();
    let relation = Relation::from_coo(nodes, nodes, end(0), end(1)).expect("ids are below the number of nodes");
    let _ = (relation.csc(), relation.csr());
    let device = Device::flex();
    let x = Tensor::<2>::random([nodes, width], Distribution::Default, &device);
    let w = Tensor::<2>::random([edges, 1], Distribution::Default, &device);
    let tracked = |t: &Tensor<2>| Tensor::<2>::from_data(t.to_data(), &device.clone().autodiff()).require_grad();
    let (xt, wt) = (tracked(&x), tracked(&w));

    println!("{relation:?}, width {width}, f32, {} threads", rayon_threads());
    let report = |name: &str, f: &mut dyn FnMut()| {
        let ms = median(f);
        let rate = (edges * width * 4) as f64 / ms / 1e6;
        println!("{name:32} {ms:8.1} ms {rate:6.1} GB/s");
    };
    report("copy_u_sum", &mut || drop(copy_u_sum(&relation, x.clone())));
    report("copy_u_mean", &mut || drop(copy_u_mean(&relation, x.clone())));
    report("copy_u_max", &mut || drop(copy_u_max(&relation, x.clone())));
    report("u_mul_e_sum, w [E, 1]", &mut || drop(u_mul_e_sum::<2, 2, 2>(&relation, x.clone(), w.clone())));
    // Forward, a sum, its gradient and the gradient named.
    report("copy_u_sum, with d x", &mut || drop(copy_u_sum(&relation, xt.clone()).sum().backward()));
    report("copy_u_mean, with d x", &mut || drop(copy_u_mean(&relation, xt.clone()).sum().backward()));
    report("copy_u_max, with d x", &mut || drop(copy_u_max(&relation, xt.clone()).sum().backward()));
    report("u_mul_e_sum, with d x", &mut || drop(u_mul_e_sum::<2, 2, 2>(&relation, xt.clone(), w.clone()).sum().backward()));
    report("u_mul_e_sum, with d w", &mut || drop(u_mul_e_sum::<2, 2, 2>(&relation, x.clone(), wt.clone()).sum().backward()));
    report("dropout", &mut || drop(dropout(x.clone(), 0.5, stream, None)));
}

fn rayon_threads() -> String {
    std::env::var("RAYON_NUM_THREADS").unwrap_or_else(|_| std::thread::available_parallelism().map_or(1, usize::from).to_string())
}
