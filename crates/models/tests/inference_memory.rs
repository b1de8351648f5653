//! Inference over a whole graph needs memory for two matrices and a chunk, not for what a forward of the whole graph makes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use burn::tensor::{Device, Tensor};
use burn_gnn_graph::Graph;
use burn_gnn_models::{GatConfig, InferenceConfig, Layerwise, NodeClassifier, NodeTensors, SageConfig, infer};

/// Counts bytes in use, and the most there were.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn count(more: usize, less: usize) {
    let live = LIVE.fetch_add(more, Ordering::Relaxed) + more;
    PEAK.fetch_max(live, Ordering::Relaxed);
    LIVE.fetch_sub(less, Ordering::Relaxed);
}

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as promised to this function.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as promised to this function.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as promised to this function.
        unsafe { System.dealloc(block, layout) }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: as promised to this function.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Most bytes in use during `run`, beyond those before it.
fn peak(run: impl FnOnce() -> Tensor<2>) -> usize {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let y = run();
    assert_eq!(y.dims(), [NODES, 8]);
    PEAK.load(Ordering::Relaxed) - before
}

const NODES: usize = 40_000;
const WIDTH: usize = 64;
/// One row of `WIDTH` numbers for every node.
const MATRIX: usize = NODES * WIDTH * size_of::<f32>();

fn check<M: Layerwise + NodeClassifier>(name: &str, model: &M, g: &Graph) {
    let x = NodeTensors::from(Tensor::<2>::ones([NODES, WIDTH], &Device::flex()));
    let chunked = |nodes| peak(|| infer(model, g, &x, "_N", &InferenceConfig::new().with_max_nodes(nodes)).unwrap());
    // What is made once: CSC, threads.
    chunked(NODES);
    let whole = peak(|| model.logits(g, &x, "_N"));
    let [small, large] = [250, 4000].map(chunked);
    println!("{name}: whole {:.2} matrices, chunks of 4000 nodes {:.2}, of 250 nodes {:.2}", of(whole), of(large), of(small));
    // Rows before and behind a layer; some 1,500 of 40,000 rows for what is made of 250 nodes and their in-neighbours; and what
    // products pack their operands into, some 2 MB.
    assert!(of(small) < 2.5, "{name}: {:.2} matrices for chunks of 250 nodes", of(small));
    assert!(small < large, "{name}: {small} and {large} bytes: memory follows the chunk");
    // The bound tells the two apart.
    assert!(of(whole) > 3.0, "{name}: {:.2} matrices for the whole graph at once", of(whole));
}

fn of(bytes: usize) -> f64 {
    bytes as f64 / MATRIX as f64
}

/// One test: another one's memory would be counted too.
#[test]
fn memory_is_two_matrices_and_a_chunk() {
    let n = NODES as u32;
    // Five in-edges each, from far away.
    let (src, dst) = (0..5 * n).map(|e| ((e / 5).wrapping_mul(7919).wrapping_add(e % 5 * 6007) % n, e / 5)).unzip();
    let g = Graph::homogeneous(NODES, src, dst).unwrap();
    let device = Device::flex();
    check("sage", &SageConfig::new(WIDTH, 8).with_hidden(WIDTH).with_num_layers(3).init(&device), &g);
    check("gat", &GatConfig::new(WIDTH, 8).with_d_head(16).with_num_heads(4).with_num_layers(3).init(&device), &g);
}
