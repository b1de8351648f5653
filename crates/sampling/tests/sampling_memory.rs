//! Memory of the sampler: allocations per batch do not grow with nodes, and what stays is 4 bytes per node.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use burn_gnn_graph::{Graph, Stream};
use burn_gnn_sampling::{NeighborSampler, SampleKey};

struct Counting;

static CALLS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as promised to this function.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as promised to this function.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test: counts are of the whole process.
#[test]
fn allocations_do_not_grow_with_nodes_and_little_stays() {
    let nodes = 200_000usize;
    let s = Stream::new(1, "graph", 0);
    let ids =
        |column| (0..2_000_000u64).map(|e| (s.uniform(e, column) * nodes as f64) as u32).collect();
    let g = Graph::homogeneous(nodes, ids(0), ids(1)).unwrap();
    g.relations()[0].csc();
    let sampler = NeighborSampler::new(&g, [10, 5]).unwrap().with_parallel(false);
    let before = BYTES.load(Ordering::Relaxed);
    let seeds: Vec<u32> = (0..8_192).collect();
    let calls = |n: usize| {
        let before = CALLS.load(Ordering::Relaxed);
        let batch = sampler.sample([("_N", &seeds[..n])], SampleKey::new(1)).unwrap();
        (CALLS.load(Ordering::Relaxed) - before, batch.input_nodes(0).len())
    };
    // The largest batch comes first: what it leaves behind serves all.
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
    let kept = BYTES.load(Ordering::Relaxed).saturating_sub(before);
    // 4 bytes per node; per edge of the largest batch two numbers, in lists that grow by doubling.
    assert!(
        kept >= 4 * nodes && kept < 4 * nodes + 24 * edges,
        "{kept} bytes stay after {edges} edges"
    );
}
