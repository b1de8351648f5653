//! Threads that share a graph whose layouts are not built yet: none of them may wait for
//! ever.

use std::sync::Barrier;
use std::time::Duration;

use burn_gnn_graph::{Compressed, Graph};
use burn_gnn_sampling::{Loader, NeighborSampler, SampleKey, Seeds};

use crate::common::{content, skewed};
use burn_gnn_testutil::Watchdog;
use burn_gnn_testutil::apply_if;

/// Edges from which layouts are made in parallel.
const EDGES: usize = 1 << 16;
const ROUNDS: u64 = if cfg!(miri) { 1 } else { 4 };

const NODES: usize = 4096;

fn fresh(seed: u64, edges: usize) -> Graph {
    skewed(NODES, if cfg!(miri) { 1 << 10 } else { edges }, seed)
}

/// Batches of a whole epoch.
fn epoch(g: &Graph, parallel: bool, workers: usize) -> Vec<Vec<Vec<u64>>> {
    let sampler = NeighborSampler::new(g, [4, 3]).unwrap();
    let sampler = apply_if(!parallel, sampler, NeighborSampler::with_one_thread);
    let seeds: Vec<u32> = (0..64).map(|i| i * 60).collect();
    let loader = Loader::new(sampler, Seeds::nodes(g, [("_N", &seeds)]).unwrap(), 8).unwrap();
    loader.with_seed(5).with_workers(workers).epoch(0).map(|b| content(&b.unwrap().batch)).collect()
}

/// Each worker asks for the same layout, in the pool of all.
#[test]
fn workers_of_a_loader_share_a_fresh_graph() {
    let dog = Watchdog::new();
    for seed in 0..ROUNDS {
        let want = epoch(&fresh(seed, EDGES), false, 0);
        for (workers, parallel) in [(2, true), (2, false), (4, true), (8, true)] {
            let _task =
                dog.task("loader", format!("seed {seed}, {workers} workers, parallel: {parallel}"));
            assert!(
                epoch(&fresh(seed, EDGES), parallel, workers) == want,
                "seed {seed}, {workers} workers"
            );
        }
    }
}

/// Every thread does the same on one graph, inside and outside of a pool.
fn at_once<T: PartialEq + Send>(
    threads: usize,
    pool: usize,
    like: &Graph,
    work: impl Fn(&Graph) -> T + Sync,
) {
    let dog = Watchdog::new();
    let workers = rayon::ThreadPoolBuilder::new().num_threads(pool).build().unwrap();
    let edges = &like.relations()[0];
    let copy = || Graph::homogeneous(NODES, edges.src().to_vec(), edges.dst().to_vec()).unwrap();
    let want = work(&copy());
    for round in 0..ROUNDS {
        for inside in [true, false] {
            let (g, start) = (copy(), Barrier::new(threads));
            let one = |thread: usize| {
                let _task = dog.task(
                    format!("thread {thread}"),
                    format!("round {round}, pool of {pool}, inside: {inside}"),
                );
                start.wait();
                // One after the other, so that tasks come while the first one is at work: its workers take them.
                std::thread::sleep(Duration::from_micros(400 * thread as u64));
                if inside { workers.install(|| work(&g)) } else { work(&g) }
            };
            std::thread::scope(|s| {
                let all: Vec<_> = (0..threads).map(|i| s.spawn(move || one(i))).collect();
                assert!(
                    all.into_iter().all(|t| t.join().unwrap() == want),
                    "round {round}, pool of {pool}, inside: {inside}"
                );
            });
        }
    }
}

#[test]
fn threads_share_the_layouts_of_a_fresh_graph() {
    let layout = |l: &Compressed| {
        (l.indptr().to_vec(), l.indices().to_vec(), l.edge_ids().map(<[u32]>::to_vec))
    };
    let all = |g: &Graph| {
        let r = &g.relations()[0];
        (
            layout(r.csc()),
            layout(r.csr()),
            r.sorted_by_dst().src().to_vec(),
            r.dst_order().map(|o| o.src().to_vec()),
        )
    };
    let like = fresh(3, 16 * EDGES);
    [1, 2, 4, 8].into_iter().for_each(|pool| at_once(8, pool, &like, all));
}

#[test]
fn threads_sample_a_fresh_graph() {
    let sample = |g: &Graph| {
        let sampler = NeighborSampler::new(g, [5, -1]).unwrap();
        content(&sampler.sample([("_N", [0, 17, 4000])], SampleKey::new(2)).unwrap())
    };
    let like = fresh(7, 4 * EDGES);
    [4, 8].into_iter().for_each(|pool| at_once(8, pool, &like, sample));
}
