//! Memory of the sampler: allocations per batch do not grow with nodes, and what stays is 4 bytes per node.

use burn_gnn_graph::{Graph, Stream};
use burn_gnn_sampling::{NeighborSampler, SampleKey};
use burn_gnn_testutil::counting_allocator::{self, CountingAllocator};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// One test: counts are of the whole process.
#[test]
fn allocations_do_not_grow_with_nodes_and_little_stays() {
    let nodes = 200_000usize;
    let s = Stream::new(1, "graph", 0);
    let ids =
        |column| (0..2_000_000u64).map(|e| (s.uniform(e, column) * nodes as f64) as u32).collect();
    let g = Graph::homogeneous(nodes, ids(0), ids(1)).unwrap();
    g.relations()[0].csc();
    let sampler = NeighborSampler::new(&g, [10, 5]).unwrap().with_one_thread();
    let before = counting_allocator::live();
    let seeds: Vec<u32> = (0..8_192).collect();
    let calls = |n: usize| {
        let before = counting_allocator::calls();
        let batch = sampler.sample([("_N", &seeds[..n])], SampleKey::new(1)).unwrap();
        (counting_allocator::calls() - before, batch.input_nodes(0).len())
    };
    // The largest batch comes first, so later batches reuse its buffers.
    let edges = sampler.sample([("_N", &seeds)], SampleKey::new(1)).unwrap().total_edges();
    let (few, small) = calls(32);
    let (many, large) = calls(8_192);
    assert!(large > 50 * small, "{small} and {large} nodes");
    // Lists grow by doubling: some steps more for a hundred times as many nodes.
    assert!(
        many <= few + 24 && many < 120,
        "{few} allocations for {small} nodes, {many} for {large}"
    );
    drop(seeds);
    let kept = counting_allocator::live().saturating_sub(before);
    // 4 bytes per node; per edge of the largest batch two numbers, in lists that grow by doubling.
    assert!(
        kept >= 4 * nodes && kept < 4 * nodes + 24 * edges,
        "{kept} bytes stay after {edges} edges"
    );
}
