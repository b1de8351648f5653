//! A sampler of a user, and those of the library that make no blocks: all that a loader does is theirs by one
//! `impl Sampler`.

use burn::data::dataloader::DataLoader;
use burn::tensor::{Device, Int, Tensor};
use burn_gnn_graph::{Graph, GraphError, KHop, Relabel, Stream, Subgraph};
use burn_gnn_sampling::RowType;
use burn_gnn_sampling::{
    ClusterSampler, GraphFeatures, LoadedBatch, Loader, LoaderState, MemoryRows, NeighborSampler,
    Node2Vec, PinSage, RandomWalk, SaintMethod, SaintSampler, SampleKey, Sampler, Seeds,
    ShadowSampler, Traversal,
};

use crate::common::{own, skewed};

/// The subgraph of the seeds and of as many nodes drawn for them.
struct RandomSubgraph(Graph);

impl Sampler for RandomSubgraph {
    type Seed = u32;
    type Batch = Subgraph;
    type Error = GraphError;

    fn sample_batch(&self, seeds: &Seeds, key: SampleKey) -> Result<Subgraph, GraphError> {
        let (draws, all) =
            (Stream::new(key.seed, "crowd", key.step), self.0.node_counts()[0] as f64);
        let mut nodes = seeds.ids()[0].clone();
        nodes.extend((0..nodes.len() as u64).map(|i| (draws.uniform(i, 0) * all) as u32));
        nodes.sort_unstable();
        nodes.dedup();
        self.0.node_subgraph([("_N", nodes)], Relabel::Yes)
    }
}

const NODES: usize = 300;

fn graph() -> Graph {
    skewed(NODES, 3_000, 3)
}

fn features(g: &Graph) -> GraphFeatures {
    let rows = |count: usize| {
        MemoryRows::new(&(0..count).map(|i| i as f32).collect::<Vec<_>>(), 1, RowType::F32).unwrap()
    };
    let labels: Vec<i64> = (0..NODES as i64).map(|v| v * 7 % 11).collect();
    let features = GraphFeatures::new(g, &Device::flex()).with_nodes("_N", rows(NODES)).unwrap();
    features.with_edges("_E", rows(3_000)).unwrap().with_labels("_N", &labels).unwrap()
}

fn seeds(g: &Graph) -> Seeds {
    Seeds::nodes(g, [("_N", (0..110).map(|i| i * 2).collect::<Vec<u32>>())]).unwrap()
}

fn loader<S: Sampler<Seed = u32>>(
    g: &Graph,
    sampler: S,
    seeds: Seeds,
    workers: usize,
    prefetch: usize,
) -> Loader<S, GraphFeatures>
where
    S::Batch: burn_gnn_sampling::SampledBatch<Id = u32>,
{
    let loader = Loader::new(sampler, seeds, 20).unwrap().with_features(features(g));
    loader.with_seed(5).with_workers(workers).with_prefetch(prefetch)
}

fn floats(x: &Option<Tensor<2>>) -> Vec<u32> {
    x.as_ref().unwrap().to_data().iter::<f32>().map(|x| x as u32).collect()
}

fn ints(x: &Option<Tensor<1, Int>>) -> Vec<i64> {
    x.as_ref().unwrap().to_data().iter::<i64>().collect()
}

/// What a batch says of itself: seeds, nodes, edges, and their features.
type Content = [Vec<u32>; 5];

fn subgraph(b: &LoadedBatch<Subgraph>) -> Content {
    let (nodes, edges) = (b.batch.node_ids[0].to_vec(), b.batch.edge_ids[0].to_vec());
    [own(b), nodes, edges, floats(&b.x(0).ok()), floats(&b.edge_x(0, 0).ok())]
}

fn khop(b: &LoadedBatch<KHop>) -> Content {
    let of = &b.batch.subgraph;
    [
        own(b),
        of.node_ids[0].to_vec(),
        of.edge_ids[0].to_vec(),
        floats(&b.x(0).ok()),
        floats(&b.edge_x(0, 0).ok()),
    ]
}

/// The same batches with any number of workers and batches prefetched, gone on with after any of them; features are
/// those of the ids.
fn check<S: Sampler<Seed = u32, Error = GraphError>>(
    g: &Graph,
    new: impl Fn() -> (S, Seeds),
    see: fn(&LoadedBatch<S::Batch>) -> Content,
) where
    S::Batch: burn_gnn_sampling::SampledBatch<Id = u32>,
{
    let load = |workers, prefetch| loader(g, new().0, new().1, workers, prefetch);
    let all = |workers, prefetch, epoch| {
        load(workers, prefetch).epoch(epoch).map(|b| see(&b.unwrap())).collect::<Vec<_>>()
    };
    let one = all(0, 2, 3);
    assert!(
        one.len() > 2 && one.iter().all(|b| b[1] == b[3] && b[2] == b[4] && !b[2].is_empty()),
        "rows of other ids"
    );
    assert_ne!(all(0, 2, 4), one, "another epoch");
    for (workers, prefetch) in [(1, 0), (1, 1), (2, 3), (5, 1)] {
        assert!(all(workers, prefetch, 3) == one, "{workers} workers, {prefetch} ahead");
    }
    for stop in 0..one.len() {
        let mut epoch = load(2, 2).epoch(3);
        epoch.by_ref().take(stop).for_each(drop);
        let state = epoch.state();
        assert_eq!(state, LoaderState { epoch: 3, batch: stop });
        let text = serde_json::to_string(&state).unwrap();
        drop(epoch); // with batches under way
        let rest: Vec<_> = load(3, 1)
            .resume(serde_json::from_str(&text).unwrap())
            .map(|b| see(&b.unwrap()))
            .collect();
        assert!(rest == one[stop..], "stopped at batch {stop}");
    }
    let whole = load(1, 2).with_drop_last().with_traversal(Traversal::ByOrder);
    assert_eq!(whole.epoch(0).count(), new().1.len() / 20);
}

#[test]
fn a_sampler_of_a_user_takes_one_impl() {
    let g = graph();
    check(&g, || (RandomSubgraph(g.clone()), seeds(&g)), subgraph);
    let loader = loader(&g, RandomSubgraph(g.clone()), seeds(&g), 2, 2);
    let mut epoch = loader.epoch(0);
    let mut counts = (0, 0, 0);
    for b in &mut epoch {
        let b = b.unwrap();
        assert_eq!(
            ints(&b.labels(0).ok()),
            b.seeds(0).unwrap().iter().map(|&v| i64::from(v) * 7 % 11).collect::<Vec<_>>()
        );
        assert_eq!(
            (b.num_seeds(), b.global_seeds, b.weight()),
            (b.num_seeds(), b.num_seeds(), 1.0)
        );
        let (nodes, edges) = (b.batch.graph.total_nodes(), b.batch.graph.total_edges());
        counts = (counts.0 + b.num_seeds(), counts.1 + edges, counts.2 + 4 * (nodes + edges));
    }
    let t = epoch.throughput();
    assert_eq!(
        (t.batches, t.seeds, t.edges, t.bytes, epoch.progress()),
        (6, counts.0, counts.1, counts.2, (110, 110))
    );
    // Burn's loader, a part of it.
    let part = DataLoader::slice(&loader, 10, 25);
    let mut met: Vec<u32> = part.iter().flat_map(|b| own(&b.unwrap())).collect();
    met.sort_unstable();
    assert_eq!(met, (10..25).map(|i| i * 2).collect::<Vec<u32>>());
    // Without features there are none.
    let plain = Loader::new(RandomSubgraph(g.clone()), seeds(&g), 20).unwrap();
    assert!(plain.epoch(0).all(|b| b.is_ok_and(|b| b.features().count() == 0
        && b.edge_x(0, 0).is_err()
        && b.labels(0).is_err())));
}

#[test]
fn parts_and_trees_are_loaded() {
    let g = graph();
    let parts: Vec<u32> = (0..NODES as u32).map(|v| v % 60).collect();
    let clusters = || {
        let sampler = ClusterSampler::new(&g, [("_N", &parts)]).unwrap();
        let seeds = sampler.seeds().unwrap();
        (sampler, seeds)
    };
    check(&g, clusters, subgraph);
    let mut met: Vec<u32> = loader(&g, clusters().0, clusters().1, 2, 1)
        .epoch(0)
        .flat_map(|b| subgraph(&b.unwrap())[1].clone())
        .collect();
    met.sort_unstable();
    assert_eq!(met, (0..NODES as u32).collect::<Vec<_>>(), "each node once an epoch");

    for method in [
        SaintMethod::Nodes { budget: 12 },
        SaintMethod::Edges { budget: 9 },
        SaintMethod::Walks { roots: 4, length: 3 },
    ] {
        let saint = || {
            let sampler = SaintSampler::new(&g, method).unwrap();
            let seeds = sampler.seeds(90).unwrap();
            (sampler, seeds)
        };
        check(&g, saint, subgraph);
    }

    let sampler = || NeighborSampler::new(&g, [3, 2]).unwrap();
    check(&g, || (ShadowSampler::new(sampler()), seeds(&g)), khop);
    let loader = loader(&g, ShadowSampler::new(sampler()), seeds(&g), 1, 2);
    let (first, key) = (loader.epoch(1).next().unwrap().unwrap(), SampleKey::new(5).at(1, 6));
    let alone = sampler().shadow([("_N", first.seeds(0).unwrap())], key).unwrap();
    assert_eq!(
        (first.batch.seeds, first.batch.subgraph.edge_ids[0].to_vec()),
        (alone.seeds, alone.subgraph.edge_ids[0].to_vec())
    );
    let timed = ShadowSampler::new(sampler().with_times("_E", &[1; 3_000]).unwrap());
    assert!(matches!(
        Loader::new(timed, seeds(&g), 20),
        Err(GraphError::Setting { arg: "times", .. })
    ));
    let given = || Seeds::nodes_before(&g, [("_N", [1], [1])]).unwrap();
    assert!(matches!(
        Loader::new(ShadowSampler::new(sampler()), given(), 20),
        Err(GraphError::Setting { arg: "times", .. })
    ));
    let timed = ShadowSampler::new(sampler().with_times("_E", &[1; 3_000]).unwrap());
    let first = Loader::new(timed, given(), 20).unwrap().epoch(0).next().unwrap().unwrap();
    assert_eq!(first.batch.subgraph.node_ids[0].to_vec(), [1]); // no edge is before its time
}

#[test]
fn walks_are_loaded() {
    let g = graph();
    let walks = || RandomWalk::new(&g, &["_E"; 4]).unwrap();
    let all = |workers| -> Vec<_> {
        let loader = Loader::new(walks().with_walks_per_start(3), seeds(&g), 20)
            .unwrap()
            .with_seed(2)
            .with_workers(workers);
        loader.epoch(1).map(|b| b.unwrap()).map(|b| (own(&b), b.batch)).collect()
    };
    let one = all(0);
    assert!(all(3) == one);
    for (i, (seeds, made)) in one.iter().enumerate() {
        let key = SampleKey::new(2).at(1, 6 + i as u64);
        assert_eq!((made.len(), made), (3 * seeds.len(), &walks().walk(seeds, 3, key).unwrap()));
    }
    let two = crate::common::typed(6, 4, 1);
    let walk = RandomWalk::new(&two, &["writes"]).unwrap();
    let papers = Seeds::nodes(&two, [("paper", [0])]).unwrap();
    assert!(matches!(Loader::new(walk, papers, 1), Err(GraphError::Setting { arg: "seeds", .. })));
}

/// Walks and neighbours of two more samplers: the same with any number of workers, and as calls of the sampler make
/// them.
#[test]
fn walks_of_node2vec_and_pinsage_are_loaded() {
    let g = graph();
    let node2vec = || Node2Vec::new(&g, "_E", 0.5, 2.0).unwrap();
    let walks = |workers| -> Vec<_> {
        let loader = Loader::new(node2vec().with_length(5).with_walks_per_start(2), seeds(&g), 20)
            .unwrap()
            .with_seed(2);
        loader
            .with_workers(workers)
            .epoch(1)
            .map(|b| b.unwrap())
            .map(|b| (own(&b), b.batch))
            .collect()
    };
    let one = walks(0);
    assert!(walks(3) == one && one.len() == 6);
    for (i, (seeds, made)) in one.iter().enumerate() {
        assert_eq!(
            made,
            &node2vec().walk(seeds, 2, 5, SampleKey::new(2).at(1, 6 + i as u64)).unwrap()
        );
    }
    let e = Loader::new(node2vec(), seeds(&g), 20).map(drop).unwrap_err();
    assert_eq!(
        e.to_string(),
        "`length`: expected at least one step (`Node2Vec::with_length`), got 0"
    );

    let pinsage = || PinSage::new(&g, &["_E"], 3, 0.3).unwrap();
    let visits = |workers| -> Vec<_> {
        let loader =
            Loader::new(pinsage().with_neighbors(8, 4), seeds(&g), 20).unwrap().with_seed(2);
        let mut epoch = loader.with_workers(workers).epoch(1);
        let all: Vec<_> = epoch.by_ref().map(|b| b.unwrap()).map(|b| (own(&b), b.batch)).collect();
        assert_eq!(epoch.throughput().edges, all.iter().map(|b| b.1.src.len()).sum::<usize>());
        all
    };
    let one = visits(0);
    assert!(visits(3) == one && one.iter().all(|(_, visits)| !visits.src.is_empty()));
    for (i, (seeds, made)) in one.iter().enumerate() {
        assert_eq!(
            made,
            &pinsage().neighbors(seeds, 8, 4, SampleKey::new(2).at(1, 6 + i as u64)).unwrap()
        );
    }
    assert!(matches!(
        Loader::new(pinsage(), seeds(&g), 20),
        Err(GraphError::Setting { arg: "neighbors", .. })
    ));
    let two = crate::common::typed(6, 4, 1);
    let papers = Seeds::nodes(&two, [("paper", [0])]).unwrap();
    let authors = PinSage::new(&two, &["writes", "written"], 1, 0.0).unwrap().with_neighbors(1, 1);
    assert!(matches!(
        Loader::new(authors, papers, 1),
        Err(GraphError::Setting { arg: "seeds", .. })
    ));
    let edges = Seeds::edges(&g, [("_E", [0])]).unwrap();
    assert!(matches!(
        Loader::new(pinsage().with_neighbors(1, 1), edges.clone(), 1),
        Err(GraphError::Setting { arg: "seeds", .. })
    ));
    assert!(matches!(
        Loader::new(node2vec().with_length(1), edges, 1),
        Err(GraphError::Setting { arg: "seeds", .. })
    ));
}
