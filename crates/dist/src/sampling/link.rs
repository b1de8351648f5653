//! Batches of edges for link prediction over all parts.

use std::ops::Range;
use std::sync::Arc;

use burn_gnn_graph::{EdgeKey, Graph, GraphError, LinkExclusion, LinkRows, NegativePairs, NegativeSampler, SampleKey};

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

/// [`LinkSampler`](burn_gnn_graph::LinkSampler) over a partitioned graph.
///
/// All ranks name the same edges, by their ids in the input graph; each gets the batch of those that it owns. Edges of the
/// whole list are left out of message passing on all ranks, and negatives are drawn where the source lives, by the same keys, so that
/// the ranks' batches together are the batch of one machine.
///
/// # Not offered
/// [`NegativePairs::Global`], whose draws count all pairs of the graph.
#[derive(Clone, Debug)]
pub struct DistLinkSampler {
    sampler: DistSampler,
    etype: usize,
    /// Negatives of own sources, in ids of the input graph.
    negatives: Option<(usize, Arc<NegativeSampler>)>,
    exclusion: LinkExclusion,
}

impl DistLinkSampler {
    /// Without negatives; seed edges are left out of message passing.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn new(sampler: DistSampler, etype: impl EdgeKey) -> Result<Self, DistError> {
        let etype = sampler.graph().schema().etype(etype)?;
        Ok(Self { sampler, etype, negatives: None, exclusion: LinkExclusion::Seeds })
    }

    /// How many negative pairs, drawn strictly and uniformly.
    ///
    /// # Errors
    /// [`NegativePairs::Global`]; parts that do not hold the out-edges of their nodes (a halo of no hops); more than `u32` nodes.
    ///
    /// # Cost
    /// 4 bytes per node of the source type in the whole graph, and per out-edge of own nodes.
    pub fn with_negatives(mut self, pairs: NegativePairs) -> Result<Self, DistError> {
        self.negatives = match pairs {
            NegativePairs::None => None,
            NegativePairs::PerSource(k) => Some((k, Arc::new(NegativeSampler::new(&self.out_edges()?, 0)?))),
            NegativePairs::Global(_) => {
                let expected = "negatives per source: global ones count the pairs of the whole graph".into();
                return Err(DistError::Config { arg: "pairs", expected, found: format!("{pairs:?}") });
            }
        };
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
        let mut out = (vec![], vec![], vec![]);
        for &id in edges {
            if let Some(row) = own(self.etype, id) {
                out.0.push(id);
                out.1.push(relation.src()[row as usize]);
                out.2.push(relation.dst()[row as usize]);
            }
        }
        let (ids, src, dst) = out;
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
        let (negative, is_strict) = self.negatives(&src, &dst, key)?;
        let k = self.negatives.as_ref().map_or(0, |n| n.0);
        let mut seeds = vec![vec![]; g.ntypes().len()];
        seeds[s].extend(src.iter().map(|&u| inner.typewise(s, u)));
        seeds[s].extend(src.iter().flat_map(|&u| std::iter::repeat_n(inner.typewise(s, u), k)));
        let positives = ids.len();
        let count = positives + negative.len();
        seeds[d].extend(dst.iter().map(|&v| inner.typewise(d, v)));
        seeds[d].extend(negative);
        let batch = self.sampler.grow(&seeds, &excluded, key)?;
        // Of one node type both ends stand in one list, sources first.
        let of_dst = if s == d { count } else { 0 };
        let rows = |range: Range<usize>| LinkRows {
            src: batch.mini.seeds[s][range.clone()].to_vec(),
            dst: batch.mini.seeds[d][range.start + of_dst..range.end + of_dst].to_vec(),
        };
        let (positive, negative) = (rows(0..positives), rows(positives..count));
        Ok(DistLinkBatch { batch, edges: ids, positive, negative, is_strict })
    }

    /// Type-wise destinations of the negatives of own pairs, given by local node, drawn by the owners of their sources.
    fn negatives(&self, src: &[u32], dst: &[u32], key: SampleKey) -> Result<(Vec<u64>, Vec<bool>), DistError> {
        let Some((k, sampler)) = &self.negatives else { return Ok((vec![], vec![])) };
        let g = self.sampler.graph();
        let (comm, inner, (s, d)) = (&*g.comm, &g.inner, g.schema().ends(self.etype));
        let owner = |u: u32| inner.nodes.locate(s, inner.typewise(s, u)).0;
        let mut asked = vec![(vec![], vec![]); comm.size()];
        for (&u, &v) in src.iter().zip(dst) {
            let (of_src, of_dst) = &mut asked[owner(u)];
            // Ids were narrowed when the sampler was made.
            of_src.push(inner.node_ids[s][u as usize] as u32);
            of_dst.push(inner.node_ids[d][v as usize] as u32);
        }
        let requests = asked.iter().map(|(u, v)| {
            let mut p = Pack::default();
            p.list(u);
            p.list(v);
            p.into_bytes()
        });
        let requests = exchange(comm, "negatives: pairs", Ok(requests.collect()))?;
        let answer = |(p, request): (usize, &Vec<u8>)| {
            let mut request = Unpack::new(request, p, comm.rank());
            let u = request.list::<u32>()?;
            let v = request.list_of::<u32>(u.len())?;
            let drawn = sampler.per_source(&u, &v, *k, key)?;
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
            for (v, strict) in drawn[owner(u)].by_ref().take(*k) {
                originals.push(u64::from(v));
                is_strict.push(strict != 0);
            }
        }
        Ok((g.find_nodes(&g.ntypes()[d], &originals)?, is_strict))
    }

    /// All edges of the type out of own nodes, between all nodes of the input graph by their ids there.
    fn out_edges(&self) -> Result<Graph, DistError> {
        let g: &DistGraph = self.sampler.graph();
        let (p, inner, schema) = (&g.inner.partition, &g.inner, g.schema());
        let (s, d) = schema.ends(self.etype);
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
        let name = schema.etypes()[self.etype].clone();
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
