//! Training on features that are four times larger than the available memory.

use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::{Graph, Stream};
use burn_gnn_models::{FusedAdamConfig, Rows, SageConfig, seeded};
use burn_gnn_sampling::{
    FeatureSource, GraphFeatures, Loader, MappedRows, MemoryRows, NeighborSampler, RowType, Seeds,
    TieredRows, hot_order, presampled_hotness, write_rows,
};
use burn_gnn_testutil::counting_allocator::{CountingAllocator, live, peak};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const NODES: usize = 40_000;
const WIDTH: usize = 256;
/// Bytes of all features.
const BYTES: usize = NODES * WIDTH * size_of::<f32>();

fn memory() -> MemoryRows {
    let stream = Stream::new(6, "features", 0);
    let values: Vec<f32> =
        (0..(NODES * WIDTH) as u64).map(|i| stream.uniform(i, 0) as f32 - 0.5).collect();
    MemoryRows::new(&values, WIDTH, RowType::F32).unwrap()
}

/// Losses of two epochs of GraphSAGE by mini-batches.
fn losses(g: &Graph, features: impl FeatureSource + 'static) -> Vec<f32> {
    let (seeds, device) = (seeds(), Device::flex());
    let sampler = NeighborSampler::new(g, [5, 3]).unwrap();
    let features = GraphFeatures::new(g, &device).with_nodes("_N", features).unwrap();
    let loader = Loader::new(sampler, Seeds::nodes(g, [("_N", &seeds)]).unwrap(), 64).unwrap();
    let loader = loader.with_features(features).with_seed(4).with_workers(1).with_prefetch(1);
    let mut net = seeded(0, || SageConfig::new(WIDTH, 3).with_hidden(8).init(&device.autodiff()));
    let mut optimizer = FusedAdamConfig::new().init();
    let mut losses = vec![];
    for epoch in 0..2 {
        for batch in loader.epoch(epoch) {
            let b = batch.unwrap();
            let labels: Vec<i64> = b.seeds(0).unwrap().iter().map(|&v| i64::from(v % 3)).collect();
            let rows =
                Rows::new(&(0..labels.len() as u32).collect::<Vec<_>>(), &labels, 3).unwrap();
            let x = Tensor::from_inner(b.x(0).unwrap());
            let loss = rows.cross_entropy(net.forward_blocks(&b.batch.blocks, x));
            losses.push(loss.clone().inner().into_scalar::<f32>());
            let grads = GradientsParams::from_grads(loss.backward(), &net);
            net = optimizer.step(0.01, net, grads);
        }
    }
    losses
}

fn seeds() -> Vec<u32> {
    (0..NODES as u32).step_by(125).collect()
}

/// The same losses, with a quarter of the features' bytes for those that are kept and an eighth for everything else.
/// One test: another one's memory would be counted too.
#[test]
fn features_four_times_the_memory_give_the_same_losses() {
    let stream = Stream::new(3, "edges", 0);
    let end = |side: u64| {
        let of = |e: u64| (stream.uniform(e, side) * NODES as f64) as u32;
        (0..5 * NODES as u64).map(of).collect()
    };
    let g = Graph::homogeneous(NODES, end(0), end(1)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("features.safetensors");
    write_rows(&path, &memory(), RowType::F32).unwrap();
    let hotness = presampled_hotness(&g, [5, 3], [("_N", seeds())]).unwrap();
    let order = hot_order(&hotness[0]);

    let (mut whole, mut tiered) = (vec![], vec![]);
    // The first run also makes what is made once: layouts of the graph, threads.
    let with_all = peak(live(), || whole = losses(&g, memory()));
    let with_quarter = peak(live(), || {
        let file = MappedRows::open(&path).unwrap();
        let rows = TieredRows::with_budget(file, &order, BYTES / 4).unwrap();
        assert!(rows.hot_bytes() <= BYTES / 4 && rows.hot_bytes() > BYTES / 5);
        tiered = losses(&g, rows);
    });
    println!(
        "{BYTES} bytes of features: {with_all} with all in memory, {with_quarter} with a quarter"
    );
    assert!(whole.len() == 10 && whole.iter().all(|l| l.is_finite()));
    assert_eq!(tiered, whole);
    assert!(with_quarter <= BYTES / 4 + BYTES / 8, "{with_quarter} of {BYTES} bytes");
    assert!(with_all > BYTES, "the bound tells the two apart");
}
