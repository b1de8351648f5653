//! Batches sampled over parts equal those of one machine.

use burn_gnn_dist::{
    DistBatch, DistError, DistGraph, DistSampler, Failure, PartitionConfig, PartitionMethod,
    PartitionedGraph, partition_graph,
};
use burn_gnn_graph::Graph;
use burn_gnn_ops::GraphView;
use burn_gnn_sampling::{Fanouts, MiniBatch, NeighborSampler, SampleKey, Strategy};
use proptest::prelude::*;
use proptest::strategy::Strategy as _;

use crate::dist_graph::on_ranks;
use crate::graphs::{Sizes, kept, random, scattered, sizes};
use crate::ranks;

/// The complete content of a batch and the inputs of layers, in ids of the input graph.
pub(crate) fn content(batch: &MiniBatch) -> Vec<Vec<u64>> {
    let wide = |ids: &[u32]| ids.iter().map(|&v| u64::from(v)).collect::<Vec<_>>();
    let mut all: Vec<Vec<u64>> = batch.seeds.iter().map(|s| wide(s)).collect();
    for b in &batch.blocks {
        let (types, etypes) = (b.schema().ntypes().len(), b.relations().len());
        all.extend((0..types).map(|t| b.original_ids(t).to_vec()));
        all.extend((0..types).map(|t| vec![b.dst_nodes(t).len() as u64, b.total_nodes(t)]));
        all.extend((0..etypes).map(|e| b.original_edge_ids(e).to_vec()));
        all.extend(b.relations().iter().flat_map(|r| [wide(r.src()), wide(r.dst())]));
        all.extend((0..etypes).flat_map(|e| {
            [wide(&b.in_degrees(e)), wide(&b.out_degrees(e)), vec![GraphView::total_edges(b, e)]]
        }));
        all.extend((0..etypes).filter_map(|e| b.src_in_degrees(e)).map(|degrees| wide(&degrees)));
    }
    all
}

/// Settings of both samplers.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    fanouts: Vec<i64>,
    per_relation: bool,
    replace: bool,
    strategy: Strategy,
    masked: bool,
}

fn plans() -> impl proptest::strategy::Strategy<Value = Plan> {
    let strategy = prop_oneof![
        3 => Just(Strategy::Uniform),
        2 => Just(Strategy::Weighted),
        1 => Just(Strategy::InDegree),
        1 => Just(Strategy::TopK),
        1 => Just(Strategy::Latest),
        1 => Just(Strategy::Labor { layer_dependent: false }),
    ];
    let fanouts = proptest::collection::vec(prop_oneof![Just(-1i64), Just(0), 1i64..6], 0..4);
    (fanouts, any::<bool>(), any::<bool>(), strategy, any::<bool>()).prop_map(
        |(fanouts, per_relation, replace, strategy, masked)| {
            let draws =
                matches!(strategy, Strategy::Uniform | Strategy::Weighted | Strategy::InDegree);
            Plan { fanouts, per_relation, replace: replace && draws, strategy, masked }
        },
    )
}

impl Plan {
    fn fanouts(&self, g: &Graph) -> Fanouts {
        if !self.per_relation {
            return self.fanouts.clone().into();
        }
        // One more for each further relation, and 0 for every fourth.
        let of = |e: usize| {
            self.fanouts
                .iter()
                .map(|&f| if e % 4 == 3 { 0 } else { (f + e as i64).max(-1) })
                .collect::<Vec<_>>()
        };
        Fanouts::per_relation(
            g.schema().etypes().iter().enumerate().map(|(e, t)| (t.clone(), of(e))),
        )
    }
    /// Whether the strategy needs times, so that seeds have times too.
    fn needs_times(&self) -> bool {
        self.strategy == Strategy::Latest
    }
    fn alone(&self, g: &Graph, timed: bool) -> NeighborSampler {
        let mut s = NeighborSampler::new(g, self.fanouts(g)).unwrap();
        for e in 0..g.relations().len() {
            let column = |name: &str| g.edge_frames()[e].column(name).unwrap().to_data();
            // `InDegree` sets weights itself.
            if matches!(self.strategy, Strategy::Weighted | Strategy::TopK) {
                s = s.with_weights(e, &column("w").iter::<f32>().collect::<Vec<_>>()).unwrap();
            }
            if timed {
                s = s.with_times(e, &column("t").iter::<i64>().collect::<Vec<_>>()).unwrap();
            }
            if self.masked {
                s = s
                    .with_mask(e, &column("m").iter::<i64>().map(|m| m != 0).collect::<Vec<_>>())
                    .unwrap();
            }
        }
        s = s.with_strategy(self.strategy).unwrap();
        if self.replace { s.with_replacement().unwrap() } else { s }
    }
    fn on_parts(&self, g: &Graph, d: &DistGraph, timed: bool) -> Result<DistSampler, DistError> {
        let mut s = DistSampler::new(d, self.fanouts(g))?;
        for e in 0..g.relations().len() {
            if matches!(self.strategy, Strategy::Weighted | Strategy::TopK) {
                s = s.with_weights(e, "w")?;
            }
            if timed {
                s = s.with_times(e, "t")?;
            }
            if self.masked {
                s = s.with_mask(e, "m")?;
            }
        }
        s = s.with_strategy(self.strategy)?;
        if self.replace { s.with_replacement() } else { Ok(s) }
    }
}

/// Type-wise ids of nodes of the input graph.
fn renumbered(parts: &PartitionedGraph, t: usize, originals: &[u32]) -> Vec<u64> {
    let find = |v: &u32| parts.original_nids(t).iter().position(|o| o == v).unwrap() as u64;
    originals.iter().map(find).collect()
}

/// Nodes and edges by type-wise id match their original ids.
fn ids_agree(parts: &PartitionedGraph, d: &DistGraph, batch: &DistBatch) {
    for (i, b) in batch.mini.blocks.iter().enumerate() {
        for t in 0..d.ntypes().len() {
            let ids = &batch.input_nodes(t)[..b.src_nodes(t).len()];
            assert!(
                ids.iter()
                    .zip(b.original_ids(t).iter())
                    .all(|(&id, &o)| u64::from(parts.original_nids(t)[id as usize]) == o)
            );
        }
        for e in 0..d.etypes().len() {
            let pairs = batch.edge_ids(i, e).iter().zip(b.original_edge_ids(e).iter());
            assert!(
                pairs.clone().all(|(&id, &o)| u64::from(parts.original_eids(e)[id as usize]) == o)
            );
            assert_eq!(pairs.len(), b.relations()[e].num_edges());
        }
    }
}

/// Random seeds on all ranks, including seeds of other owners, at the same time.
fn same_batches(g: &Graph, parts: &PartitionedGraph, plan: &Plan, seed: u64) {
    let timed = plan.needs_times();
    let alone = plan.alone(g, timed);
    let key = SampleKey::new(seed).at(seed % 3, seed % 11);
    on_ranks(parts, |d| {
        let sampler = plan.on_parts(g, d, timed)?;
        assert_eq!(sampler.hops(), plan.fanouts.len());
        let s = burn_gnn_ops::Stream::new(seed, "seeds", d.comm().rank() as u64);
        let pick = |t: usize, count: u64| -> Vec<u32> {
            let n = g.node_counts()[t];
            if n == 0 {
                vec![]
            } else {
                (0..count).map(|i| (s.uniform(i, t as u64) * n as f64) as u32).collect()
            }
        };
        // Some repeat; one rank has none.
        let count = if d.comm().rank() == 3 { 0 } else { 6 };
        let old: [Vec<u32>; 3] = [pick(0, count), pick(1, 2), pick(2, count / 2)];
        let names = g.schema().ntypes();
        let new: Vec<Vec<u64>> = (0..3).map(|t| renumbered(parts, t, &old[t])).collect();
        let times: Vec<Vec<i64>> = old.iter().map(|ids| vec![i64::MAX; ids.len()]).collect();
        let (batch, expected) = if timed {
            assert!(sampler.sample(names.iter().zip(&new), key).is_err());
            (
                sampler.sample_before((0..3).map(|t| (&names[t], &new[t], &times[t])), key)?,
                alone.sample_before((0..3).map(|t| (&names[t], &old[t], &times[t])), key).unwrap(),
            )
        } else {
            (
                sampler.sample(names.iter().zip(&new), key)?,
                alone.sample(names.iter().zip(&old), key).unwrap(),
            )
        };
        assert_eq!(content(&batch.mini), content(&expected));
        ids_agree(parts, d, &batch);
        #[allow(clippy::needless_range_loop)] // Over several lists at once.
        for t in 0..3 {
            let rows: Vec<u64> =
                batch.mini.seeds[t].iter().map(|&r| batch.output_nodes(t)[r as usize]).collect();
            assert_eq!(rows, new[t]);
        }
        Ok(())
    });
}

/// [`same_batches`] with a separate tree for each seed and, if `timed`, a time for each.
fn same_trees(g: &Graph, parts: &PartitionedGraph, plan: &Plan, timed: bool, seed: u64) {
    let timed = timed || plan.needs_times();
    let alone = plan.alone(g, timed).with_disjoint();
    let key = SampleKey::new(seed).at(seed % 3, seed % 11);
    on_ranks(parts, |d| {
        let sampler = plan.on_parts(g, d, timed)?.with_disjoint();
        let s = burn_gnn_ops::Stream::new(seed, "seeds", d.comm().rank() as u64);
        let count = if d.comm().rank() == 3 { 0 } else { 4 };
        let pick = |t: usize| -> (Vec<u32>, Vec<i64>) {
            let count = if g.node_counts()[t] == 0 { 0 } else { count };
            let one = |i: u64, column: u64, n: f64| s.uniform(i, column + t as u64) * n;
            // A node may be a seed at two times.
            (0..count)
                .map(|i| (one(i / 2, 0, g.node_counts()[t] as f64) as u32, one(i, 3, 60.0) as i64))
                .unzip()
        };
        let (old, times): (Vec<Vec<u32>>, Vec<Vec<i64>>) = (0..3).map(pick).unzip();
        let names = g.schema().ntypes();
        let new: Vec<Vec<u64>> = (0..3).map(|t| renumbered(parts, t, &old[t])).collect();
        let (batch, expected) = if timed {
            let batch =
                sampler.sample_before((0..3).map(|t| (&names[t], &new[t], &times[t])), key)?;
            (
                batch,
                alone.sample_before((0..3).map(|t| (&names[t], &old[t], &times[t])), key).unwrap(),
            )
        } else {
            (
                sampler.sample(names.iter().zip(&new), key)?,
                alone.sample(names.iter().zip(&old), key).unwrap(),
            )
        };
        assert_eq!(content(&batch.mini), content(&expected));
        assert_eq!(batch.mini.roots, expected.roots);
        ids_agree(parts, d, &batch);
        Ok(())
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn batches_are_those_of_one_machine(sizes in sizes(), plan in plans(), parts in 1usize..5, seed in 0u64..1_000_000, reshuffle: bool) {
        let g = random(seed, sizes);
        same_batches(&g, &if reshuffle { scattered(&g, parts, seed) } else { kept(&g, parts, seed) }, &plan, seed);
    }

    /// Seeds with separate trees, some with times, which are sent along with the frontier.
    #[test]
    fn trees_and_times_are_those_of_one_machine(sizes in sizes(), plan in plans(), parts in 1usize..5, seed in 0u64..1_000_000, timed: bool) {
        let g = random(seed, sizes);
        same_trees(&g, &scattered(&g, parts, seed), &plan, timed && plan.strategy != Strategy::InDegree, seed);
    }

    /// Edges that their owners exclude are not sampled for the seeds of any rank.
    #[test]
    fn excluded_edges_are_excluded_for_all(sizes in sizes(), plan in plans(), parts in 1usize..4, seed in 0u64..1_000_000) {
        prop_assume!(!plan.needs_times());
        let g = random(seed, sizes);
        let parts = scattered(&g, parts, seed);
        let all: Vec<Vec<u32>> = g.relations().iter().map(|r| (0..r.num_edges() as u32).filter(|e| e % 3 == 0).collect()).collect();
        let seeds: Vec<u32> = (0..g.node_counts()[0] as u32).step_by(2).collect();
        let key = SampleKey::new(seed);
        let expected = plan.alone(&g, false).sample_excluding([("a", &seeds)], all.iter().enumerate(), key).unwrap();
        on_ranks(&parts, |d| {
            let own = |e: usize| -> Vec<u64> {
                let own = d.own_edges(e).unwrap().into_iter();
                own.filter(|&id| parts.original_eids(e)[id as usize].is_multiple_of(3)).collect()
            };
            let own: Vec<Vec<u64>> = (0..all.len()).map(own).collect();
            let batch = plan.on_parts(&g, d, false)?.sample_excluding([("a", renumbered(&parts, 0, &seeds))], &own, key)?;
            assert_eq!(content(&batch.mini), content(&expected));
            Ok(())
        });
    }
}

const SOME: Sizes = Sizes { nodes: [30, 12, 5], edges: [60, 40, 90, 10, 8] };

fn some_plans() -> [Plan; 3] {
    let plan = |fanouts: &[i64], replace, strategy| Plan {
        fanouts: fanouts.to_vec(),
        per_relation: replace,
        replace,
        strategy,
        masked: !replace,
    };
    [
        plan(&[3, 2], false, Strategy::Uniform),
        plan(&[4, -1], true, Strategy::Weighted),
        plan(&[2, 2, 2], false, Strategy::InDegree),
    ]
}

/// [`batches_are_those_of_one_machine`] for some plans.
pub(crate) fn some_batches_are_those_of_one_machine(n: usize) {
    let g = random(4, SOME);
    for (plan, seed) in some_plans().iter().zip(8..) {
        same_batches(&g, &scattered(&g, n, seed), plan, seed);
        same_batches(&g, &kept(&g, n, seed), plan, seed);
    }
}

/// [`trees_and_times_are_those_of_one_machine`] for some plans.
pub(crate) fn some_trees(n: usize) {
    let g = random(4, SOME);
    for (plan, seed) in some_plans().iter().zip(8..) {
        for timed in
            [false, true].into_iter().filter(|timed| !timed || plan.strategy != Strategy::InDegree)
        {
            same_trees(&g, &scattered(&g, n, seed), plan, timed, seed);
            same_trees(&g, &kept(&g, n, seed), plan, timed, seed);
        }
    }
}

/// For any partitioning and depth of the halo, from files, with and without reshuffling.
pub(crate) fn batches_do_not_depend_on_the_partitioning(n: usize) {
    let g = random(4, SOME);
    let key = SampleKey::new(8);
    let seeds: Vec<u32> = (0..30).collect();
    let expected = content(
        &NeighborSampler::new(&g, [4, 3, 2]).unwrap().sample([("a", &seeds)], key).unwrap(),
    );
    for method in [PartitionMethod::Metis, PartitionMethod::Random] {
        for (hops, reshuffle) in [(1, true), (2, true), (1, false), (2, false)] {
            let dir = ranks::shared_dir();
            let config = PartitionConfig::new("g", n)
                .with_method(method.clone())
                .with_num_hops(hops)
                .with_reshuffle(reshuffle);
            let json = ranks::written(&partition_graph(&g, &config).unwrap(), &dir);
            let batches = ranks::run(n, |comm| {
                let d = DistGraph::open("g", &json, comm)?;
                let seeds =
                    d.find_nodes("a", &seeds.iter().map(|&v| u64::from(v)).collect::<Vec<_>>())?;
                Ok::<_, DistError>(content(
                    &DistSampler::new(&d, [4, 3, 2])?.sample([("a", &seeds)], key)?.mini,
                ))
            });
            assert!(batches.iter().all(|b| *b == expected), "{method:?}, {hops} hops");
        }
    }
}

/// Another key gives another batch, so the property above does not hold trivially.
pub(crate) fn another_key_is_another_batch(n: usize) {
    let g = random(1, SOME);
    let parts = scattered(&g, n, 1);
    on_ranks(&parts, |d| {
        let sampler = DistSampler::new(d, [1, 1])?;
        let all: Vec<u64> = (0..30).collect();
        let sample = |key| Ok::<_, DistError>(content(&sampler.sample([("a", &all)], key)?.mini));
        let one = sample(SampleKey::new(1))?;
        assert_eq!(one, sample(SampleKey::new(1))?);
        assert_ne!(one, sample(SampleKey::new(2))?);
        assert_ne!(one, sample(SampleKey::new(1).at(0, 1))?);
        assert_eq!(
            one,
            content(
                &sampler.clone().with_one_thread()?.sample([("a", &all)], SampleKey::new(1))?.mini
            )
        );
        Ok(())
    });
}

pub(crate) fn invalid_requests_are_errors_on_all_ranks(n: usize) {
    let g = random(1, SOME);
    let parts = scattered(&g, n, 1);
    on_ranks(&parts, |d| {
        let (sampler, bad) = (DistSampler::new(d, [2])?, d.comm().rank() == 2);
        let outside = if bad { 30 } else { 0 };
        let e = sampler.sample([("a", [outside])], SampleKey::new(0)).unwrap_err();
        assert_eq!(matches!(e, DistError::OutOfRange { id: 30, bound: 30, .. }), bad, "{e:?}");
        assert!(bad || matches!(&e, DistError::Rank(Failure { rank: 2, .. })), "{e:?}");
        let not_own = if bad { vec![vec![]; 9] } else { vec![] };
        assert!(sampler.sample_excluding([("a", [0])], &not_own, SampleKey::new(0)).is_err());
        let other = (d.own_edges("self")?.last().map_or(0, |id| id + 1)) % 90;
        let edges: Vec<Vec<u64>> = (0..5)
            .map(|e| if bad && d.etypes()[e].relation == "self" { vec![other] } else { vec![] })
            .collect();
        let e = sampler.sample_excluding([("a", [0])], &edges, SampleKey::new(0)).unwrap_err();
        assert_eq!(matches!(e, DistError::NotOwned { .. }), bad, "{e:?}");
        assert!(sampler.sample([("a", [0])], SampleKey::new(0)).is_ok());
        assert!(
            DistSampler::new(d, [-2]).is_err()
                && sampler.clone().with_weights("self", "nope").is_err()
        );
        Ok(())
    });
}
