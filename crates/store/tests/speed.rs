//! How fast batches come out of a file, beside memory: run by hand, `--ignored --nocapture`.

#![cfg(feature = "sampling")]

use std::time::Instant;

use burn_gnn_graph::{Graph, Relation};
use burn_gnn_sampling::{NeighborSampler, SampleKey};
use burn_gnn_store::{CscBuild, EdgeIter, StoredGraph};

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Uniform (fan-outs 15 and 10, 1,024 seeds) at `BURN_GNN_SPEED_EDGES` edges (20 million), 15 per node.
#[test]
#[ignore = "takes minutes, and prints times"]
fn seeds_per_second() {
    let edges: u64 = std::env::var("BURN_GNN_SPEED_EDGES").map_or(20_000_000, |t| t.parse().unwrap());
    let n = (edges / 15) as u32;
    let edge = |i: u64| {
        let h = mix(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
        ((h >> 32) * u64::from(n) >> 32, (h & 0xffff_ffff) * u64::from(n) >> 32)
    };
    let edge = |i: u64| {
        let (u, v) = edge(i);
        (u as u32, v as u32)
    };
    let dir = tempfile::tempdir_in(std::env::var_os("BURN_GNN_SPEED_DIR").map_or_else(std::env::temp_dir, Into::into)).unwrap();
    let began = Instant::now();
    let build = CscBuild::new(dir.path().join("csc"), n as usize, n as usize).with_memory(256 << 20);
    build.run(EdgeIter::new((0..edges).map(edge))).unwrap();
    let took = began.elapsed().as_secs_f64();
    println!("built in {took:.1} s, {:.1} M edges/s", edges as f64 / took / 1e6);
    let stored = StoredGraph::create(dir.path(), [("_N", n as usize)], [(("_N", "_E", "_N"), "csc")]).unwrap();
    let time = |what: &str, g: &Graph| {
        let sampler = NeighborSampler::new(g, [15, 10]).unwrap();
        let mut rates: Vec<f64> = vec![];
        for round in 0..5u64 {
            let began = Instant::now();
            for step in 0..50u64 {
                let seeds: Vec<u32> = (0..1024).map(|i| (mix(round << 40 | step << 20 | i) % u64::from(n)) as u32).collect();
                sampler.sample([("_N", seeds)], SampleKey::new(1).at(round, step)).unwrap();
            }
            rates.push(51_200.0 / began.elapsed().as_secs_f64());
        }
        println!("{what}: seeds/s by round {rates:.0?}");
    };
    time("file", stored.graph());
    if std::env::var_os("BURN_GNN_SPEED_FILE_ALONE").is_none() {
        let (src, dst) = (0..edges).map(edge).unzip();
        let memory = Relation::from_coo(n as usize, n as usize, src, dst).unwrap();
        let g = Graph::builder()
            .nodes("_N", n as usize)
            .edges(("_N", "_E", "_N"), memory.src().to_vec(), memory.dst().to_vec())
            .build()
            .unwrap();
        time("memory", &g);
    }
}
