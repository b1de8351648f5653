//! Batches of edges for link prediction over all parts.

use std::sync::Arc;

use burn_gnn_graph::{CorruptedPairs, EdgeKey, Graph, GraphError, LinkExclusion, LinkRows, NegativePairs, NegativeSampler, SampleKey};

use super::global::GlobalNegatives;
use super::{DistBatch, DistSampler};
use crate::exchange::{Pack, Unpack, agree, exchange};
use crate::{DistError, DistGraph};

/// This rank's share of a batch of seed edges: those that it owns.
#[derive(Clone, Debug)]
pub struct DistLinkBatch {
    /// Blocks that compute the nodes at the ends of all pairs.
    pub batch: DistBatch,
    /// Ids in the input graph of the seed edges.
    pub edges: Vec<u64>,
    /// The seed edges.
    pub positive: LinkRows,
    /// The negative pairs, those of one positive pair one after the other.
    pub negative: LinkRows,
    /// Whether each negative pair is known to be no edge.
    pub is_strict: Vec<bool>,
}

/// How many negatives of each positive pair, the nodes drawn by type-wise id, and whether each pair is strict.
type Drawn = (usize, Vec<u64>, Vec<bool>);

/// [`LinkSampler`](burn_gnn_graph::LinkSampler) over a partitioned graph.
///
/// All ranks name the same edges, by their ids in the input graph; each gets the batch of those that it owns. Edges of the
/// whole list are left out of message passing on all ranks, and negatives are drawn where the source lives, by the same keys, so that
/// the ranks' batches together are the batch of one machine. Global negatives belong to a seed edge by its position in the list.
///
/// Where edges of the sampler have times, seed edges and their negatives have those of the seed edges; see
/// [Times](burn_gnn_graph::LinkSampler#times).
#[derive(Clone, Debug)]
pub struct DistLinkSampler {
    sampler: DistSampler,
    etype: usize,
    pairs: NegativePairs,
    /// Negatives of own sources, in ids of the input graph.
    tails: Option<Arc<NegativeSampler>>,
    /// Negatives of own destinations, likewise.
    heads: Option<Arc<NegativeSampler>>,
    global: Option<Arc<GlobalNegatives>>,
    exclusion: LinkExclusion,
}

impl DistLinkSampler {
    /// Without negatives; seed edges are left out of message passing.
    ///
    /// # Errors
    /// Unknown or ambiguous type; edges have times, but not those of this type.
    pub fn new(sampler: DistSampler, etype: impl EdgeKey) -> Result<Self, DistError> {
        let etype = sampler.graph().schema().etype(etype)?;
        if sampler.whole.is_timed() && sampler.whole.times_of(etype).is_none() {
            let relation = sampler.graph().etypes()[etype].to_string();
            let remedy = "seed edges need times where other edges have them: give theirs to the sampler (`with_times`)";
            return Err(GraphError::MissingRelation { arg: "times", relation, remedy }.into());
        }
        Ok(Self { sampler, etype, pairs: NegativePairs::None, tails: None, heads: None, global: None, exclusion: LinkExclusion::Seeds })
    }

    /// How many negative pairs, drawn strictly and uniformly. Collective for [`NegativePairs::Global`].
    ///
    /// # Errors
    /// Negatives per source, or global ones, where parts do not hold the out-edges of their nodes (a halo of no hops) and these have no
    /// times, for global ones on all ranks; more than `u32` nodes.
    ///
    /// # Cost
    /// 4 bytes per node of the source type in the whole graph, and per out-edge of own nodes; as much for destinations and in-edges.
    ///
    /// Global negatives take 8 bytes more per node of the source type, of which each rank tells the others those of its own. Where edges
    /// have times, a batch draws until all pairs fit, one round of messages for each draw and 32 at most; for pairs that did not fit until
    /// then owners tell, for each different time, the degrees of all sources.
    pub fn with_negatives(mut self, pairs: NegativePairs) -> Result<Self, DistError> {
        let [tails, heads] = pairs.kept();
        let sampler = |of_sources: bool, (edges, times): (Graph, Option<Vec<i64>>)| {
            let sampler = if of_sources { NegativeSampler::of_sources(&edges, 0)? } else { NegativeSampler::new(&edges, 0)? };
            Ok::<_, DistError>(match times {
                Some(times) => sampler.with_times(&times)?,
                None => sampler,
            })
        };
        self.tails = if tails > 0 { Some(Arc::new(sampler(false, self.out_edges()?)?)) } else { None };
        self.heads = if heads > 0 { Some(Arc::new(sampler(true, self.in_edges()?)?)) } else { None };
        self.global = if let NegativePairs::Global(k) = pairs {
            let g = self.sampler.graph();
            let own = self.out_edges().and_then(|edges| sampler(false, edges));
            let own = agree(&*g.comm, "global negatives: edges", own)?;
            let timed = self.sampler.whole.times_of(self.etype).is_some();
            Some(Arc::new(GlobalNegatives::new(g, self.etype, k, own, timed)?))
        } else {
            None
        };
        self.pairs = pairs;
        Ok(self)
    }

    /// Which edges are left out of message passing; ids are those of the input graph.
    ///
    /// # Errors
    /// A list of reverses that does not have one edge per edge; a type of reverses with another number of edges, or none of that number.
    pub fn with_exclusion(mut self, exclusion: LinkExclusion) -> Result<Self, DistError> {
        let owners = &self.sampler.graph().inner.edges;
        let (expected, schema) = (owners.total(self.etype), self.sampler.graph().schema());
        let found = match &exclusion {
            LinkExclusion::Nothing | LinkExclusion::Seeds => expected,
            LinkExclusion::Reverse(ids) => ids.len() as u64,
            LinkExclusion::ReverseType(t) => owners.total(schema.etype(*t)?),
        };
        if found != expected {
            let (arg, why) = ("reverse".into(), "one per seed edge of the graph");
            let relation = owners.names()[self.etype].clone();
            return Err(GraphError::Length { relation, arg, why, expected: expected as usize, actual: found as usize }.into());
        }
        self.exclusion = exclusion;
        Ok(self)
    }

    /// What blocks are made by.
    pub fn sampler(&self) -> &DistSampler {
        &self.sampler
    }
    /// The edge type of seeds.
    pub fn etype(&self) -> usize {
        self.etype
    }
    /// The same sampler over another communicator of the same ranks.
    #[must_use]
    pub fn with_communicator(mut self, comm: Arc<dyn crate::Communicator>) -> Self {
        self.sampler = self.sampler.with_communicator(comm);
        self
    }

    /// This rank's share of a batch of edges, given by their ids in the input graph, the same list on all ranks. Collective.
    ///
    /// # Errors
    /// An id out of range; on all ranks.
    pub fn sample(&self, edges: &[u64], key: SampleKey) -> Result<DistLinkBatch, DistError> {
        let g = self.sampler.graph();
        let (inner, (s, d)) = (&g.inner, g.schema().ends(self.etype));
        agree(&*g.comm, "seed edges", inner.edges.check(self.etype, edges))?;
        let own = |t: usize, id: u64| inner.edge_ids[t].binary_search(&id).ok().map(|row| row as u32);
        let relation = &inner.local.relations()[self.etype];
        let of_edges = self.sampler.whole.times_of(self.etype);
        let (mut ids, mut src, mut dst, mut times) = (vec![], vec![], vec![], of_edges.map(|_| vec![]));
        let mut positions = vec![];
        for (position, &id) in (0..).zip(edges) {
            if let Some(row) = own(self.etype, id).filter(|&row| inner.is_own(false, self.etype, row)) {
                ids.push(id);
                positions.push(position);
                src.push(relation.src()[row as usize]);
                dst.push(relation.dst()[row as usize]);
                times.iter_mut().zip(of_edges).for_each(|(times, of)| times.push(of[row as usize]));
            }
        }
        let mut excluded = vec![vec![]; g.etypes().len()];
        let mut leave_out = |t: usize, id: u64| excluded[t].extend(own(t, id));
        if self.exclusion != LinkExclusion::Nothing {
            edges.iter().for_each(|&id| leave_out(self.etype, id));
        }
        match &self.exclusion {
            LinkExclusion::Reverse(of) => edges.iter().for_each(|&id| leave_out(self.etype, u64::from(of[id as usize]))),
            LinkExclusion::ReverseType(t) => edges.iter().for_each(|&id| leave_out(*t, id)),
            LinkExclusion::Nothing | LinkExclusion::Seeds => {}
        }
        let pairs = if let Some(global) = &self.global {
            let drawn = global.draw(g, &positions, times.as_deref(), key)?;
            let typewise = |t: usize, nodes: &[u32]| g.find_nodes(&g.ntypes()[t], &nodes.iter().map(|&v| u64::from(v)).collect::<Vec<_>>());
            CorruptedPairs::global(ids.len(), global.k(), typewise(s, &drawn.src)?, typewise(d, &drawn.dst)?, drawn.is_strict)
        } else {
            let (tails, heads) = (self.tails(&src, &dst, times.as_deref(), key)?, self.heads(&src, &dst, times.as_deref(), key)?);
            CorruptedPairs::new(ids.len(), tails, heads)
        };
        let mut seeds = vec![vec![]; g.ntypes().len()];
        // Of one node type both ends stand in one list, sources first.
        let of_dst = if s == d { src.len() + pairs.src.len() } else { 0 };
        seeds[s].extend(src.iter().map(|&u| inner.typewise(s, u)).chain(pairs.src.iter().copied()));
        seeds[d].extend(dst.iter().map(|&v| inner.typewise(d, v)).chain(pairs.dst.iter().copied()));
        let times = times.map(|times| {
            let mut of = vec![vec![]; seeds.len()];
            for (t, new) in [(s, &pairs.src_of), (d, &pairs.dst_of)] {
                of[t].extend(times.iter().copied().chain(new.iter().map(|&i| times[i])));
            }
            of
        });
        let batch = self.sampler.grow(&seeds, times.as_deref(), &excluded, key)?;
        let rows = |pairs: &[[usize; 2]]| LinkRows {
            src: pairs.iter().map(|p| batch.mini.seeds[s][p[0]]).collect(),
            dst: pairs.iter().map(|p| batch.mini.seeds[d][of_dst + p[1]]).collect(),
        };
        let positive = rows(&(0..ids.len()).map(|i| [i, i]).collect::<Vec<_>>());
        let negative = rows(&pairs.pairs);
        Ok(DistLinkBatch { batch, edges: ids, positive, negative, is_strict: pairs.is_strict })
    }

    /// How many negatives of each own pair, given by local node, have another source; those sources type-wise. Own nodes have all
    /// their in-edges.
    fn heads(&self, src: &[u32], dst: &[u32], times: Option<&[i64]>, key: SampleKey) -> Result<Drawn, DistError> {
        let (k, Some(sampler)) = (self.pairs.kept()[1], &self.heads) else { return Ok(Drawn::default()) };
        let g = self.sampler.graph();
        let (s, d) = g.schema().ends(self.etype);
        // Ids were narrowed when the sampler was made.
        let originals = |t: usize, nodes: &[u32]| nodes.iter().map(|&v| g.inner.node_ids[t][v as usize] as u32).collect::<Vec<_>>();
        let drawn = sampler.of_pairs(true, &originals(s, src), &originals(d, dst), times, k, key).map_err(DistError::from);
        let drawn = agree(&*g.comm, "negative sources", drawn)?;
        let wide: Vec<u64> = drawn.src.into_iter().map(u64::from).collect();
        Ok((k, g.find_nodes(&g.ntypes()[s], &wide)?, drawn.is_strict))
    }

    /// How many negatives of each own pair, given by local node, have another destination; those destinations type-wise, drawn by the
    /// owners of the sources.
    fn tails(&self, src: &[u32], dst: &[u32], times: Option<&[i64]>, key: SampleKey) -> Result<Drawn, DistError> {
        let (k, Some(sampler)) = (self.pairs.kept()[0], &self.tails) else { return Ok(Drawn::default()) };
        let g = self.sampler.graph();
        let (comm, inner, (s, d)) = (&*g.comm, &g.inner, g.schema().ends(self.etype));
        let owner = |u: u32| inner.nodes.locate(s, inner.typewise(s, u)).0;
        let mut asked = vec![(vec![], vec![], vec![]); comm.size()];
        for (i, (&u, &v)) in src.iter().zip(dst).enumerate() {
            let (of_src, of_dst, of_time) = &mut asked[owner(u)];
            // Ids were narrowed when the sampler was made.
            of_src.push(inner.node_ids[s][u as usize] as u32);
            of_dst.push(inner.node_ids[d][v as usize] as u32);
            of_time.extend(times.map(|times| times[i]));
        }
        let requests = asked.iter().map(|(u, v, times)| {
            let mut p = Pack::default();
            p.list(u);
            p.list(v);
            p.list::<i64>(times);
            p.into_bytes()
        });
        let requests = exchange(comm, "negatives: pairs", Ok(requests.collect()))?;
        let answer = |(p, request): (usize, &Vec<u8>)| {
            let mut request = Unpack::new(request, p, comm.rank());
            let u = request.list::<u32>()?;
            let v = request.list_of::<u32>(u.len())?;
            let times = times.map(|_| request.list_of::<i64>(u.len())).transpose()?;
            let drawn = sampler.of_pairs(false, &u, &v, times.as_deref(), k, key)?;
            let mut out = Pack::default();
            out.list(&drawn.dst);
            out.list(&drawn.is_strict.iter().map(|&b| u8::from(b)).collect::<Vec<_>>());
            Ok(out.into_bytes())
        };
        let answers = exchange(comm, "negatives", requests.iter().enumerate().map(answer).collect())?;
        let mut drawn = Vec::with_capacity(comm.size());
        for (p, (answer, asked)) in answers.iter().zip(&asked).enumerate() {
            let mut answer = Unpack::new(answer, p, comm.rank());
            let dst = answer.list_of::<u32>(asked.0.len() * k)?.into_iter();
            drawn.push(dst.zip(answer.list_of::<u8>(asked.0.len() * k)?));
        }
        let (mut originals, mut is_strict) = (vec![], vec![]);
        for &u in src {
            for (v, strict) in drawn[owner(u)].by_ref().take(k) {
                originals.push(u64::from(v));
                is_strict.push(strict != 0);
            }
        }
        Ok((k, g.find_nodes(&g.ntypes()[d], &originals)?, is_strict))
    }

    /// All edges of the type into own nodes, and their times, between all nodes of the input graph by their ids there.
    fn in_edges(&self) -> Result<(Graph, Option<Vec<i64>>), DistError> {
        let inner = &self.sampler.graph().inner;
        let (relation, (s, d)) = (&inner.local.relations()[self.etype], self.sampler.graph().schema().ends(self.etype));
        let originals = |t: usize, nodes: &[u32]| nodes.iter().map(|&v| inner.node_ids[t][v as usize] as u32).collect();
        let times = self.sampler.whole.times_of(self.etype).map(<[i64]>::to_vec);
        Ok((self.between_originals(originals(s, relation.src()), originals(d, relation.dst()))?, times))
    }

    /// All edges of the type out of own nodes, and their times, between all nodes of the input graph by their ids there.
    fn out_edges(&self) -> Result<(Graph, Option<Vec<i64>>), DistError> {
        let g: &DistGraph = self.sampler.graph();
        if let Some(edges) = &self.sampler.out_edges[self.etype] {
            let own = g.inner.own_originals(g.schema().ends(self.etype).0);
            let (mut src, mut dst, mut times) = (vec![], vec![], vec![]);
            for (row, v, time) in edges.iter() {
                src.push(own[row] as u32);
                dst.push(v);
                times.push(time);
            }
            return Ok((self.between_originals(src, dst)?, Some(times)));
        }
        let (p, inner, schema) = (&g.inner.partition, &g.inner, g.schema());
        let (s, _) = schema.ends(self.etype);
        let own = inner.nodes.count(s);
        let (mut src, mut dst, mut found) = (vec![], vec![], vec![0u32; own]);
        for (e, (&u, &v)) in p.src().iter().zip(p.dst()).enumerate() {
            let is_own = (u as usize) < p.num_inner_nodes();
            if is_own && p.book().joint_to_edge(burn_gnn_graph::HomoId(p.joint_eids()[e]))?.ty == self.etype {
                let original = p.original_nids()[u as usize];
                if let Ok(row) = inner.own_originals(s).binary_search(&original) {
                    found[row] += 1;
                }
                src.push(original as u32);
                dst.push(p.original_nids()[v as usize] as u32);
            }
        }
        if let Some(row) = found.iter().zip(&inner.out_degrees[self.etype]).position(|(a, b)| a != b) {
            let (have, of) = (found[row], inner.out_degrees[self.etype][row]);
            let expected = "a partition whose parts hold all out-edges of their nodes (`num_hops` of at least 1)".into();
            let found = format!("{have} of {of} out-edges of node {}", inner.own_originals(s)[row]);
            return Err(DistError::Config { arg: "negatives", expected, found });
        }
        Ok((self.between_originals(src, dst)?, None))
    }

    /// A graph of edges of the type between all nodes of the input graph.
    fn between_originals(&self, src: Vec<u32>, dst: Vec<u32>) -> Result<Graph, DistError> {
        let (inner, schema) = (&self.sampler.graph().inner, self.sampler.graph().schema());
        let ((s, d), name) = (schema.ends(self.etype), schema.etypes()[self.etype].clone());
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
