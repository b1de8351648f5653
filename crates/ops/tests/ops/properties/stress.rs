//! Many threads run operators and samplers at once on graphs without cached data: no deadlock, and the results of a
//! single thread.

use std::collections::HashMap;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::{Graph, Ids, NodeIds, Relation, RelationStack, Stream, Subgraph};
use burn_gnn_ops::*;
use burn_gnn_sampling::RowType;
use burn_gnn_sampling::{
    ClusterSampler, GraphFeatures, HeteroLinkSampler, LinkSampler, Loader, MemoryRows, MiniBatch,
    NegativeBy, NegativePairs, NegativeSampler, NeighborSampler, Node2Vec, PinSage, RandomWalk,
    SampleKey, Seeds, Strategy,
};

use crate::families::{self, Typed};
use crate::{f64s, numbers};
use burn_gnn_testutil::apply_if;
use burn_gnn_testutil::{Watchdog, graphs};

const NODES: usize = 4000;
/// Large enough that layouts are built in parallel.
const EDGES: usize = 66_000;
const WIDTH: usize = 3;

/// A graph without derived data, and values that cache data with it.
struct Fresh {
    graph: Graph,
    /// The edges of the graph.
    typed: Typed,
    index: RelationalIndex,
    stack: RelationStack,
    rows: TypeIndex,
    scale: DegreeScale,
    ids: NodeIds,
}

impl Fresh {
    /// A copy that shares no cached data with `like`.
    fn new(like: &Typed) -> Self {
        let (src, dst) = (like.relation.src().to_vec(), like.relation.dst().to_vec());
        let graph = Graph::homogeneous(NODES, src, dst).unwrap();
        let typed = Typed {
            relation: graph.relations()[0].clone(),
            types: like.types.clone(),
            ids: like.ids.clone(),
        };
        let copy = || {
            Relation::from_coo(
                NODES,
                NODES,
                like.relation.dst().to_vec(),
                like.relation.src().to_vec(),
            )
            .unwrap()
        };
        Self {
            index: RelationalIndex::new(&typed.relation, &typed.types, 3),
            stack: RelationStack::new(NODES, &[NODES], &[(0, typed.relation.clone()), (0, copy())])
                .unwrap(),
            rows: TypeIndex::new(&typed.types, 3),
            scale: DegreeScale::new(
                &typed.types.iter().map(|&t| u32::from(t) + 1).take(NODES).collect::<Vec<_>>(),
                -0.5,
            ),
            ids: NodeIds::new(Ids::Int((0..NODES as i64).map(|i| i * i).collect())),
            graph,
            typed,
        }
    }
}

/// Function of a job: processes a fresh graph and returns the bits of its results.
type Run = Box<dyn Fn(&Fresh) -> Vec<u64> + Sync>;

/// A job on a fresh graph.
struct Work {
    name: String,
    run: Run,
}

impl Work {
    fn new(name: impl Into<String>, run: impl Fn(&Fresh) -> Vec<u64> + Sync + 'static) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }

    /// FNV-1a of the numbers.
    fn run(&self, on: &Fresh) -> u64 {
        (self.run)(on)
            .into_iter()
            .fold(0xcbf2_9ce4_8422_2325, |hash, x| (hash ^ x).wrapping_mul(0x0100_0000_01b3))
    }
}

fn wide(ids: &[u32]) -> Vec<u64> {
    ids.iter().map(|&v| u64::from(v)).collect()
}

fn bits(values: impl IntoIterator<Item = f64>) -> Vec<u64> {
    values.into_iter().map(f64::to_bits).collect()
}

fn content(batch: &MiniBatch) -> Vec<u64> {
    let block = |b: &burn_gnn_sampling::Block| {
        let relation = &b.relations()[0];
        let ids = [
            b.original_ids(0).to_vec(),
            b.original_edge_ids(0).to_vec(),
            wide(b.edge_ids(0)),
            wide(&b.in_degrees(0)),
        ]
        .concat();
        [ids, wide(relation.src()), wide(relation.dst()), wide(relation.csr().indices())].concat()
    };
    batch.blocks.iter().flat_map(block).collect()
}

fn subgraph(s: &Subgraph) -> Vec<u64> {
    let r = &s.graph.relations()[0];
    [
        wide(&s.node_ids[0].to_vec()),
        wide(&s.edge_ids[0].to_vec()),
        wide(r.src()),
        wide(r.dst()),
        wide(r.csc().indices()),
    ]
    .concat()
}

fn seeds() -> Vec<u32> {
    (0..60).map(|i| i * 66).collect()
}

/// Every operator with its gradients.
fn operators() -> Vec<Work> {
    let operator = |family: families::Family| {
        Work::new(family.name.clone(), move |f| {
            let values = family.values(&f.typed, 6);
            bits(family.run(&f.typed, &values, (&Device::flex(), DType::F32), false).concat())
        })
    };
    families::all(WIDTH).into_iter().map(operator).collect()
}

/// Jobs on cached data of shared values.
fn shared() -> Vec<Work> {
    let tensor = |seed, shape: [usize; 2]| {
        Tensor::<2>::from_data(
            TensorData::new(numbers(seed, shape[0] * shape[1]), shape),
            (&Device::flex().autodiff(), DType::F32),
        )
        .require_grad()
    };
    let relational = move |mean: bool| {
        Work::new(format!("a shared index of relations, mean: {mean}"), move |f| {
            let (x, w) = (tensor(1, [NODES, WIDTH]), tensor(2, [3 * WIDTH, 5]));
            let index = if mean { f.index.mean() } else { f.index.clone() };
            let y = relational_aggregate(
                &index,
                x.clone(),
                RelationalWeight::Full(w.clone().reshape([3, WIDTH, 5])),
                None,
            );
            let grads = y.clone().sum().backward();
            bits([f64s(x.grad(&grads).unwrap()), f64s(w.grad(&grads).unwrap()), f64s(y)].concat())
        })
    };
    let scaled = move |f: &Fresh| {
        let x = tensor(3, [NODES, WIDTH]);
        let options = AggregateOptions {
            source: Some(f.scale.clone()),
            destination: Some(f.scale.clone()),
            activation: Activation::Relu,
        };
        let y = weighted_aggregate(&f.typed.relation, x.clone(), None, None, &options);
        let grads = y.clone().sum().backward();
        bits([f64s(x.grad(&grads).unwrap()), f64s(y)].concat())
    };
    let by_degree = move |f: &Fresh| {
        let mut block = RelationData::new(f.typed.relation.clone());
        block.src_mut().insert("h", tensor(4, [NODES, WIDTH])).unwrap();
        let message = |e: &EdgeBatch| Ok(Fields::of("m", e.src::<2>("h")?));
        let reduce = function::by_degree(|n: &NodeBatch| {
            Ok(Fields::of("y", n.mailbox::<2>("m")?.dense::<3>()?.sum_dim(1).squeeze_dim::<2>(1)))
        });
        bits(f64s(block.update_all(message, reduce).unwrap().dst().get::<2>("y").unwrap()))
    };
    let reached = move |f: &Fresh| {
        let mut block = RelationData::new(f.typed.relation.clone());
        block.src_mut().insert("h", tensor(5, [NODES, WIDTH])).unwrap();
        let message = |e: &EdgeBatch| Ok(Fields::of("m", e.src::<2>("h")?));
        let reduce = |n: &NodeBatch| Ok(Fields::of("y", n.mailbox::<2>("m")?.reduce(Reduce::Sum)?));
        bits(f64s(block.update_all(message, reduce).unwrap().dst().get::<2>("y").unwrap()))
    };
    let on_a_block = move |f: &Fresh| {
        let batch = NeighborSampler::new(&f.graph, [4, 3])
            .unwrap()
            .sample([("_N", seeds())], SampleKey::new(6))
            .unwrap();
        let mut block = BlockData::new(&batch.blocks[0]);
        let x = tensor(6, [batch.blocks[0].src_nodes(0).len(), WIDTH]);
        block.insert("_N", "h", x.clone()).unwrap();
        let y = block.update_all(function::copy_u("h", "m"), function::max("m", "y")).unwrap();
        let y: Tensor<2> = y.dst("_N").unwrap().get("y").unwrap();
        let grads = y.clone().sum().backward();
        bits([f64s(x.grad(&grads).unwrap()), f64s(y)].concat())
    };
    let layouts = |f: &Fresh| {
        let r = &f.typed.relation;
        let sorted =
            [r.sorted_by_dst(), r.reverse().sorted_by_dst(), r.dst_order().unwrap().clone()]
                .map(|r| wide(r.src()));
        let degrees: Vec<u32> = r.in_degrees().chain(r.out_degrees()).collect();
        [
            sorted.concat(),
            wide(r.csr().indices()),
            wide(r.csc().edge_ids().unwrap()),
            wide(&degrees),
            wide(f.stack.degrees_by_edge()),
        ]
        .concat()
    };
    vec![
        relational(false),
        relational(true),
        Work::new("shared factors of degrees", scaled),
        Work::new("closures by degree", by_degree),
        Work::new("closures over reached nodes", reached),
        Work::new("messages on a block", on_a_block),
        Work::new("layouts", layouts),
        Work::new("edges by type", |f| {
            wide(f.rows.rows()).into_iter().chain(wide(f.index.edge_ids(1))).collect()
        }),
        Work::new("file ids", |f| {
            (0..200).map(|i| f.ids.number(i * i).map_or(0, u64::from)).collect()
        }),
    ]
}

fn samplers() -> Vec<Work> {
    let sample = |name: &str, make: fn(&Graph) -> NeighborSampler| {
        [true, false].map(|parallel| {
            Work::new(format!("sampler: {name}, parallel: {parallel}"), move |f| {
                let sampler = apply_if(!parallel, make(&f.graph), NeighborSampler::with_one_thread);
                content(&sampler.sample([("_N", seeds())], SampleKey::new(4)).unwrap())
            })
        })
    };
    let new = |g: &Graph| NeighborSampler::new(g, [4, 3]).unwrap();
    let weights = || (0..EDGES).map(|e| (e % 7) as f32).collect::<Vec<_>>();
    let times = || (0..EDGES as i64).map(|e| e * 7 % 1000).collect::<Vec<_>>();
    let before = move |f: &Fresh| {
        let sampler = new(&f.graph).with_times("_E", &times()).unwrap();
        let until: Vec<i64> = seeds().iter().map(|&v| i64::from(v) % 1000).collect();
        content(&sampler.sample_before([("_N", seeds(), until)], SampleKey::new(4)).unwrap())
    };
    let masked = move |f: &Fresh| {
        let mask: Vec<bool> = (0..EDGES).map(|e| e % 3 > 0).collect();
        content(
            &new(&f.graph)
                .with_mask("_E", &mask)
                .unwrap()
                .sample([("_N", seeds())], SampleKey::new(4))
                .unwrap(),
        )
    };
    let induced = move |f: &Fresh| {
        let dropped: Vec<u32> = (0..EDGES as u32).step_by(5).collect();
        let around =
            new(&f.graph).induced([("_N", seeds())], [("_E", dropped)], SampleKey::new(4)).unwrap();
        let each = new(&f.graph).shadow([("_N", seeds())], SampleKey::new(5)).unwrap();
        [subgraph(&around.subgraph), wide(&around.seeds[0]), subgraph(&each.subgraph)].concat()
    };
    let clusters = |f: &Fresh| {
        let parts: Vec<u32> = (0..NODES as u32).map(|v| v * 7 % 20).collect();
        let clusters = ClusterSampler::new(&f.graph, [("_N", parts)]).unwrap();
        let batches = clusters.epoch(3, SampleKey::new(4));
        batches[..2].iter().flat_map(|parts| subgraph(&clusters.subgraph(parts).unwrap())).collect()
    };
    let walks = move |f: &Fresh| {
        let walk = RandomWalk::new(&f.graph, &["_E"; 3])
            .unwrap()
            .walk(&seeds(), 2, SampleKey::new(1))
            .unwrap();
        let back =
            Node2Vec::new(&f.graph, "_E", 0.5, 2.0).unwrap().with_weights(&weights()).unwrap();
        let back = back.walk(&seeds(), 1, 4, SampleKey::new(2)).unwrap();
        let visits = PinSage::new(&f.graph, &["_E"], 2, 0.3)
            .unwrap()
            .neighbors(&seeds(), 3, 4, SampleKey::new(3))
            .unwrap();
        [wide(&walk.nodes), wide(&back.nodes), wide(&visits.src)].concat()
    };
    let negatives = |f: &Fresh| {
        let by_degree = NegativeSampler::new(&f.graph, "_E")
            .unwrap()
            .with_distribution(NegativeBy::InDegree)
            .unwrap();
        let pairs = by_degree.per_source(&seeds(), &seeds(), 3, SampleKey::new(3)).unwrap();
        let all =
            NegativeSampler::new(&f.graph, "_E").unwrap().global(50, SampleKey::new(3)).unwrap();
        [wide(&pairs.src), wide(&pairs.dst), wide(&all.src), wide(&all.dst)].concat()
    };
    let mut all: Vec<Work> = [
        sample("uniform", |g| NeighborSampler::new(g, [4, -1]).unwrap()),
        sample("disjoint", |g| NeighborSampler::new(g, [4, 3]).unwrap().with_disjoint()),
        sample("by in-degree", |g| {
            NeighborSampler::new(g, [4, 3]).unwrap().with_strategy(Strategy::InDegree).unwrap()
        }),
        sample("labor", |g| {
            NeighborSampler::new(g, [4, 3])
                .unwrap()
                .with_strategy(Strategy::Labor { layer_dependent: true })
                .unwrap()
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    for strategy in [Strategy::Weighted, Strategy::TopK] {
        all.push(Work::new(format!("sampler: {strategy:?}"), move |f| {
            let sampler = new(&f.graph)
                .with_weights("_E", &weights())
                .unwrap()
                .with_strategy(strategy)
                .unwrap();
            content(&sampler.sample([("_N", seeds())], SampleKey::new(4)).unwrap())
        }));
    }
    all.push(Work::new("sampler: latest", move |f| {
        let sampler = new(&f.graph)
            .with_times("_E", &times())
            .unwrap()
            .with_strategy(Strategy::Latest)
            .unwrap();
        let until = vec![i64::MAX; seeds().len()];
        content(&sampler.sample_before([("_N", seeds(), until)], SampleKey::new(4)).unwrap())
    }));
    all.push(Work::new("sampler: edges before the time of a seed", before));
    all.push(Work::new("sampler: masked", masked));
    all.push(Work::new("induced subgraphs", induced));
    all.push(Work::new("clusters", clusters));
    all.push(Work::new("walks", walks));
    all.push(Work::new("negatives", negatives));
    all
}

fn loaders() -> Vec<Work> {
    let nodes = |workers: usize, parallel: bool| {
        Work::new(format!("loader of nodes, {workers} workers, parallel: {parallel}"), move |f| {
            let x: Vec<f32> = (0..NODES * 2).map(|i| i as f32).collect();
            let sampler = apply_if(
                !parallel,
                NeighborSampler::new(&f.graph, [4, 3]).unwrap(),
                NeighborSampler::with_one_thread,
            );
            let features = GraphFeatures::new(&f.graph, &Device::flex());
            let features =
                features.with_nodes("_N", MemoryRows::new(&x, 2, RowType::F32).unwrap()).unwrap();
            let loader =
                Loader::new(sampler, Seeds::nodes(&f.graph, [("_N", seeds())]).unwrap(), 12)
                    .unwrap();
            let loader = loader.with_features(features).with_seed(9).with_workers(workers);
            let batches = loader.epoch(0).map(Result::unwrap);
            batches
                .flat_map(|b| [content(&b.batch), bits(f64s(b.x(0).unwrap()))].concat())
                .collect()
        })
    };
    let links = |workers: usize| {
        Work::new(format!("loader of links, {workers} workers"), move |f| {
            let sampler =
                LinkSampler::new(NeighborSampler::new(&f.graph, [4]).unwrap(), "_E").unwrap();
            let sampler = sampler.with_negatives(NegativePairs::PerSource(2));
            let edges: Vec<u32> = (0..40).map(|i| i * 1000).collect();
            let edges = Seeds::edges(&f.graph, [("_E", edges)]).unwrap();
            let loader = Loader::new(sampler, edges, 10).unwrap().with_workers(workers);
            loader.epoch(0).map(Result::unwrap).flat_map(|b| content(&b.batch.batch)).collect()
        })
    };
    let links_of_types = |workers: usize| {
        Work::new(format!("loader of links of several types, {workers} workers"), move |f| {
            let links = HeteroLinkSampler::new(NeighborSampler::new(&f.graph, [4]).unwrap());
            let links = links
                .with_type("_E", |links| Ok(links.with_negatives(NegativePairs::PerSource(2))))
                .unwrap();
            let edges: Vec<u32> = (0..40).map(|i| i * 900).collect();
            let edges = Seeds::edges(&f.graph, [("_E", edges)]).unwrap();
            let loader = Loader::new(links, edges, 10).unwrap().with_workers(workers);
            loader.epoch(0).map(Result::unwrap).flat_map(|b| content(&b.batch.batch)).collect()
        })
    };
    vec![
        nodes(0, true),
        nodes(2, true),
        nodes(2, false),
        nodes(5, true),
        links(2),
        links(3),
        links_of_types(0),
        links_of_types(3),
    ]
}

/// Duration of the test: `BURN_GNN_STRESS_SECONDS`, or a few seconds.
fn seconds() -> u64 {
    std::env::var("BURN_GNN_STRESS_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(3)
}

/// Every round uses a fresh graph, 1 to 16 threads and a pool of 1 to 8 workers. Every second thread runs its job in that
/// pool, where a waiting worker may run another job, and the remaining threads in the global pool.
#[test]
#[cfg_attr(miri, ignore = "large graphs")]
fn everything_at_once_on_fresh_graphs() {
    let dog = Watchdog::new();
    let like = Typed::new(&graphs::random(NODES, NODES, EDGES, 1.5));
    let works: Vec<Work> =
        [loaders(), samplers(), shared(), operators()].into_iter().flatten().collect();
    let few = loaders().len() + samplers().len() + shared().len();
    let pool =
        |n| rayon::ThreadPoolBuilder::new().num_threads(n).stack_size(16 << 20).build().unwrap();
    let one = pool(1);
    let mut expected: HashMap<usize, u64> = HashMap::new();
    let end = Instant::now() + Duration::from_secs(seconds());
    let mut round = 0;
    while round < 2 || Instant::now() < end {
        let draws = Stream::new(1, "stress", round);
        let draw = |row: usize, column: usize, n: usize| {
            (draws.uniform(row as u64, column as u64) * n as f64) as usize
        };
        let (threads, workers) = (1 + draw(0, 0, 16), 1 + draw(0, 1, 8));
        // Half of the jobs use no operator. In every second round all threads start with the same job.
        let pick = |row: usize, i: usize| match draw(row, 10 + i, 2) {
            0 => draw(row, 20 + i, few),
            _ => draw(row, 20 + i, works.len()),
        };
        let plan: Vec<Vec<usize>> = (1..=threads)
            .map(|t| {
                (0..3)
                    .map(|i| if i == 0 && round % 2 == 0 { pick(1, 0) } else { pick(t, i) })
                    .collect()
            })
            .collect();
        for &w in plan.iter().flatten() {
            let _task = dog.task("one thread", &works[w].name);
            expected.entry(w).or_insert_with(|| one.install(|| works[w].run(&Fresh::new(&like))));
        }
        let (fresh, start, inside) = (Fresh::new(&like), Barrier::new(threads), pool(workers));
        let run = |t: usize| {
            let what = |w: usize| {
                format!("round {round}, {threads} threads, pool of {workers}: {}", works[w].name)
            };
            let task = dog.task(format!("thread {t}"), "start");
            start.wait();
            for &w in &plan[t] {
                task.step(what(w));
                let got = if t.is_multiple_of(2) {
                    inside.install(|| works[w].run(&fresh))
                } else {
                    works[w].run(&fresh)
                };
                assert!(got == expected[&w], "{}: another result than that of one thread", what(w));
            }
        };
        std::thread::scope(|s| (0..threads).for_each(|t| _ = s.spawn(move || run(t))));
        round += 1;
    }
    println!("{round} rounds, {} kinds of work", expected.len());
}
