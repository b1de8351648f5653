//! Loaders: batches equal shares of those of one machine, with and without prefetch, resumed and dropped at any batch.

use std::borrow::Cow;
use std::sync::Arc;

use burn::tensor::{DType, Device, Int, Tensor};
use burn_gnn_dist::{
    Communicator, DistBatch, DistError, DistFeatures, DistGraph, DistHeteroLinkSampler,
    DistLinkSampler, DistSampler, Presampling, RankSampler, SplitBy, SplitOf,
};
use burn_gnn_graph::{Frame, Graph, GraphError};
use burn_gnn_sampling::{
    GraphFeatures, HeteroLinkSampler, LinkExclusion, LinkSampler, LoadedBatch, Loader, LoaderState,
    MemoryRows, NegativePairs, NeighborSampler, SampleKey, SampledBatch, Sampler, Seeds,
};

use crate::dist_graph::on_ranks;
use crate::graphs::{Sizes, kept, random, rows, scattered};
use crate::sampling::content;

const SOME: Sizes = Sizes { nodes: [40, 12, 5], edges: [60, 80, 150, 30, 8] };

fn seeds() -> Vec<u32> {
    (0..37).map(|i| i * 11 % 40).collect()
}

fn dist_seeds(d: &DistGraph) -> Result<Seeds<u64>, DistError> {
    d.node_seeds([("a", seeds().iter().map(|&v| u64::from(v)).collect::<Vec<_>>())])
}

fn dist_features(d: &DistGraph) -> Result<DistFeatures, DistError> {
    DistFeatures::new(d).with_nodes("a", "feat")?.with_nodes("c", "feat")
}

fn load(
    d: &DistGraph,
    features: DistFeatures,
    size: usize,
) -> Result<Loader<DistSampler, DistFeatures>, DistError> {
    Ok(Loader::new(DistSampler::new(d, [3, 2])?, dist_seeds(d)?, size)?.with_features(features))
}

fn loader(d: &DistGraph, prefetch: usize) -> Result<Loader<DistSampler, DistFeatures>, DistError> {
    Ok(load(d, dist_features(d)?.with_cache(4)?, 10)?.with_seed(9).with_prefetch(prefetch))
}

fn floats(x: &Option<Tensor<2>>) -> Vec<f32> {
    x.clone().map_or_else(Vec::new, |x| x.into_data().iter::<f32>().collect())
}

fn seeds_of<B, T: Clone>(b: &LoadedBatch<B, T>, t: usize) -> Vec<T> {
    b.own_seeds().ids()[t].clone()
}

type Share = (Vec<u64>, usize, Vec<Vec<u64>>, Vec<f32>, Vec<f32>);

fn share(b: &LoadedBatch<DistBatch, u64>) -> Share {
    (
        seeds_of(b, 0),
        b.global_seeds,
        content(&b.batch.mini),
        floats(&b.x(0).ok()),
        floats(&b.x(2).ok()),
    )
}

fn features_of(g: &Graph) -> GraphFeatures {
    let rows = |t: usize| MemoryRows::from_tensor(g.node_frames()[t].get::<2>("feat").unwrap());
    GraphFeatures::new(g, &Device::flex())
        .with_nodes("a", rows(0))
        .unwrap()
        .with_nodes("c", rows(2))
        .unwrap()
}

fn alone(g: &Graph, features: GraphFeatures) -> Loader<NeighborSampler, GraphFeatures> {
    let seeds = Seeds::nodes(g, [("a", seeds())]).unwrap();
    Loader::new(NeighborSampler::new(g, [3, 2]).unwrap(), seeds, 10)
        .unwrap()
        .with_features(features)
        .with_seed(9)
}

pub(crate) fn every_rank_has_its_share_of_the_batches_of_one_machine(n: usize) {
    let g = random(5, SOME);
    let parts = scattered(&g, n, 7);
    let ranks = on_ranks(&parts, |d| {
        let mut runs = vec![];
        for prefetch in [0, 1, 3] {
            let loader = loader(d, prefetch)?;
            assert_eq!(loader.num_batches(), 4);
            let epochs = (0..2).map(|e| {
                loader.epoch(e).map(|b| Ok(share(&b?))).collect::<Result<Vec<_>, DistError>>()
            });
            runs.push(epochs.collect::<Result<Vec<_>, _>>()?.concat());
        }
        assert!(runs[1] == runs[0] && runs[2] == runs[0], "batches depend on prefetching");
        Ok(runs.remove(0))
    });
    let sampler = NeighborSampler::new(&g, [3, 2]).unwrap();
    let batches: Vec<_> = (0..2)
        .flat_map(|e| alone(&g, features_of(&g)).epoch(e).map(Result::unwrap).collect::<Vec<_>>())
        .collect();
    for (i, batch) in batches.iter().enumerate() {
        let mut all = vec![];
        for (rank, (ids, global, content_here, a, c)) in
            ranks.iter().map(|r| r[i].clone()).enumerate()
        {
            assert_eq!(global, seeds_of(batch, 0).len());
            let old: Vec<u32> = ids.iter().map(|&id| parts.original_nids(0)[id as usize]).collect();
            assert!(
                old.iter().all(|&v| parts.assignment(0)[v as usize] as usize == rank),
                "a rank takes the seeds it owns"
            );
            // In the order of the batch.
            assert_eq!(
                old,
                seeds_of(batch, 0).iter().copied().filter(|v| old.contains(v)).collect::<Vec<_>>()
            );
            let key = SampleKey::new(9).at(i as u64 / 4, i as u64);
            let expected = sampler.sample([("a", &old)], key).unwrap();
            assert_eq!(content_here, content(&expected));
            let feat = |t: usize| {
                g.node_frames()[t]
                    .column("feat")
                    .unwrap()
                    .select(expected.input_nodes(t))
                    .to_data()
                    .iter::<f32>()
                    .collect::<Vec<_>>()
            };
            assert_eq!((a, c), (feat(0), feat(2)));
            all.extend(old);
        }
        all.sort_unstable();
        let mut expected = seeds_of(batch, 0);
        expected.sort_unstable();
        assert_eq!(all, expected, "batch {i} on {n} ranks");
    }
}

pub(crate) fn goes_on_from_any_batch_and_ends_early(n: usize) {
    let g = random(5, SOME);
    let parts = scattered(&g, n, 7);
    on_ranks(&parts, |d| {
        for prefetch in [0, 2] {
            let loader = loader(d, prefetch)?;
            let all: Vec<_> =
                loader.epoch(1).map(|b| Ok(share(&b?))).collect::<Result<_, DistError>>()?;
            for stop in 0..=4 {
                let mut epoch = loader.epoch(1);
                let begin: Vec<_> = epoch
                    .by_ref()
                    .take(stop)
                    .map(|b| Ok(share(&b?)))
                    .collect::<Result<_, DistError>>()?;
                let state = epoch.state();
                assert_eq!(state, LoaderState { epoch: 1, batch: stop });
                drop(epoch); // with batches under way
                let rest: Vec<_> = loader.resume(state).map(|b| Ok(share(&b?))).collect::<Result<
                    _,
                    DistError,
                >>(
                )?;
                assert!([begin, rest].concat() == all, "stopped at batch {stop}");
            }
            let epoch = loader.resume(LoaderState { epoch: 0, batch: 99 });
            assert_eq!(epoch.count(), 0);
        }
        Ok(())
    });
}

/// One rank drops its epoch: all ranks get an error, and none deadlocks.
pub(crate) fn an_epoch_that_one_rank_drops_is_an_error_on_the_others(n: usize) {
    let g = random(5, SOME);
    let parts = scattered(&g, n, 7);
    on_ranks(&parts, |d| {
        let loader = load(d, dist_features(d)?, 1)?.with_prefetch(1);
        let mut epoch = loader.epoch(0);
        epoch.next().transpose()?;
        if d.comm().rank() == 0 {
            drop(epoch);
        } else {
            let e = epoch.find_map(Result::err).map(|e| e.to_string()).unwrap_or_default();
            assert!(e.starts_with("rank 0: dropped its epoch before batch "), "{e}");
            assert!(epoch.next().is_none());
        }
        Ok(())
    });
}

pub(crate) fn caches_change_no_row_and_count(n: usize) {
    let g = random(5, SOME);
    let parts = scattered(&g, n, 7);
    on_ranks(&parts, |d| {
        let run = |rows: usize| {
            let loader = load(d, dist_features(d)?.with_cache(rows)?, 10)?.with_seed(9);
            let all: Vec<_> =
                loader.epoch(0).map(|b| Ok(share(&b?))).collect::<Result<_, DistError>>()?;
            let stats: Vec<_> = loader.features().caches().iter().map(|c| c.stats()).collect();
            Ok::<_, DistError>((all, stats))
        };
        let ((none, cold), (all, hot)) = (run(0)?, run(1000)?);
        assert!(none == all, "a cache changed a batch");
        assert!(cold.iter().all(|s| s.hits == 0 && s.rows == 0 && s.hit_rate() == 0.0));
        // Two hops lead beyond the neighbours of the part.
        for (cold, hot) in cold.iter().zip(&hot) {
            assert_eq!(hot.hits + hot.misses, cold.misses);
            assert_eq!((hot.bytes, hot.bytes_saved), (hot.rows * 12, hot.hits * 12));
        }
        assert!(hot[0].hits > 0 && hot[0].hit_rate() > 0.5, "{}", hot[0]);
        Ok(())
    });
}

pub(crate) fn rows_that_trial_batches_use_most_are_cached(n: usize) {
    let g = random(5, SOME);
    let parts = scattered(&g, n, 7);
    on_ranks(&parts, |d| {
        let run = |features: DistFeatures| {
            let loader = load(d, features, 10)?.with_seed(9);
            let all: Vec<_> = (0..8)
                .map(|e| {
                    loader.epoch(e).map(|b| Ok(share(&b?))).collect::<Result<Vec<_>, DistError>>()
                })
                .collect();
            let stats: Vec<_> = loader.features().caches().iter().map(|c| c.stats()).collect();
            Ok::<_, DistError>((all.into_iter().collect::<Result<Vec<_>, _>>()?.concat(), stats))
        };
        let trial = Presampling { batches: 100, batch_size: 10, seed: 3 };
        let (sampler, seeds) = (DistSampler::new(d, [3, 2])?, dist_seeds(d)?);
        let presampled =
            |rows, trial| dist_features(d)?.with_presampled_cache(rows, &sampler, &seeds, trial);
        let (plain, cold) = run(dist_features(d)?)?;
        let (all, kept) = run(presampled(8, trial)?)?;
        assert!(plain == all && cold.is_empty(), "a cache changed a batch");
        let (_, by_id) = run(presampled(8, Presampling { batches: 0, ..trial })?)?;
        assert!(by_id.iter().all(|s| s.rows == 0));
        assert!(kept[0].rows <= 8 && kept[0].hits > 0, "{}", kept[0]);
        // With room for all rows of the trial there are few misses: nodes far from all seeds of the one trial
        // epoch.
        let (_, every) = run(presampled(1000, trial)?)?;
        assert!(
            every[0].hit_rate() > 0.8 && every[0].hits > kept[0].hits,
            "{} against {}",
            every[0],
            kept[0]
        );
        // The cached rows are used more often than the same number of other rows.
        let share = kept[0].rows as f64 / every[0].rows as f64;
        assert!(
            kept[0].hit_rate() > share,
            "{}: no better than any {} of {}",
            kept[0],
            kept[0].rows,
            every[0].rows
        );
        let none = presampled(8, Presampling { batch_size: 0, ..trial });
        assert!(matches!(none, Err(DistError::Config { arg: "batch_size", .. })));
        Ok(())
    });
}

pub(crate) fn errors_of_one_rank_reach_all_ranks(n: usize) {
    let g = random(5, SOME);
    let parts = scattered(&g, n, 7);
    on_ranks(&parts, |d| {
        let bad = d.comm().rank() == 1;
        let new = |ntype: &str, seeds: &[u64]| d.node_seeds([(ntype, seeds)]).map(drop);
        assert!(new(if bad { "x" } else { "a" }, &[0]).is_err());
        assert!(new("a", &[if bad { 40 } else { 0 }]).is_err());
        let other = new("a", &[u64::from(bad)]).unwrap_err().to_string();
        assert!(other.contains("the list of seeds must be the same on all ranks"), "{other}");
        let zero = load(d, dist_features(d)?, 0);
        assert!(matches!(
            zero,
            Err(DistError::Graph(GraphError::Setting { arg: "batch_size", .. }))
        ));
        let features = || dist_features(d);
        assert!(
            features()?.with_nodes("a", "feat").is_err()
                && features()?.with_nodes("b", "label").is_ok()
        );
        let text = |e: Result<DistFeatures, DistError>| e.map(drop).unwrap_err().to_string();
        let e = text(features()?.with_labels("a", "feat"));
        assert!(
            e.starts_with("nodes of `a`: column `feat`: expected a Int tensor of rank 1")
                && e.contains("found a F32 tensor"),
            "{e}"
        );
        assert!(
            features()?.with_edges("self", "w").is_ok()
                && features()?.with_targets("a", "label").is_ok()
        );
        assert!(text(features()?.with_edges("self", "none")).contains("no column `none`"));
        assert!(features()?.with_labels("a", "label")?.with_labels("a", "trainer").is_err());
        assert!(features()?.with_edge_labels("self", "w").is_err());
        assert!(features()?.with_edge_labels("self", "m")?.with_edge_labels("self", "t").is_err());
        // Seeds of another kind on one rank only.
        let (nodes, edges) = (dist_seeds(d)?, d.edge_seeds([("self", [0])])?);
        let e = Loader::new(DistSampler::new(d, [1])?, if bad { edges } else { nodes }, 10)
            .err()
            .map(|e| e.to_string());
        assert!(
            e.as_ref().is_some_and(|e| e
                .contains("`seeds`: expected nodes (`Seeds::nodes`), got edges (`Seeds::edges`)")),
            "{e:?}"
        );
        Ok(())
    });
}

pub(crate) fn even_splits_and_links_load_as_well(n: usize) {
    let g = random(5, SOME);
    let parts = scattered(&g, n, 7);
    let seen = on_ranks(&parts, |d| {
        let split = d.node_split("a", SplitOf::All, SplitBy::Even)?;
        let loader = Loader::new(DistSampler::new(d, [2])?, d.split_seeds("a", &split)?, 3)?;
        assert_eq!(loader.num_batches() as u64, split.steps(3));
        let (mut ids, mut weights, mut globals) = (vec![], vec![], vec![]);
        for b in loader.epoch(0) {
            let b = b?;
            weights.push(b.weight());
            globals.push(b.global_seeds);
            ids.extend(seeds_of(&b, 0));
        }
        ids.sort_unstable();
        assert_eq!(ids, split.ids);

        let edges: Vec<u64> = (0..150).step_by(4).collect();
        let links = DistLinkSampler::new(DistSampler::new(d, [2])?, "self")?
            .with_negatives(NegativePairs::PerSource(2))?;
        let features = DistFeatures::new(d).with_nodes("a", "feat")?.with_cache(5)?;
        let loader =
            Loader::new(links, d.edge_seeds([("self", &edges)])?, 16)?.with_features(features);
        let mut all = vec![];
        for b in loader.epoch(0) {
            let b = b?;
            assert_eq!(b.batch.negative.src.len(), 2 * b.num_seeds());
            assert_eq!(b.x(0).unwrap().dims()[0], b.batch.batch.input_nodes(0).len());
            all.extend(seeds_of(&b, 0));
        }
        Ok((weights, globals, all))
    });
    for i in 0..seen[0].0.len() {
        assert!(
            (seen.iter().map(|s| s.0[i]).sum::<f64>() - 1.0).abs() < 1e-12,
            "weights of a batch add up to 1"
        );
        assert!(seen.iter().all(|s| s.1[i] == seen[0].1[i]));
    }
    let mut edges: Vec<u64> = seen.iter().flat_map(|s| s.2.clone()).collect();
    edges.sort_unstable();
    assert_eq!(edges, (0..150).step_by(4).collect::<Vec<u64>>());
}

type Numbers = Option<(Vec<usize>, Vec<f32>)>;
/// Features of nodes, of edges and of seed edges, labels.
type Read = (Vec<Numbers>, Vec<Vec<Numbers>>, Vec<Option<Vec<i64>>>);

/// Inputs of a network in addition to blocks.
macro_rules! read {
    ($batch:expr) => {{
        let batch = &$batch;
        let numbers = |x: &[Option<Tensor<2>>]| -> Vec<Numbers> {
            x.iter()
                .map(|x| {
                    x.as_ref().map(|t| (t.dims().to_vec(), t.to_data().iter::<f32>().collect()))
                })
                .collect()
        };
        let labels = batch
            .rows()
            .labels
            .iter()
            .map(|l: &Option<Tensor<1, Int>>| {
                l.as_ref().map(|l| l.to_data().iter::<i64>().collect())
            })
            .collect();
        let edge_x = batch
            .rows()
            .edge_x
            .iter()
            .chain([&batch.rows().seed_x, &batch.rows().targets])
            .map(|x| numbers(x))
            .collect();
        let read: Read = (numbers(&batch.rows().x), edge_x, labels);
        read
    }};
}

pub(crate) fn labels_and_edge_features_are_those_of_one_machine(n: usize) {
    let mut g = random(5, SOME);
    for e in 0..g.relations().len() {
        let ids: Vec<u64> = (0..g.relations()[e].num_edges() as u64).collect();
        let feat = rows(&format!("edges {e}"), &ids, 2, DType::F32, &Device::flex());
        g.edges_mut(e).unwrap().insert("feat", feat).unwrap();
    }
    let (own_type, other) =
        (g.schema().etype("self").unwrap(), g.schema().etype(("b", "to", "a")).unwrap());
    let edge_rows =
        |e: usize| MemoryRows::from_tensor(g.edge_frames()[e].get::<2>("feat").unwrap());
    // Integers and columns of rank 1 are read as rows of floats, too.
    let column = |frame: &Frame, name: &str| MemoryRows::from_column(frame, name).unwrap();
    let labels: Vec<i64> = (0..40).map(|i| i * 7 % 5).collect();
    let features = features_of(&g).with_edges(own_type, edge_rows(own_type)).unwrap();
    let nodes = alone(
        &g,
        features
            .with_edges(other, edge_rows(other))
            .unwrap()
            .with_labels("a", &labels)
            .unwrap()
            .with_targets("a", column(&g.node_frames()[0], "label"))
            .unwrap(),
    );

    let times: Vec<i64> =
        g.edge_frames()[own_type].column("t").unwrap().to_data().iter::<i64>().collect();
    let edges: Vec<u32> = (0..150).step_by(4).collect();
    let wide: Vec<u64> = edges.iter().map(|&e| u64::from(e)).collect();
    let pairs = NegativePairs::PerSource(2);
    // The share of a batch is then the batch of these edges.
    let exclusion = LinkExclusion::Nothing;
    let links = LinkSampler::new(NeighborSampler::new(&g, [3, 2]).unwrap(), own_type)
        .unwrap()
        .with_negatives(pairs);
    let links = links.with_exclusion(exclusion.clone()).unwrap();
    let none = GraphFeatures::new(&g, &Device::flex());
    let features = none
        .clone()
        .with_edges(own_type, edge_rows(own_type))
        .unwrap()
        .with_edge_labels(own_type, &times)
        .unwrap()
        .with_edge_targets(own_type, column(&g.edge_frames()[own_type], "w"))
        .unwrap();
    let links = Loader::new(links, Seeds::edges(&g, [(own_type, &edges)]).unwrap(), 16)
        .unwrap()
        .with_features(features);

    let others: Vec<u32> = (0..80).step_by(3).collect();
    let wide_others: Vec<u64> = others.iter().map(|&e| u64::from(e)).collect();
    let given = |edges: &[u32]| edges.iter().map(|&e| i64::from(e * 7 % 60)).collect::<Vec<_>>();
    let (given, given_others) = (given(&edges), given(&others));
    let sampler = NeighborSampler::new(&g, [3, 2]).unwrap().with_times(own_type, &times).unwrap();
    let one = |links: LinkSampler| links.with_negatives(pairs).with_exclusion(exclusion.clone());
    let several = HeteroLinkSampler::new(sampler)
        .with_type(own_type, one)
        .unwrap()
        .with_type(other, one)
        .unwrap();
    let of_types = [(own_type, &edges, &given), (other, &others, &given_others)];
    let features = none
        .with_nodes("a", MemoryRows::from_tensor(g.node_frames()[0].get::<2>("feat").unwrap()))
        .unwrap();
    let features = features.with_edges(own_type, edge_rows(own_type)).unwrap();
    let of_others: Vec<i64> =
        g.edge_frames()[other].column("t").unwrap().to_data().iter::<i64>().collect();
    let features = features.with_edge_labels(other, &of_others).unwrap();
    let several = Loader::new(several, Seeds::edges_before(&g, of_types).unwrap(), 16)
        .unwrap()
        .with_features(features);

    for parts in [scattered(&g, n, 7), kept(&g, n, 7)] {
        on_ranks(&parts, |d| {
            let features = dist_features(d)?
                .with_edges("self", "feat")?
                .with_edges(("b", "to", "a"), "feat")?;
            let features = features.with_labels("a", "label")?.with_targets("a", "label")?;
            let loader = load(d, features, 10)?.with_seed(9);
            for (i, batch) in loader.epoch(1).enumerate() {
                let batch = batch?;
                let position = |id: &u64| {
                    seeds().iter().position(|v| *v == parts.original_nids(0)[*id as usize]).unwrap()
                        as u32
                };
                let positions: Vec<u32> = seeds_of(&batch, 0).iter().map(position).collect();
                let want = nodes.batch(&positions, SampleKey::new(9).at(1, 4 + i as u64)).unwrap();
                assert_eq!(read!(batch), read!(want), "batch {i} of nodes");
            }

            let one = |links: DistLinkSampler| {
                links.with_negatives(pairs)?.with_exclusion(exclusion.clone())
            };
            let sampler = DistSampler::new(d, [3, 2])?;
            let own = one(DistLinkSampler::new(sampler.clone(), "self")?)?;
            let features =
                DistFeatures::new(d).with_edges("self", "feat")?.with_edge_labels("self", "t")?;
            let features = features.with_edge_targets("self", "w")?;
            let loader = Loader::new(own, d.edge_seeds([("self", &wide)])?, 16)?
                .with_features(features)
                .with_seed(9);
            for (i, batch) in loader.epoch(0).enumerate() {
                let batch = batch?;
                let positions: Vec<u32> =
                    seeds_of(&batch, own_type).iter().map(|&id| id as u32 / 4).collect();
                let want = links.batch(&positions, SampleKey::new(9).at(0, i as u64)).unwrap();
                assert!(batch.seed_x(own_type).is_ok_and(|x| x.dims() == [positions.len(), 2]));
                assert_eq!(read!(batch), read!(want), "batch {i} of edges");
            }

            // Of two types, each with times that are given.
            let sampler = sampler.with_times("self", "t")?;
            let hetero = DistHeteroLinkSampler::new(sampler)
                .with_type("self", one)?
                .with_type(("b", "to", "a"), one)?;
            let seeds = [(own_type, &wide, &given), (other, &wide_others, &given_others)];
            let features =
                DistFeatures::new(d).with_nodes("a", "feat")?.with_edges("self", "feat")?;
            let features = features.with_edge_labels(("b", "to", "a"), "t")?.with_cache(4)?;
            let loader = Loader::new(hetero, d.edge_seeds_before(seeds)?, 16)?
                .with_features(features)
                .with_seed(9);
            assert_eq!(loader.num_batches(), (wide.len() + wide_others.len()).div_ceil(16));
            for (i, batch) in loader.epoch(0).enumerate() {
                let batch = batch?;
                let places = seeds_of(&batch, own_type).into_iter().map(|id| id as u32 / 4);
                let places = places.chain(
                    seeds_of(&batch, other)
                        .into_iter()
                        .map(|id| (wide.len() + id as usize / 3) as u32),
                );
                let want = several
                    .batch(&places.collect::<Vec<_>>(), SampleKey::new(9).at(0, i as u64))
                    .unwrap();
                assert_eq!(
                    content(&batch.batch.batch.mini),
                    content(&want.batch.batch),
                    "batch {i} of two types"
                );
                for (links, want) in batch.batch.links.iter().zip(&want.batch.links) {
                    let edges: Vec<u64> = want.edges.iter().map(|&e| u64::from(e)).collect();
                    assert_eq!(
                        (&links.edges, &links.positive, &links.negative),
                        (&edges, &want.positive, &want.negative)
                    );
                    assert_eq!(
                        (&links.is_strict, links.labels()),
                        (&want.is_strict, want.labels())
                    );
                }
                assert_eq!(read!(batch), read!(want), "batch {i} of two types");
            }
            Ok(())
        });
    }
}

/// A user-defined sampler: batches of another sampler, and the number of seeds of all ranks.
#[derive(Clone)]
struct Counting(DistSampler);

struct Counted {
    batch: DistBatch,
    seeds: f64,
}

impl SampledBatch for Counted {
    type Id = u64;

    fn nodes(&self, ntype: usize) -> Cow<'_, [u64]> {
        self.batch.nodes(ntype)
    }
}

impl Sampler for Counting {
    type Seed = u64;
    type Batch = Counted;
    type Error = DistError;
    const IN_ORDER: bool = true;

    fn sample_batch(&self, seeds: &Seeds<u64>, key: SampleKey) -> Result<Counted, DistError> {
        let batch = self.0.sample_batch(seeds, key)?;
        let mut counts = [batch.mini.seeds.iter().map(Vec::len).sum::<usize>() as f64];
        self.0.graph().comm().all_reduce("seeds", &mut counts)?;
        Ok(Counted { batch, seeds: counts[0] })
    }
    fn own_seeds(&self, seeds: Seeds<u64>, batch: &Counted) -> Seeds<u64> {
        self.0.own_seeds(seeds, &batch.batch)
    }
    fn for_thread(&self) -> Result<Option<Self>, DistError> {
        self.duplicate().map(Some)
    }
    fn before_batch(&self, batch: usize, wanted: bool) -> Result<(), DistError> {
        self.others_go_on(batch, wanted)
    }
}

impl RankSampler for Counting {
    fn graph(&self) -> &DistGraph {
        self.0.graph()
    }
    fn with_communicator(self, comm: Arc<dyn Communicator>) -> Self {
        Self(self.0.with_communicator(comm))
    }
}

pub(crate) fn a_sampler_of_a_user_is_loaded_in_order(n: usize) {
    let g = random(5, SOME);
    let parts = scattered(&g, n, 7);
    on_ranks(&parts, |d| {
        let new = |workers, prefetch| {
            let loader = Loader::new(Counting(DistSampler::new(d, [3, 2])?), dist_seeds(d)?, 10)?
                .with_features(dist_features(d)?);
            Ok::<_, DistError>(loader.with_seed(9).with_workers(workers).with_prefetch(prefetch))
        };
        let see = |b: Result<LoadedBatch<Counted, u64>, DistError>| {
            let b = b?;
            assert_eq!(b.batch.seeds as usize, b.global_seeds);
            assert_eq!(b.x(0).unwrap().dims()[0], b.batch.batch.input_nodes(0).len());
            Ok::<_, DistError>((
                seeds_of(&b, 0),
                content(&b.batch.batch.mini),
                floats(&b.x(0).ok()),
            ))
        };
        let all = new(0, 2)?.epoch(1).map(see).collect::<Result<Vec<_>, _>>()?;
        assert_eq!(all.len(), 4);
        // Batches of the library's sampler over another communicator.
        let plain = loader(d, 0)?
            .epoch(1)
            .map(|b| Ok(content(&b?.batch.mini)))
            .collect::<Result<Vec<_>, DistError>>()?;
        assert!(all.iter().map(|b| &b.1).eq(&plain));
        // Several workers would call in any order.
        for (workers, prefetch) in [(1, 1), (1, 9), (4, 2)] {
            let loader = new(workers, prefetch)?;
            for stop in 0..=4 {
                let mut epoch = loader.epoch(1);
                let begin = epoch.by_ref().take(stop).map(see).collect::<Result<Vec<_>, _>>()?;
                let state = epoch.state();
                drop(epoch); // with batches under way
                let rest = loader.resume(state).map(see).collect::<Result<Vec<_>, _>>()?;
                assert!(
                    [begin, rest].concat() == all,
                    "{workers} workers, stopped at batch {stop}"
                );
            }
            // Two concurrent epochs, each with a separate communicator.
            let (mut one, mut other) = (loader.epoch(1), loader.epoch(1));
            for want in &all {
                let both = [one.next(), other.next()].map(|b| see(b.unwrap()));
                assert!(both.into_iter().all(|b| b.is_ok_and(|b| b == *want)));
            }
            drop((one, other));
            assert_eq!(loader.with_drop_last().epoch(0).count(), 3);
        }
        Ok(())
    });
}
