//! Link sampling over all parts.

use std::sync::Arc;

use burn_gnn_graph::{EdgeKey, Graph, GraphError};
use burn_gnn_sampling::internal::{CorruptedPairs, add_parallel_edges};
use burn_gnn_sampling::{
    LinkBatch, LinkExclusion, LinkRows, NegativePairs, NegativeSampler, SampleKey, Sampler,
    SeedKind, SeedLinks, Seeds,
};

use super::batch::DistBatch;
use super::dist_sampler::DistSampler;
use super::global_negatives::GlobalNegatives;
use crate::comm::Communicator;
use crate::error::DistError;
use crate::exchange::{Pack, Unpack, agree, round_trip};
use crate::graph::{DistGraph, PartitionPolicy};
use crate::loading::{RankSampler, in_order};

/// Number of negatives of each positive pair, the sampled nodes by type-wise id, and whether each pair is strict.
type Drawn = (usize, Vec<u64>, Vec<bool>);

/// [`LinkSampler`](burn_gnn_sampling::LinkSampler) over a partitioned graph.
///
/// All ranks pass the same list of edges, by ids in the input graph, and each rank gets the batch of the edges that it
/// owns. The edges of the whole list are excluded from message passing on all ranks. The owner of the source samples
/// negatives, with the same keys as on one machine, so the batches of all ranks together are the batch of one machine.
/// Global negatives are assigned to seed edges by position in the list.
///
/// If edges of the sampler have times, a seed edge and its negatives have the time of the edge, or the time that
/// [`sample_before`](Self::sample_before) gets for it; see [Times](burn_gnn_sampling::LinkSampler#times).
#[derive(Clone, Debug)]
pub struct DistLinkSampler {
    sampler: DistSampler,
    etype: usize,
    pairs: NegativePairs,
    /// Samplers of negatives for own sources and for own destinations, in ids of the input graph.
    kept: [Option<Arc<NegativeSampler>>; 2],
    global: Option<Arc<GlobalNegatives>>,
    exclusion: LinkExclusion,
    /// Number of the edge type that `exclusion` refers to.
    reverse_type: Option<usize>,
}

impl DistLinkSampler {
    /// A sampler without negatives. Seed edges are excluded from message passing.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn new(sampler: DistSampler, etype: impl EdgeKey) -> Result<Self, DistError> {
        let etype = sampler.graph().schema().etype(etype)?;
        Ok(Self {
            sampler,
            etype,
            pairs: NegativePairs::None,
            kept: [None, None],
            global: None,
            exclusion: LinkExclusion::Seeds,
            reverse_type: None,
        })
    }

    /// Sets the number of negative pairs, which are strict and uniform. Collective.
    ///
    /// # Errors
    /// On all ranks: negatives per source or global negatives, if parts do not have the out-edges of their nodes (a
    /// halo of 0 hops) and edges have no times; more than `u32` nodes.
    ///
    /// # Cost
    /// 4 bytes per node of the source type in the whole graph, and per out-edge of own nodes; as much for destinations
    /// and in-edges.
    ///
    /// Global negatives take 8 more bytes per node of the source type; each rank sends those of own nodes to all ranks.
    /// If edges have times, pairs are redrawn until they have no edge, with one exchange per draw and at most 32 draws.
    /// For the remaining pairs, owners send the degrees of all sources for each distinct time.
    pub fn with_negatives(mut self, pairs: NegativePairs) -> Result<Self, DistError> {
        let g = self.sampler.graph();
        // Edges may be missing on some ranks only.
        let own = |of_sources| agree(&*g.comm, "negatives: edges", self.own_negatives(of_sources));
        let mut kept = [None, None];
        for of_sources in kept_endpoints(pairs) {
            kept[usize::from(of_sources)] = Some(Arc::new(own(of_sources)?));
        }
        let global = if let NegativePairs::Global(k) = pairs {
            let own = own(false)?;
            let timed = self.sampler.whole.times_of(self.etype).is_some();
            Some(Arc::new(GlobalNegatives::new(g, self.etype, k, own, timed)?))
        } else {
            None
        };
        (self.kept, self.global, self.pairs) = (kept, global, pairs);
        Ok(self)
    }

    /// The sampler of negatives for own sources or, for negative sources, own destinations.
    fn own_negatives(&self, of_sources: bool) -> Result<NegativeSampler, DistError> {
        let (edges, times) = if of_sources { self.in_edges()? } else { self.out_edges()? };
        let sampler = if of_sources {
            NegativeSampler::of_sources(&edges, 0)?
        } else {
            NegativeSampler::new(&edges, 0)?
        };
        Ok(match times {
            Some(times) => sampler.with_times(&times)?,
            None => sampler,
        })
    }

    /// Changes how negative pairs that keep an endpoint are sampled; the default is strict and uniform. Call
    /// [`with_negatives`](Self::with_negatives) first. `describe` changes the sampler of destinations, then that of
    /// sources ([`NegativeSampler::is_of_sources`]), if they exist. Weights and conditions have one value per node of
    /// the input graph. `describe` must be the same on all ranks.
    ///
    /// ```
    /// use burn_gnn_dist::{DistError, DistGraph, DistLinkSampler, DistSampler, PartitionConfig, partition_graph, run_ranks};
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::{NegativePairs, SampleKey};
    /// let ring = Graph::homogeneous(6, vec![0, 1, 2, 3, 4, 5], vec![1, 2, 3, 4, 5, 0])?;
    /// let parts = partition_graph(&ring, &PartitionConfig::new("ring", 2))?;
    /// run_ranks(2, |comm| {
    ///     let g = DistGraph::from_partition(parts.part(comm.rank())?, comm)?;
    ///     let links = DistLinkSampler::new(DistSampler::new(&g, [1])?, "_E")?.with_negatives(NegativePairs::PerSource(4))?;
    ///     let links = links.with_negative_sampler(|negatives| negatives.with_unique().without_self_loops())?;
    ///     let share = links.sample(&[0, 3], SampleKey::new(0))?; // a node has four others that it has no edge to
    ///     assert!(share.is_strict.iter().all(|&strict| strict));
    ///     Ok::<_, DistError>(())
    /// })?;
    /// # Ok::<(), DistError>(())
    /// ```
    ///
    /// # Errors
    /// The error of `describe`; `describe` returns another sampler than its argument; sampling by in-degree, or
    /// conditional negatives that a batch shares, which need edges of other parts; no negatives, or global negatives,
    /// which are always uniform.
    pub fn with_negative_sampler(
        mut self,
        describe: impl Fn(NegativeSampler) -> Result<NegativeSampler, GraphError>,
    ) -> Result<Self, DistError> {
        let setting = |arg, expected: &str, found: String| {
            Err(DistError::Config { arg, expected: expected.into(), found })
        };
        if self.pairs.kept() == [0, 0] {
            return setting(
                "negatives",
                "pairs that keep an endpoint (`with_negatives` comes first)",
                format!("{:?}", self.pairs),
            );
        }
        for of_sources in kept_endpoints(self.pairs) {
            let own = self.own_negatives(of_sources)?;
            let is_of = |s: &NegativeSampler| {
                (s.device_facts().name.to_owned(), s.device_facts().nodes, s.is_of_sources())
            };
            let given = is_of(&own);
            let described = describe(own)?;
            if is_of(&described) != given {
                return setting(
                    "describe",
                    "the sampler that it was given, with other settings",
                    "another sampler".into(),
                );
            }
            if let Some(found) = described.parts_lack() {
                return setting(
                    "describe",
                    "draws for which the edges of own nodes are enough",
                    found.into(),
                );
            }
            self.kept[usize::from(of_sources)] = Some(Arc::new(described));
        }
        Ok(self)
    }

    /// Sets which edges are excluded from message passing. Ids are those of the input graph.
    ///
    /// # Errors
    /// A list of reverse edges does not have one entry per edge; the type of reverse edges does not exist or has
    /// another number of edges.
    pub fn with_exclusion(mut self, exclusion: LinkExclusion) -> Result<Self, DistError> {
        let owners = &self.sampler.graph().inner.edges;
        let (expected, schema) = (owners.total(self.etype), self.sampler.graph().schema());
        let mut reverse_type = None;
        let found = match &exclusion {
            LinkExclusion::Nothing | LinkExclusion::Seeds => expected,
            LinkExclusion::Reverse(ids) => ids.len() as u64,
            LinkExclusion::ReverseType(t) => owners.total(*reverse_type.insert(schema.etype(t)?)),
        };
        if found != expected {
            let (arg, why) = ("reverse".into(), "one per seed edge of the graph");
            let relation = owners.names()[self.etype].clone();
            return Err(GraphError::Length {
                relation,
                arg,
                why,
                expected: expected as usize,
                actual: found as usize,
            }
            .into());
        }
        (self.exclusion, self.reverse_type) = (exclusion, reverse_type);
        Ok(self)
    }

    /// The sampler of blocks.
    pub fn sampler(&self) -> &DistSampler {
        &self.sampler
    }
    /// The edge type of seed edges.
    pub fn etype(&self) -> usize {
        self.etype
    }
    /// Replaces the communicator by another one of the same ranks.
    #[must_use]
    pub fn with_communicator(mut self, comm: Arc<dyn Communicator>) -> Self {
        self.sampler = self.sampler.with_communicator(comm);
        self
    }

    /// Samples this rank's share of a batch of seed edges. The list of ids in the input graph is the same on all ranks.
    /// If edges have times, each seed has the time of its edge. Collective.
    ///
    /// # Errors
    /// On all ranks: an id out of range; edges of other types have times, but not those of this type.
    pub fn sample(
        &self,
        edges: &[u64],
        key: SampleKey,
    ) -> Result<LinkBatch<DistBatch, u64>, DistError> {
        agree(&*self.sampler.graph().comm, "seed edges: times", self.check_own_times())?;
        self.batch(edges, None, key)
    }

    /// [`sample`](Self::sample) with a time for each seed, which replaces the time of the edge. Collective.
    ///
    /// # Errors
    /// As [`sample`](Self::sample). Also on all ranks: the number of times differs from that of seeds; no edges of the
    /// sampler have times.
    pub fn sample_before(
        &self,
        edges: &[u64],
        times: &[i64],
        key: SampleKey,
    ) -> Result<LinkBatch<DistBatch, u64>, DistError> {
        let g = self.sampler.graph();
        let checked = self
            .sampler
            .check_timed()
            .and_then(|()| Ok(g.inner.edges.check_times(self.etype, edges, times)?));
        agree(&*g.comm, "seed edges: times", checked)?;
        self.batch(edges, Some(times), key)
    }

    /// Samples a batch of seed edges with these times.
    pub(crate) fn batch(
        &self,
        edges: &[u64],
        times: Option<&[i64]>,
        key: SampleKey,
    ) -> Result<LinkBatch<DistBatch, u64>, DistError> {
        let (batch, mut links) =
            sample_links(&self.sampler, &[LinkSeeds { links: self, edges, times }], key)?;
        let SeedLinks { edges, positive, negative, is_strict } = links.swap_remove(0);
        Ok(LinkBatch { batch, edges, positive, negative, is_strict })
    }

    /// Returns an error if seeds have the times of their edges, but only edges of other types have times.
    pub(crate) fn check_own_times(&self) -> Result<(), DistError> {
        if !self.sampler.whole.is_timed() || self.sampler.whole.times_of(self.etype).is_some() {
            return Ok(());
        }
        let relation = self.sampler.graph().etypes()[self.etype].to_string();
        let remedy = "other edges have times, so seed edges need some: give theirs to the sampler (`with_times`), or one per seed (`edge_seeds_before`)";
        Err(GraphError::MissingRelation { arg: "times", relation, remedy }.into())
    }

    /// Adds the own edges that a batch of these seed edges excludes, by local id per edge type, without parallel edges.
    fn leave_out(&self, edges: &[u64], excluded: &mut [Vec<u32>]) {
        let inner = &self.sampler.graph().inner;
        let mut add = |t: usize, id: u64| {
            excluded[t].extend(inner.edge_ids[t].binary_search(&id).ok().map(|row| row as u32))
        };
        if self.exclusion != LinkExclusion::Nothing {
            edges.iter().for_each(|&id| add(self.etype, id));
        }
        if let LinkExclusion::Reverse(of) = &self.exclusion {
            edges.iter().for_each(|&id| add(self.etype, u64::from(of[id as usize])));
        }
        if let Some(t) = self.reverse_type {
            edges.iter().for_each(|&id| add(t, id));
        }
    }

    /// Samples the negatives of own seed edges, with nodes by type-wise id. Collective.
    fn negatives(&self, own: &OwnSeeds, key: SampleKey) -> Result<CorruptedPairs<u64>, DistError> {
        let (g, count) = (self.sampler.graph(), own.edges.len());
        let (s, d) = g.schema().endpoints(self.etype);
        if let Some(global) = &self.global {
            let drawn = global.draw(g, &own.positions, own.times.as_deref(), key)?;
            let typewise = |t: usize, nodes: &[u32]| {
                g.find_nodes(
                    &g.ntypes()[t],
                    &nodes.iter().map(|&v| u64::from(v)).collect::<Vec<_>>(),
                )
            };
            return Ok(CorruptedPairs::global(
                count,
                global.k(),
                typewise(s, &drawn.src)?,
                typewise(d, &drawn.dst)?,
                drawn.is_strict,
            ));
        }
        Ok(CorruptedPairs::new(count, self.tails(own, key)?, self.heads(own, key)?))
    }

    /// Samples negative sources for own pairs, which are given by local nodes. Returns the number of negatives of each
    /// pair, and the sources by type-wise id. No exchange is needed, since own nodes have all their in-edges.
    fn heads(&self, own: &OwnSeeds, key: SampleKey) -> Result<Drawn, DistError> {
        let (k, Some(sampler)) = (self.pairs.kept()[1], &self.kept[1]) else {
            return Ok(Drawn::default());
        };
        let g = self.sampler.graph();
        let (s, d) = g.schema().endpoints(self.etype);
        let (src, dst) = (g.inner.narrow_ids(s, &own.src), g.inner.narrow_ids(d, &own.dst));
        let drawn = sampler
            .of_pairs(true, &src, &dst, own.times.as_deref(), k, key)
            .map_err(DistError::from);
        let drawn = agree(&*g.comm, "negative sources", drawn)?;
        let wide: Vec<u64> = drawn.src.into_iter().map(u64::from).collect();
        Ok((k, g.find_nodes(&g.ntypes()[s], &wide)?, drawn.is_strict))
    }

    /// Samples negative destinations for own pairs, which are given by local nodes, on the owners of the sources.
    /// Returns the number of negatives of each pair, and the destinations by type-wise id.
    fn tails(&self, own: &OwnSeeds, key: SampleKey) -> Result<Drawn, DistError> {
        let (k, Some(sampler)) = (self.pairs.kept()[0], &self.kept[0]) else {
            return Ok(Drawn::default());
        };
        let g = self.sampler.graph();
        let (comm, inner, (s, d)) = (&*g.comm, &g.inner, g.schema().endpoints(self.etype));
        let owner = |u: u32| inner.nodes.locate(s, inner.typewise(s, u)).0;
        let mut asked = vec![(vec![], vec![], vec![]); comm.size()];
        for (i, (&u, &v)) in own.src.iter().zip(&own.dst).enumerate() {
            let (of_src, of_dst, of_time) = &mut asked[owner(u)];
            of_src.push(inner.narrow_id(s, u));
            of_dst.push(inner.narrow_id(d, v));
            of_time.extend(own.times.as_ref().map(|times| times[i]));
        }
        let requests = asked
            .iter()
            .map(|(u, v, times)| Pack::default().with::<u32>(u).with::<u32>(v).with::<i64>(times));
        let answer = |mut request: Unpack| {
            let u = request.list::<u32>()?;
            let v = request.list_of::<u32>(u.len())?;
            let times = own.times.as_ref().map(|_| request.list_of::<i64>(u.len())).transpose()?;
            let drawn = sampler.of_pairs(false, &u, &v, times.as_deref(), k, key)?;
            let is_strict: Vec<u8> = drawn.is_strict.iter().map(|&b| u8::from(b)).collect();
            Ok(Pack::default().with(&drawn.dst).with(&is_strict))
        };
        let answers =
            round_trip(comm, ["negatives: pairs", "negatives"], Ok(requests.collect()), answer)?;
        let mut drawn = Vec::with_capacity(comm.size());
        for (mut answer, asked) in answers.into_iter().zip(&asked) {
            let dst = answer.list_of::<u32>(asked.0.len() * k)?.into_iter();
            drawn.push(dst.zip(answer.list_of::<u8>(asked.0.len() * k)?));
        }
        let (mut originals, mut is_strict) = (vec![], vec![]);
        for &u in &own.src {
            for (v, strict) in drawn[owner(u)].by_ref().take(k) {
                originals.push(u64::from(v));
                is_strict.push(strict != 0);
            }
        }
        Ok((k, g.find_nodes(&g.ntypes()[d], &originals)?, is_strict))
    }

    /// A graph of all edges of the type into own nodes, by ids of the input graph, and their times.
    fn in_edges(&self) -> Result<(Graph, Option<Vec<i64>>), DistError> {
        let inner = &self.sampler.graph().inner;
        let (relation, (s, d)) = (
            &inner.local.relations()[self.etype],
            self.sampler.graph().schema().endpoints(self.etype),
        );
        let (src, dst) = (inner.narrow_ids(s, relation.src()), inner.narrow_ids(d, relation.dst()));
        let times = self.sampler.whole.times_of(self.etype).map(<[i64]>::to_vec);
        Ok((self.between_originals(src, dst)?, times))
    }

    /// A graph of all edges of the type out of own nodes, by ids of the input graph, and their times.
    fn out_edges(&self) -> Result<(Graph, Option<Vec<i64>>), DistError> {
        let g: &DistGraph = self.sampler.graph();
        if let Some(edges) = &self.sampler.out_edges[self.etype] {
            let own = g.inner.own_originals(g.schema().endpoints(self.etype).0);
            let (mut src, mut dst, mut times) = (vec![], vec![], vec![]);
            for (row, v, time) in edges.iter() {
                src.push(own[row] as u32);
                dst.push(v);
                times.push(time);
            }
            return Ok((self.between_originals(src, dst)?, Some(times)));
        }
        let (p, inner, schema) = (&g.inner.partition, &g.inner, g.schema());
        let (s, _) = schema.endpoints(self.etype);
        let own = inner.nodes.count(s);
        let (mut src, mut dst, mut found) = (vec![], vec![], vec![0u32; own]);
        for (e, (&u, &v)) in p.src().iter().zip(p.dst()).enumerate() {
            let is_own = (u as usize) < p.num_inner_nodes();
            if is_own
                && p.book().global_to_edge(burn_gnn_graph::HomoId(p.global_eids()[e]))?.ty
                    == self.etype
            {
                let original = p.original_nids()[u as usize];
                if let Ok(row) = inner.own_originals(s).binary_search(&original) {
                    found[row] += 1;
                }
                src.push(original as u32);
                dst.push(p.original_nids()[v as usize] as u32);
            }
        }
        if let Some(row) =
            found.iter().zip(&inner.out_degrees[self.etype]).position(|(a, b)| a != b)
        {
            let (have, of) = (found[row], inner.out_degrees[self.etype][row]);
            let expected =
                "parts with all out-edges of their nodes (`num_hops` of at least 1)".into();
            let found = format!("{have} of {of} out-edges of node {}", inner.own_originals(s)[row]);
            return Err(DistError::Config { arg: "negatives", expected, found });
        }
        Ok((self.between_originals(src, dst)?, None))
    }

    /// A graph of edges of the type, by ids of the input graph.
    fn between_originals(&self, src: Vec<u32>, dst: Vec<u32>) -> Result<Graph, DistError> {
        let (inner, schema) = (&self.sampler.graph().inner, self.sampler.graph().schema());
        let ((s, d), name) = (schema.endpoints(self.etype), schema.etypes()[self.etype].clone());
        let mut builder = Graph::builder();
        for t in [s, d].into_iter().take(if s == d { 1 } else { 2 }) {
            let count = inner.nodes.total(t);
            if count >= u64::from(u32::MAX) {
                let (relation, what, limit) = (name.to_string(), "nodes", u64::from(u32::MAX) - 1);
                return Err(GraphError::TooLarge { relation, what, count, limit }.into());
            }
            builder = builder.nodes(&schema.ntypes()[t], count as usize);
        }
        Ok(builder.edges(name, src, dst).build()?)
    }
}

/// Samples batches of seed edges of the type ([`DistGraph::edge_seeds`]) with negative pairs. If edges of the sampler
/// have times, a seed edge and its negatives have the time of the edge, or the time given for it; see
/// [Times](burn_gnn_sampling::LinkSampler#times).
impl Sampler for DistLinkSampler {
    type Seed = u64;
    type Batch = LinkBatch<DistBatch, u64>;
    type Error = DistError;
    in_order!();

    fn sample_batch(
        &self,
        seeds: &Seeds<u64>,
        key: SampleKey,
    ) -> Result<LinkBatch<DistBatch, u64>, DistError> {
        self.batch(&seeds.ids()[self.etype], seeds.times().map(|times| &times[self.etype][..]), key)
    }
    fn check(&self, seeds: &Seeds<u64>) -> Result<(), DistError> {
        let etypes = self.sampler.graph().etypes();
        let check = || -> Result<(), DistError> {
            seeds.expect(SeedKind::Edges, etypes.len())?;
            if let Some(t) =
                (0..etypes.len()).find(|&t| t != self.etype && !seeds.ids()[t].is_empty())
            {
                let expected =
                    format!("edges of `{}`, the type of the sampler", etypes[self.etype]);
                return Err(DistError::Config {
                    arg: "seeds",
                    expected,
                    found: format!("some of `{}`", etypes[t]),
                });
            }
            if seeds.times().is_some() {
                self.sampler.check_timed()
            } else {
                self.check_own_times()
            }
        };
        agree(&*self.sampler.graph().comm, "seed edges: times", check())
    }
    fn own_seeds(&self, seeds: Seeds<u64>, batch: &LinkBatch<DistBatch, u64>) -> Seeds<u64> {
        let mut own = vec![vec![]; seeds.ids().len()];
        own[self.etype].clone_from(&batch.edges);
        seeds.with_own(own)
    }
}

impl RankSampler for DistLinkSampler {
    fn graph(&self) -> &DistGraph {
        self.sampler.graph()
    }
    fn with_communicator(self, comm: Arc<dyn Communicator>) -> Self {
        Self::with_communicator(self, comm)
    }
}

/// The endpoint that negative pairs keep: the source (`false`) or the destination (`true`).
fn kept_endpoints(pairs: NegativePairs) -> impl Iterator<Item = bool> {
    let kept = pairs.kept();
    [false, true].into_iter().filter(move |&of_sources| kept[usize::from(of_sources)] > 0)
}

/// Seed edges of one type. The lists are the same on all ranks.
pub(super) struct LinkSeeds<'a> {
    pub(super) links: &'a DistLinkSampler,
    /// Ids in the input graph.
    pub(super) edges: &'a [u64],
    /// Time of each seed, if it is not the time of its edge.
    pub(super) times: Option<&'a [i64]>,
}

/// The seed edges of one type that this rank owns.
struct OwnSeeds {
    /// Ids in the input graph.
    edges: Vec<u64>,
    /// Places in the list of all ranks.
    positions: Vec<u64>,
    /// Local nodes.
    src: Vec<u32>,
    dst: Vec<u32>,
    /// Times, if edges of the sampler have times.
    times: Option<Vec<i64>>,
}

impl LinkSeeds<'_> {
    fn own(&self) -> OwnSeeds {
        let (sampler, t) = (&self.links.sampler, self.links.etype);
        let inner = &sampler.graph().inner;
        let of = PartitionPolicy { is_node: false, ty: t };
        let (relation, of_edges) = (&inner.local.relations()[t], sampler.whole.times_of(t));
        let times = sampler.whole.is_timed().then(Vec::new);
        let mut own =
            OwnSeeds { edges: vec![], positions: vec![], src: vec![], dst: vec![], times };
        for (position, &id) in self.edges.iter().enumerate() {
            let Ok(row) = inner.edge_ids[t].binary_search(&id) else { continue };
            if !inner.is_own(of, row as u32) {
                continue;
            }
            own.edges.push(id);
            own.positions.push(position as u64);
            own.src.push(relation.src()[row]);
            own.dst.push(relation.dst()[row]);
            let time = self.times.map(|times| times[position]).or_else(|| Some(of_edges?[row]));
            own.times.iter_mut().for_each(|times| times.extend(time));
        }
        own
    }
}

/// Samples this rank's share of the blocks around seed edges of several types, and of the seed edges of each type. The
/// seed edges are validated except for the range of ids. Collective.
pub(super) fn sample_links(
    sampler: &DistSampler,
    parts: &[LinkSeeds<'_>],
    key: SampleKey,
) -> Result<(DistBatch, Vec<SeedLinks<u64>>), DistError> {
    let g = sampler.graph();
    let inner = &g.inner;
    agree(
        &*g.comm,
        "seed edges",
        parts.iter().try_for_each(|part| inner.edges.check(part.links.etype, part.edges)),
    )?;
    let mut seeds = vec![vec![]; g.ntypes().len()];
    let mut times = sampler.whole.is_timed().then(|| vec![vec![]; seeds.len()]);
    let mut excluded = vec![vec![]; g.etypes().len()];
    let mut placed = Vec::with_capacity(parts.len());
    for part in parts {
        let own = part.own();
        let pairs = part.links.negatives(&own, key)?;
        let (s, d) = g.schema().endpoints(part.links.etype);
        // If both endpoints have the same node type, they share one list, sources first.
        let starts =
            [(s, &own.src, &pairs.src, &pairs.src_of), (d, &own.dst, &pairs.dst, &pairs.dst_of)]
                .map(|(t, given, drawn, of)| {
                    let start = seeds[t].len();
                    seeds[t].extend(
                        given.iter().map(|&v| inner.typewise(t, v)).chain(drawn.iter().copied()),
                    );
                    if let (Some(times), Some(own)) = (&mut times, &own.times) {
                        times[t].extend(own.iter().copied().chain(of.iter().map(|&i| own[i])));
                    }
                    (t, start)
                });
        part.links.leave_out(part.edges, &mut excluded);
        placed.push((own.edges, starts, pairs.pairs, pairs.is_strict));
    }
    // A part has all edges into its own nodes, and thus all edges that are parallel to one of them.
    for (t, (relation, edges)) in inner.local.relations().iter().zip(&mut excluded).enumerate() {
        if sampler.whole.times_of(t).is_none() {
            add_parallel_edges(relation, edges)?;
        }
    }
    let batch = sampler.grow(&seeds, times.as_deref(), &excluded, key)?;
    let row = |(t, start): (usize, usize), position: usize| batch.mini.seeds[t][start + position];
    let links = placed.into_iter().map(|(edges, [s, d], pairs, is_strict)| {
        let rows = |pairs: &[[usize; 2]]| LinkRows {
            src: pairs.iter().map(|p| row(s, p[0])).collect(),
            dst: pairs.iter().map(|p| row(d, p[1])).collect(),
        };
        let positive = rows(&(0..edges.len()).map(|i| [i, i]).collect::<Vec<_>>());
        SeedLinks { edges, positive, negative: rows(&pairs), is_strict }
    });
    let links = links.collect();
    Ok((batch, links))
}
