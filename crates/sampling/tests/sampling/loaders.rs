//! Loaders: the same batches for any number of workers, errors, resuming, stopping at any moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn::data::dataloader::DataLoader;
use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_gnn_graph::{Graph, GraphError};
use burn_gnn_sampling::{
    FeatureSource, GraphFeatures, LinkSampler, LoadedBatch, Loader, LoaderState, MemoryRows,
    MiniBatch, NegativePairs, NeighborSampler, SampleKey, SampledBatch, Sampler, Seeds, Traversal,
};
use burn_gnn_sampling::{RowType, SampleNeighbors, ToBlock};

use crate::common::{content, own, skewed, typed};

fn graph() -> Graph {
    skewed(500, 5_000, 3)
}

fn loader(workers: usize) -> Loader<NeighborSampler, GraphFeatures> {
    let g = graph();
    let x: Vec<f32> = (0..1_000).map(|i| i as f32).collect();
    let w: Vec<f32> = (0..5_000).map(|e| e as f32).collect();
    let labels: Vec<i64> = (0..500).map(|v| v % 3).collect();
    let seeds: Vec<u32> = (0..205).map(|i| i * 2).collect();
    let sampler = NeighborSampler::new(&g, [4, 3]).unwrap().with_one_thread();
    let features = GraphFeatures::new(&g, &Device::flex())
        .with_nodes("_N", MemoryRows::new(&x, 2, RowType::F32).unwrap())
        .unwrap();
    let features = features
        .with_edges("_E", MemoryRows::new(&w, 1, RowType::F32).unwrap())
        .unwrap()
        .with_labels("_N", &labels)
        .unwrap();
    let loader = Loader::new(sampler, Seeds::nodes(&g, [("_N", &seeds)]).unwrap(), 50)
        .unwrap()
        .with_features(features);
    loader.with_seed(9).with_workers(workers).with_prefetch(2)
}

#[test]
fn batches_do_not_depend_on_workers() {
    let all = |workers, epoch| -> Vec<(Vec<u32>, Vec<Vec<u64>>)> {
        loader(workers)
            .epoch(epoch)
            .map(|b| b.unwrap())
            .map(|b| (own(&b), content(&b.batch)))
            .collect()
    };
    let one = all(0, 2);
    assert_eq!(one.iter().map(|b| b.0.len()).collect::<Vec<_>>(), [50, 50, 50, 50, 5]);
    for workers in [1, 2, 3, 8] {
        assert!(all(workers, 2) == one, "{workers} workers");
    }
    assert!(all(1, 3) != one);
    let mut met = one.iter().flat_map(|b| b.0.clone()).collect::<Vec<u32>>();
    met.sort_unstable();
    assert_eq!(met, (0..205).map(|i| i * 2).collect::<Vec<u32>>(), "each seed once an epoch");
    let in_order = loader(2).with_traversal(Traversal::ByOrder).with_drop_last();
    assert_eq!(in_order.num_batches(), 4);
    let seeds: Vec<u32> = in_order.epoch(0).flat_map(|b| own(&b.unwrap())).collect();
    assert_eq!(seeds, (0..200).map(|i| i * 2).collect::<Vec<u32>>());
}

#[test]
fn features_and_labels_belong_to_their_nodes_and_edges() {
    for batch in loader(1).epoch(0) {
        let b = batch.unwrap();
        let x = b.x(0).unwrap().into_data().try_to_vec::<f32>().unwrap();
        let expected: Vec<f32> = b
            .batch
            .input_nodes(0)
            .iter()
            .flat_map(|&v| [2.0 * v as f32, 2.0 * v as f32 + 1.0])
            .collect();
        assert_eq!(x, expected);
        for (block, w) in b.batch.blocks.iter().zip(&b.rows().edge_x) {
            let w = w[0].clone().unwrap().into_data().try_to_vec::<f32>().unwrap();
            assert_eq!(w, block.edge_ids(0).iter().map(|&e| e as f32).collect::<Vec<_>>());
        }
        let labels: Vec<i64> = b.labels(0).unwrap().into_data().iter::<i64>().collect();
        assert_eq!(
            labels,
            b.seeds(0).unwrap().iter().map(|&v| i64::from(v % 3)).collect::<Vec<_>>()
        );
        assert_eq!(b.batch.output_nodes(0), b.seeds(0).unwrap());
    }
}

#[test]
fn an_epoch_goes_on_where_it_was_saved() {
    let l = loader(2);
    let all: Vec<Vec<u32>> = l.epoch(4).map(|b| own(&b.unwrap())).collect();
    let mut first = l.epoch(4);
    first.by_ref().take(2).for_each(drop);
    let state = first.state();
    assert_eq!(state, LoaderState { epoch: 4, batch: 2 });
    let text = serde_json::to_string(&state).unwrap();
    drop(first);
    let rest: Vec<Vec<u32>> =
        loader(3).resume(serde_json::from_str(&text).unwrap()).map(|b| own(&b.unwrap())).collect();
    assert_eq!(rest, all[2..]);
    assert_eq!(l.resume(LoaderState { epoch: 4, batch: 99 }).count(), 0);
}

#[test]
fn burn_takes_the_loader() {
    let l = loader(1);
    assert_eq!(l.num_items(), 205);
    let pass = |l: &Loader<NeighborSampler, GraphFeatures>| -> Vec<Vec<u32>> {
        let mut it = l.iter();
        let seeds: Vec<Vec<u32>> = it.by_ref().map(|b| own(&b.unwrap())).collect();
        assert_eq!((it.progress().items_processed, it.progress().items_total), (205, 205));
        seeds
    };
    let (first, second) = (pass(&l), pass(&l));
    assert_eq!(first, l.epoch(0).map(|b| own(&b.unwrap())).collect::<Vec<_>>());
    assert_eq!(
        second,
        l.epoch(1).map(|b| own(&b.unwrap())).collect::<Vec<_>>(),
        "each pass is another epoch"
    );
    let part = DataLoader::slice(&l, 10, 20);
    let mut seeds: Vec<u32> = part.iter().flat_map(|b| own(&b.unwrap())).collect();
    seeds.sort_unstable();
    assert_eq!((part.num_items(), seeds), (10, (10..20).map(|i| i * 2).collect()));
    assert_eq!(l.to_device(&Device::flex()).num_items(), 205);
}

#[test]
fn throughput_counts_what_came() {
    let mut epoch = loader(1).epoch(0);
    let (mut edges, mut rows) = (0, 0);
    for b in epoch.by_ref().take(3) {
        let b = b.unwrap();
        edges += b.batch.total_edges();
        rows += b.batch.input_nodes(0).len() * 8 + b.batch.total_edges() * 4;
    }
    let t = epoch.throughput();
    assert_eq!((t.batches, t.seeds, t.edges, t.bytes), (3, 150, edges, rows));
    assert!(t.waited <= t.elapsed);
}

/// Fails at one batch, by an error or a panic, and counts what it makes.
struct Fails {
    at: u64,
    panics: bool,
    made: Arc<AtomicUsize>,
}

/// The step that a batch was made at.
struct Step(u64);

impl SampledBatch for Step {
    type Id = u32;
}

impl Sampler for Fails {
    type Seed = u32;
    type Batch = Step;
    type Error = GraphError;

    fn sample_batch(&self, _: &Seeds, key: SampleKey) -> Result<Step, GraphError> {
        self.made.fetch_add(1, Ordering::SeqCst);
        assert!(!(self.panics && key.step == self.at), "step {}", key.step);
        if key.step == self.at {
            Err(GraphError::Empty { arg: "batch", remedy: "none" })
        } else {
            Ok(Step(key.step))
        }
    }
}

fn hundred() -> Seeds {
    Seeds::of((0..100).collect()).unwrap()
}

#[test]
fn errors_and_panics_reach_the_caller_in_their_place() {
    for workers in [0, 1, 3] {
        for panics in [false, true] {
            let made = Arc::new(AtomicUsize::new(0));
            let l = Loader::new(Fails { at: 5, panics, made }, hundred(), 10)
                .unwrap()
                .with_workers(workers);
            let all: Vec<Result<u64, GraphError>> =
                l.epoch(0).map(|b| b.map(|b| b.batch.0)).collect();
            assert_eq!(all.len(), 6, "{workers} workers");
            assert_eq!(
                all[..5].iter().map(|b| *b.as_ref().unwrap()).collect::<Vec<_>>(),
                [0, 1, 2, 3, 4]
            );
            match all[5].as_ref().unwrap_err() {
                GraphError::Worker { epoch: 0, batch: 5, message } => {
                    assert!(panics && message == "step 5", "{message}")
                }
                e => assert!(!panics && matches!(e, GraphError::Empty { .. })),
            }
        }
    }
}

#[test]
fn a_dropped_epoch_stops_its_threads_and_the_queue_is_bounded() {
    for taken in [0, 1, 4] {
        let made = Arc::new(AtomicUsize::new(0));
        let l =
            Loader::new(Fails { at: u64::MAX, panics: false, made: made.clone() }, hundred(), 1)
                .unwrap();
        let l = l.with_workers(2).with_prefetch(3);
        let mut epoch = l.epoch(0);
        epoch.by_ref().take(taken).for_each(drop);
        drop(epoch);
        // Two workers: 3 batches wait in each queue, and one is in each hand.
        let count = made.load(Ordering::SeqCst);
        assert!(count <= taken + 8, "{count} batches were made, {taken} taken");
        assert_eq!(Arc::strong_count(&made), 2, "no thread holds the maker");
    }
}

#[test]
fn a_queue_takes_no_room_for_batches_that_are_not_there() {
    for prefetch in [1 << 40, usize::MAX] {
        let sizes: Vec<usize> =
            loader(2).with_prefetch(prefetch).epoch(0).map(|b| b.unwrap().num_seeds()).collect();
        assert_eq!(sizes, [50, 50, 50, 50, 5]);
    }
}

#[test]
fn links_are_loaded() {
    let g = graph();
    let links = LinkSampler::new(NeighborSampler::new(&g, [3]).unwrap(), "_E")
        .unwrap()
        .with_negatives(NegativePairs::PerSource(1));
    let edges: Vec<u32> = (0..60).collect();
    let rows = MemoryRows::new(&[1.0; 500], 1, RowType::F32).unwrap();
    let features = GraphFeatures::new(&g, &Device::flex()).with_nodes("_N", rows).unwrap();
    let l = Loader::new(links, Seeds::edges(&g, [("_E", &edges)]).unwrap(), 25)
        .unwrap()
        .with_features(features)
        .with_workers(2);
    let sizes: Vec<usize> = l
        .epoch(0)
        .map(|b| b.unwrap())
        .map(|b| b.batch.positive.src.len() + b.batch.negative.src.len())
        .collect();
    assert_eq!(sizes, [50, 50, 20]);
}

#[test]
fn seeds_of_several_types_share_batches() {
    let g = typed(60, 30, 5);
    let (papers, authors) =
        ((0..25).map(|i| i * 2).collect::<Vec<u32>>(), (3..17).collect::<Vec<u32>>());
    let labels = [(0..30).collect::<Vec<i64>>(), (0..60).map(|v| 100 + v).collect()];
    let seeds = Seeds::nodes(&g, [("paper", &papers), ("author", &authors)]).unwrap();
    let new = |seeds: Seeds, size| {
        Loader::new(NeighborSampler::new(&g, [3, 2]).unwrap(), seeds, size).unwrap()
    };
    let features =
        GraphFeatures::new(&g, &Device::flex()).with_labels("author", &labels[0]).unwrap();
    let features = features.with_labels("paper", &labels[1]).unwrap();
    let mut met = [vec![], vec![]];
    let (mut mixed, loader) =
        (0, new(seeds.clone(), 10).with_features(features.clone()).with_workers(2));
    for b in loader.epoch(1) {
        let b = b.unwrap();
        mixed += usize::from(b.own_seeds().ids().iter().all(|ids| !ids.is_empty()));
        for t in 0..2 {
            assert_eq!(b.batch.output_nodes(t), b.seeds(t).unwrap());
            let got: Vec<i64> = b.labels(t).unwrap().into_data().iter::<i64>().collect();
            assert_eq!(
                got,
                b.seeds(t).unwrap().iter().map(|&v| labels[t][v as usize]).collect::<Vec<_>>()
            );
            met[t].extend_from_slice(b.seeds(t).unwrap());
        }
    }
    met.iter_mut().for_each(|ids| ids.sort_unstable());
    assert!(mixed > 1 && met == [authors.clone(), papers.clone()], "each seed once an epoch");
    // Seeds are numbered type after type: of 14 authors and 25 papers the last two authors and the first three papers.
    let part = new(seeds.slice(12, 17), 9).with_traversal(Traversal::ByOrder);
    assert_eq!(
        part.epoch(0).next().unwrap().unwrap().own_seeds().ids(),
        [authors[12..].to_vec(), papers[..3].to_vec()]
    );
    assert!(matches!(features.with_labels("person", &[]), Err(GraphError::UnknownNodeType { .. })));
}

/// `..` stands for the only type wherever one is asked for.
#[test]
fn a_graph_of_one_type_needs_no_names() {
    let (g, d) = (graph(), Device::flex());
    let (x, w) = (vec![1.0; 500], (0..5_000).map(|e| e as f32).collect::<Vec<_>>());
    let rows = |of: &[f32]| MemoryRows::new(of, 1, RowType::F32).unwrap();
    let sampler = NeighborSampler::new(&g, [4, 3])
        .unwrap()
        .with_weights(.., &w)
        .unwrap()
        .with_mask(.., &[true; 5_000])
        .unwrap();
    let features = GraphFeatures::new(&g, &d).with_nodes(.., rows(&x)).unwrap();
    let features = features.with_edges(.., rows(&w)).unwrap().with_labels(.., &[7; 500]).unwrap();
    let nodes = Loader::new(sampler.clone(), Seeds::nodes(&g, [(.., [3, 9])]).unwrap(), 2).unwrap();
    let b = nodes.with_features(features.clone()).epoch(0).next().unwrap().unwrap();
    assert_eq!(b.labels(0).unwrap().into_data().iter::<i64>().collect::<Vec<_>>(), [7, 7]);
    assert_eq!(
        b.batch.blocks[0].relation(..).unwrap().num_edges(),
        b.edge_x(0, 0).unwrap().dims()[0]
    );
    let links = Loader::new(
        LinkSampler::new(sampler.clone(), ..).unwrap(),
        Seeds::edges(&g, [(.., [5])]).unwrap(),
        1,
    )
    .unwrap();
    assert!(links.with_features(features).epoch(0).next().unwrap().is_ok());
    let key = SampleKey::new(2);
    let named = sampler.sample([("_N", [3u32, 9])], key).unwrap();
    assert_eq!(content(&sampler.sample([(.., [3u32, 9])], key).unwrap()), content(&named));
    let timed = sampler.clone().with_times(.., &[1; 5_000]).unwrap();
    assert_eq!(timed.sample_before([(.., [3u32], [1i64])], key).unwrap().total_edges(), 0);
    assert!(Loader::new(timed, Seeds::nodes_before(&g, [(.., [3], [2])]).unwrap(), 1).is_ok());
    assert_eq!(sampler.shadow([(.., [3])], key).unwrap().seeds, [[0]]);
    let frontier = g.sample_neighbors([(.., [3])], [2], key).unwrap();
    assert_eq!(frontier.to_block(&g, [(.., [3])]).unwrap().dst_nodes(0), [3]);
    let sub = g.node_subgraph([(.., [3, 9])], burn_gnn_graph::Relabel::Yes).unwrap();
    assert_eq!(sub.original_nodes(..).unwrap().to_vec(), [3, 9]);
    assert_eq!(
        g.add_nodes(.., 1, &[])
            .unwrap()
            .remove_nodes(.., &[500])
            .unwrap()
            .graph
            .num_nodes(..)
            .unwrap(),
        500
    );
    assert_eq!(g.distances((.., 3), None).unwrap()[0][3], g.shortest_dist((.., 3)).unwrap()[0][3]);
    assert_eq!(burn_gnn_sampling::out_degree_hotness(&g, ..).unwrap().len(), 500);
    let two = typed(6, 4, 1);
    let several = Seeds::nodes(&two, [(.., [0])]);
    assert!(matches!(several, Err(GraphError::AmbiguousNodeType { .. })));
}

#[test]
fn edges_of_link_batches_have_features_and_labels() {
    let g = graph();
    let links = LinkSampler::new(NeighborSampler::new(&g, [3, 2]).unwrap(), "_E")
        .unwrap()
        .with_negatives(NegativePairs::PerEndpoint(1));
    let w: Vec<f32> = (0..5_000).map(|e| e as f32).collect();
    let classes: Vec<i64> = (0..5_000).map(|e| e % 7).collect();
    let edges: Vec<u32> = (0..60).map(|i| i * 80).collect();
    let features = GraphFeatures::new(&g, &Device::flex())
        .with_edges("_E", MemoryRows::new(&w, 1, RowType::F32).unwrap())
        .unwrap();
    let features = features.with_edge_labels("_E", &classes).unwrap();
    let loader = Loader::new(links, Seeds::edges(&g, [("_E", &edges)]).unwrap(), 25).unwrap();
    for b in loader.with_features(features.clone()).epoch(0) {
        let b = b.unwrap();
        assert_eq!(b.own_seeds().ids(), std::slice::from_ref(&b.batch.edges));
        let own = b.seed_x(0).unwrap().into_data().try_to_vec::<f32>().unwrap();
        assert_eq!(own, b.batch.edges.iter().map(|&e| e as f32).collect::<Vec<_>>());
        for (block, w) in b.batch.batch.blocks.iter().zip(&b.rows().edge_x) {
            let w = w[0].clone().unwrap().into_data().try_to_vec::<f32>().unwrap();
            assert_eq!(w, block.edge_ids(0).iter().map(|&e| e as f32).collect::<Vec<_>>());
        }
        let labels: Vec<i64> = b.edge_labels(0).unwrap().into_data().iter::<i64>().collect();
        assert_eq!(labels, b.batch.edges.iter().map(|&e| i64::from(e % 7)).collect::<Vec<_>>());
        assert_eq!(b.batch.negative.src.len(), 2 * b.batch.edges.len());
    }
    assert!(matches!(
        features.clone().with_edge_labels("_E", &classes[1..]),
        Err(GraphError::Length { .. })
    ));
    let short = MemoryRows::new(&w[1..], 1, RowType::F32).unwrap();
    assert!(matches!(features.with_edges("_E", short), Err(GraphError::Length { .. })));
}

/// A source whose rows cannot be read.
struct Broken;

impl FeatureSource for Broken {
    fn num_rows(&self) -> usize {
        500
    }
    fn width(&self) -> usize {
        1
    }
    fn read_rows(&self, _: &[u32], _: &mut [f32]) -> Result<(), GraphError> {
        Err(GraphError::Empty { arg: "disk", remedy: "insert it" })
    }
}

#[test]
fn what_is_refused() {
    let g = graph();
    let s = || NeighborSampler::new(&g, [1]).unwrap();
    let (seeds, features) = (
        |seeds: &[u32]| Seeds::nodes(&g, [("_N", seeds)]),
        || GraphFeatures::new(&g, &Device::flex()),
    );
    assert!(matches!(seeds(&[500]), Err(GraphError::IdOutOfRange { .. })));
    assert!(matches!(features().with_labels("_N", &[0; 3]), Err(GraphError::Length { .. })));
    let short = MemoryRows::new(&[1.0], 1, RowType::F32).unwrap();
    assert!(matches!(features().with_nodes("_N", short), Err(GraphError::Length { .. })));
    assert!(matches!(
        Loader::new(s(), seeds(&[0]).unwrap(), 0),
        Err(GraphError::Setting { arg: "batch_size", .. })
    ));
    let broken = Loader::new(s(), seeds(&[0]).unwrap(), 1)
        .unwrap()
        .with_features(features().with_nodes("_N", Broken).unwrap());
    assert!(matches!(broken.epoch(0).next(), Some(Err(GraphError::Empty { arg: "disk", .. }))));
    // Seeds of another kind, and of a graph with other types.
    let edges = Seeds::edges(&g, [("_E", [0])]).unwrap();
    assert!(matches!(Loader::new(s(), edges, 1), Err(GraphError::Setting { arg: "seeds", .. })));
    let others = Seeds::nodes(&typed(6, 4, 1), [("paper", [0])]).unwrap();
    assert!(matches!(Loader::new(s(), others, 1), Err(GraphError::Length { .. })));
}

/// Passes by Burn go on at the epoch that was set, through copies for other devices too.
#[test]
fn the_first_epoch_of_burn_can_be_set() {
    let g = skewed(60, 400, 3);
    let new = || {
        let seeds = Seeds::nodes(&g, [("_N", (0..40).collect::<Vec<u32>>())]).unwrap();
        Loader::new(NeighborSampler::new(&g, [3]).unwrap(), seeds, 7).unwrap().with_seed(4)
    };
    let drawn = |b: LoadedBatch<MiniBatch>| (own(&b), content(&b.batch));
    let (whole, resumed) = (new(), new().with_first_epoch(2).to_device(&Device::flex()));
    for epoch in 0..2 {
        whole.iter().for_each(|b| assert!(b.is_ok(), "epoch {epoch}"));
    }
    for epoch in 2..4 {
        let went_on: Vec<_> = whole.iter().map(|b| drawn(b.unwrap())).collect();
        let again: Vec<_> = resumed.iter().map(|b| drawn(b.unwrap())).collect();
        let asked: Vec<_> = new().epoch(epoch).map(|b| drawn(b.unwrap())).collect();
        assert!(went_on == again && again == asked, "epoch {epoch}");
    }
    // The last epoch that there is, after which they begin again.
    let (last, before) = (new().epoch(u64::MAX), new().epoch(u64::MAX - 1));
    let (last, before): (Vec<_>, Vec<_>) =
        (last.map(|b| drawn(b.unwrap())).collect(), before.map(|b| drawn(b.unwrap())).collect());
    assert!(last.len() == 6 && last != before);
    let wrapped = new().with_first_epoch(u64::MAX);
    assert!(wrapped.iter().map(|b| drawn(b.unwrap())).collect::<Vec<_>>() == last);
    assert!(wrapped.iter().count() == 6);
}

/// Real values of seeds, one or several each, from columns of any kind.
#[test]
fn targets_belong_to_their_seeds() {
    let device = Device::flex();
    let mut g = skewed(30, 200, 3);
    let n = 30;
    let ages = Tensor::<1>::from_data(
        TensorData::new((0..n).map(|v| v as f32 / 2.0).collect::<Vec<_>>(), [n]),
        &device,
    );
    let counts = Tensor::<1, Int>::from_data(
        TensorData::new((0..n as i64).collect::<Vec<_>>(), [n]),
        &device,
    );
    let topics: Vec<f32> =
        (0..n).flat_map(|v| [(v % 2) as f32, (v % 3 == 0) as u8 as f32, 1.0]).collect();
    let topics = Tensor::<2>::from_data(TensorData::new(topics, [n, 3]), &device);
    let weights = Tensor::<1>::from_data(
        TensorData::new((0..200).map(|e| e as f32).collect::<Vec<_>>(), [200]),
        &device,
    );
    let frame = g.nodes_mut("_N").unwrap();
    frame.insert("age", ages).unwrap();
    frame.insert("count", counts).unwrap();
    frame.insert("topics", topics.clone()).unwrap();
    frame.insert("cube", Tensor::<3>::zeros([n, 2, 2], &device)).unwrap();
    frame
        .insert(
            "large",
            Tensor::<1, Int>::from_data(TensorData::new(vec![(1i64 << 24) + 1; n], [n]), &device),
        )
        .unwrap();
    frame.insert("flag", topics.equal_elem(1.0)).unwrap();
    g.edges_mut("_E").unwrap().insert("w", weights).unwrap();
    let column = |name: &str| MemoryRows::from_column(g.nodes("_N").unwrap(), name);
    let seeds = || Seeds::nodes(&g, [("_N", (0..30).rev().collect::<Vec<u32>>())]).unwrap();
    let sampler = || NeighborSampler::new(&g, [2]).unwrap();
    let floats = |x: Tensor<2>| (x.dims(), x.into_data().iter::<f32>().collect::<Vec<_>>());
    for (name, width) in [("age", 1), ("topics", 3), ("flag", 3)] {
        let features = GraphFeatures::new(&g, &device)
            .with_nodes("_N", column("count").unwrap())
            .unwrap()
            .with_targets("_N", column(name).unwrap())
            .unwrap();
        for b in Loader::new(sampler(), seeds(), 8).unwrap().with_features(features).epoch(0) {
            let b = b.unwrap();
            let ids = own(&b);
            let want: Vec<f32> = ids
                .iter()
                .flat_map(|&v| match width {
                    1 => vec![v as f32 / 2.0],
                    _ => vec![(v % 2) as f32, f32::from(u8::from(v % 3 == 0)), 1.0],
                })
                .collect();
            assert_eq!(floats(b.targets("_N").unwrap()), ([ids.len(), width], want), "{name}");
            let x: Vec<f32> = b.batch.input_nodes(0).iter().map(|&v| v as f32).collect();
            assert_eq!(floats(b.x("_N").unwrap()), ([x.len(), 1], x));
            let e = b.labels("_N").unwrap_err().to_string();
            assert!(e.contains("`with_labels`"), "{e}");
            assert!(b.edge_targets("_E").is_err());
        }
    }
    let weights = MemoryRows::from_column(g.edges("_E").unwrap(), "w").unwrap();
    let features = GraphFeatures::new(&g, &device).with_edge_targets("_E", weights).unwrap();
    let edges = Seeds::edges(&g, [("_E", [7, 5, 199])]).unwrap();
    let links = LinkSampler::new(sampler(), "_E").unwrap();
    let loader = Loader::new(links, edges, 3).unwrap().with_traversal(Traversal::ByOrder);
    let b = loader.with_features(features).epoch(0).next().unwrap().unwrap();
    assert_eq!(floats(b.edge_targets("_E").unwrap()), ([3, 1], vec![7.0, 5.0, 199.0]));
    let text = |e: Result<MemoryRows, GraphError>| e.err().unwrap().to_string();
    assert!(text(column("cube")).contains("column `cube`: expected a column of rank 1 or 2"));
    assert!(text(column("large")).contains("that f32 holds exactly, got 16777217"));
    assert!(column("none").is_err());
    let short = MemoryRows::new(&[1.0; 7], 1, RowType::F32).unwrap();
    assert!(matches!(
        GraphFeatures::new(&g, &device).with_targets("_N", short),
        Err(GraphError::Length { .. })
    ));
}
