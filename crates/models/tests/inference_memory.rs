//! Inference over a whole graph needs memory for two matrices and a chunk, not for what a forward of the whole graph
//! makes.

use burn::tensor::{Device, Tensor};
use burn_gnn_graph::Graph;
use burn_gnn_models::{
    GatConfig, InferenceConfig, Layerwise, NodeClassifier, NodeTensors, SageConfig, infer,
};
use burn_gnn_testutil::counting_allocator::{self, CountingAllocator};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Most bytes in use during `run`, beyond those before it.
fn peak(run: impl FnOnce() -> Tensor<2>) -> usize {
    counting_allocator::peak(counting_allocator::live(), || assert_eq!(run().dims(), [NODES, 8]))
}

const NODES: usize = 40_000;
const WIDTH: usize = 64;
/// One row of `WIDTH` numbers for every node.
const MATRIX: usize = NODES * WIDTH * size_of::<f32>();

fn check<M: Layerwise + NodeClassifier>(name: &str, model: &M, g: &Graph) {
    let x = NodeTensors::from(Tensor::<2>::ones([NODES, WIDTH], &Device::flex()));
    let chunked = |nodes| {
        peak(|| infer(model, g, &x, "_N", &InferenceConfig::new().with_max_nodes(nodes)).unwrap())
    };
    // What is made once: CSC, threads.
    chunked(NODES);
    let whole = peak(|| model.logits(g, &x, "_N"));
    let [small, large] = [250, 4000].map(chunked);
    println!(
        "{name}: whole {:.2} matrices, chunks of 4000 nodes {:.2}, of 250 nodes {:.2}",
        of(whole),
        of(large),
        of(small)
    );
    // Rows before and behind a layer; some 1,500 of 40,000 rows for what is made of 250 nodes and their in-neighbours;
    // and what products pack their operands into, some 2 MB.
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
    let (src, dst) = (0..5 * n)
        .map(|e| ((e / 5).wrapping_mul(7919).wrapping_add(e % 5 * 6007) % n, e / 5))
        .unzip();
    let g = Graph::homogeneous(NODES, src, dst).unwrap();
    let device = Device::flex();
    check(
        "sage",
        &SageConfig::new(WIDTH, 8).with_hidden(WIDTH).with_num_layers(3).init(&device),
        &g,
    );
    check(
        "gat",
        &GatConfig::new(WIDTH, 8)
            .with_d_head(16)
            .with_num_heads(4)
            .with_num_layers(3)
            .init(&device),
        &g,
    );
}
