//! Peak memory of layer-wise inference: two matrices and a chunk. Nothing stays allocated, even for a model on an autodiff
//! device.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::Graph;
use burn_gnn_models::{
    GatConfig, InferenceConfig, Layerwise, NodeClassifier, NodeTask, NodeTensors, Rows, SageConfig,
    evaluate, infer,
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
    // Inputs and outputs of a layer; about 1,500 of 40,000 rows for the values of 250 nodes and their in-neighbours;
    // and what products pack their operands into, some 2 MB.
    assert!(of(small) < 2.5, "{name}: {:.2} matrices for chunks of 250 nodes", of(small));
    assert!(small < large, "{name}: {small} and {large} bytes: memory follows the chunk");
    // The bound tells the two apart.
    assert!(of(whole) > 3.0, "{name}: {:.2} matrices for the whole graph at once", of(whole));
}

/// Bytes that stay after three more calls.
fn kept(name: &str, run: impl Fn()) {
    run();
    let before = counting_allocator::live();
    (0..3).for_each(|_| run());
    let more = counting_allocator::live().saturating_sub(before);
    println!("{name}: keeps {more} bytes");
    assert!(more < MATRIX / 100, "{name} keeps {more} bytes");
}

/// Evaluation and inference of a model that trains, and of features that are tracked.
fn nothing_stays(g: &Graph) {
    let device = Device::flex().autodiff();
    let model = SageConfig::new(WIDTH, 8).with_hidden(WIDTH).init(&device);
    let x = Tensor::<2>::ones([NODES, WIDTH], &Device::flex());
    let rows = Rows::new(&[0, 1], &[0, 1], 2).unwrap();
    for x in [x.clone(), Tensor::from_inner(x)] {
        let task = NodeTask {
            graph: g,
            features: x.clone().into(),
            target: "_N".into(),
            train: rows.clone(),
            val: Rows::default(),
            test: Rows::default(),
        };
        kept("evaluate", || assert_eq!(evaluate(&model, &task, &rows).unwrap().count(), 2));
        let config = InferenceConfig::new().with_max_nodes(4000);
        kept("infer", || drop(infer(&model, g, x.clone(), "_N", &config).unwrap()));
        kept("valid", || drop(model.valid().logits(g, &x.clone().without_autodiff().into(), "_N")));
    }
}

fn of(bytes: usize) -> f64 {
    bytes as f64 / MATRIX as f64
}

/// One test: another one's memory would be counted too.
#[test]
fn memory_is_two_matrices_and_a_chunk_and_none_stays() {
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
            .with_hidden(64)
            .with_num_heads(4)
            .with_num_layers(3)
            .init(&device),
        &g,
    );
    nothing_stays(&g);
}
