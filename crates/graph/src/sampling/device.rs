//! What a device that draws by itself is told of a sampler, and the batch made of what it found.

use std::sync::Arc;

use super::SampleKey;
use super::block::{Block, BlockParts, MiniBatch};
use super::fanout::ALL;
use super::neighbor::NeighborSampler;
use super::rules::Strategy;
use super::setting;
use crate::derive::check_ids;
use crate::relation::check_len;
use crate::{GraphError, Relation};

/// One relation at one hop: which edges a device draws.
#[doc(hidden)]
#[derive(Debug)]
pub struct HopDraws<'a> {
    /// The edge type.
    pub etype: usize,
    /// Its edges in the graph.
    pub relation: &'a Relation,
    /// Edges per node; `u32::MAX` stands for all.
    pub fanout: u32,
    /// Whether an edge may be drawn several times.
    pub replace: bool,
    /// Key of the draws.
    pub key: [u32; 2],
    /// The id that each destination's draws belong to; `None` stands for the destination's own.
    pub ids: Option<&'a [u32]>,
    /// Weight of each edge by position in CSC, where draws follow weights.
    pub weights: Option<&'a [f32]>,
}

/// What was found of one relation at one hop.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct HopEdges {
    /// Offsets of destinations.
    pub indptr: Vec<u32>,
    /// Row of the source of each edge.
    pub src: Vec<u32>,
    /// Position of each edge in CSC of the graph.
    pub positions: Vec<u32>,
}

/// What was found at one hop.
#[doc(hidden)]
#[derive(Debug)]
pub struct HopFound {
    /// By edge type; `None` where nothing was drawn.
    pub edges: Vec<Option<HopEdges>>,
    /// Nodes of each type before and after the hop.
    pub num_dst: Vec<usize>,
    /// Nodes of each type after it.
    pub num_src: Vec<usize>,
}

#[doc(hidden)]
impl NeighborSampler {
    /// Seeds by node type, checked.
    ///
    /// # Errors
    /// Unknown type or one named twice, a seed out of range.
    pub fn device_seeds<N: AsRef<str>, I: AsRef<[u32]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
    ) -> Result<Vec<Vec<u32>>, GraphError> {
        self.graph().node_selection("seeds", seeds)
    }

    /// What of this sampler a device does not know how to do.
    pub fn device_lacks(&self) -> Option<&'static str> {
        let weighs = matches!(self.strategy, Strategy::Weighted | Strategy::InDegree);
        if self.disjoint {
            Some("disjoint trees")
        } else if self.rules.iter().any(|r| r.mask.is_some()) {
            Some("masks of edges")
        } else if !weighs && self.strategy != Strategy::Uniform {
            Some("this strategy")
        } else {
            None
        }
    }

    /// What is drawn at hop number `hop`, 0 being that of the seeds, by edge type; relations of which nothing is drawn are left out.
    pub fn device_hop(&self, hop: usize, key: SampleKey) -> Vec<HopDraws<'_>> {
        let (g, hop) = (self.graph(), self.first + hop);
        let one = |etype: usize| {
            let d = g.schema().ends(etype).1;
            let fanout = self.fanouts[hop][etype];
            HopDraws {
                etype,
                relation: &g.relations()[etype],
                fanout,
                replace: self.replace && fanout != ALL,
                key: self.draw_stream(hop, etype, key).key(),
                ids: self.source.node_ids[d].as_slice(),
                weights: self.rules[etype].weights.as_deref().filter(|_| self.strategy != Strategy::Uniform),
            }
        };
        (0..g.relations().len()).map(one).filter(|draws| draws.fanout > 0).collect()
    }

    /// The batch of all hops, the first one that of the seeds; `nodes` are the nodes of each type in the order in which they were found,
    /// `seeds` the row of each seed.
    ///
    /// # Errors
    /// Lists that do not have one entry for every hop or type, counts of nodes that are not those of the hop before, nodes, rows or positions
    /// out of range, offsets that do not go from 0 to the number of edges.
    ///
    /// # Cost
    /// Every number is checked: `O(nodes + edges)` of the batch.
    pub fn device_batch(&self, nodes: Vec<Vec<u32>>, hops: Vec<HopFound>, seeds: Vec<Vec<u32>>) -> Result<MiniBatch, GraphError> {
        let (graph, schema) = (self.graph(), self.graph().schema());
        let (ntypes, etypes) = (schema.ntypes().len(), schema.etypes().len());
        check_len("nodes", "one list per node type", ntypes, nodes.len())?;
        check_len("seeds", "one list per node type", ntypes, seeds.len())?;
        check_len("hops", "one per hop of the sampler", self.hops(), hops.len())?;
        for ((nodes, name), &count) in nodes.iter().zip(schema.ntypes()).zip(graph.node_counts()) {
            check_ids("nodes", name, nodes, count)?;
        }
        let mut known: Option<&[usize]> = None;
        for found in &hops {
            check_len("edges", "one entry per edge type", etypes, found.edges.len())?;
            check_len("num_dst", "one count per node type", ntypes, found.num_dst.len())?;
            check_len("num_src", "one count per node type", ntypes, found.num_src.len())?;
            for t in 0..ntypes {
                let (dst, src, all) = (found.num_dst[t], found.num_src[t], nodes[t].len());
                if known.is_some_and(|known| known[t] != dst) || dst > src || src > all {
                    let expected = format!("counts that grow from hop to hop up to the {all} nodes of type `{}`", schema.ntypes()[t]);
                    return Err(setting("num_src", &expected, &format!("{src} after {dst}")));
                }
            }
            known = Some(&found.num_src);
        }
        let of_seeds = hops.first().map_or_else(|| nodes.iter().map(Vec::len).collect(), |found| found.num_dst.clone());
        for ((rows, name), bound) in seeds.iter().zip(schema.ntypes()).zip(of_seeds) {
            check_ids("seeds", name, rows, bound)?;
        }
        let nodes: Arc<[Vec<u32>]> = nodes.into();
        let block = |found: HopFound| {
            let one = |(t, edges): (usize, Option<HopEdges>)| {
                let ((s, d), name) = (schema.ends(t), schema.etypes()[t].to_string());
                let empty = || HopEdges { indptr: vec![0; found.num_dst[d] + 1], ..HopEdges::default() };
                let edges = edges.unwrap_or_else(empty);
                let check = || {
                    check_len("indptr", "number of destinations + 1", found.num_dst[d] + 1, edges.indptr.len())?;
                    check_len("positions", "one per edge", edges.src.len(), edges.positions.len())
                };
                check().map_err(|e| e.in_relation(&name))?;
                check_ids("positions", &name, &edges.positions, graph.relations()[t].num_edges())?;
                let relation = Relation::from_rows(found.num_src[s], edges.indptr, edges.src).map_err(|e| e.in_relation(&name))?;
                Ok((relation, edges.positions))
            };
            let made: Result<Vec<_>, GraphError> = found.edges.into_iter().enumerate().map(one).collect();
            let (relations, positions) = made?.into_iter().unzip();
            Ok(Block::new(&self.source, &nodes, BlockParts { relations, positions, num_src: found.num_src, num_dst: found.num_dst }))
        };
        let blocks = hops.into_iter().rev().map(block).collect::<Result<_, GraphError>>()?;
        Ok(MiniBatch { blocks, seeds, roots: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Graph;

    fn found() -> (Vec<Vec<u32>>, Vec<HopFound>, Vec<Vec<u32>>) {
        let edges = |indptr: &[u32], src: &[u32], positions: &[u32]| HopEdges {
            indptr: indptr.to_vec(),
            src: src.to_vec(),
            positions: positions.to_vec(),
        };
        // Of edges 0 -> 1, 1 -> 2, 2 -> 3, 0 -> 2, around node 2.
        let near = HopFound { edges: vec![Some(edges(&[0, 2], &[1, 2], &[1, 2]))], num_dst: vec![1], num_src: vec![3] };
        let far = HopFound { edges: vec![Some(edges(&[0, 2, 3, 3], &[1, 2, 2], &[1, 2, 0]))], num_dst: vec![3], num_src: vec![3] };
        (vec![vec![2, 1, 0]], vec![near, far], vec![vec![0, 0]])
    }

    /// What a device answers is data from outside: nothing of it reaches kernels unchecked.
    #[test]
    fn every_wrong_array_is_refused() {
        let g = Graph::homogeneous(4, vec![0, 1, 2, 0], vec![1, 2, 3, 2]).unwrap();
        let sampler = NeighborSampler::new(&g, [-1, -1]).unwrap();
        let make = |(nodes, hops, seeds)| sampler.device_batch(nodes, hops, seeds);
        let batch = make(found()).unwrap();
        assert_eq!(batch.blocks[1].relations()[0].csc().indices(), [1, 2]);
        assert_eq!(batch.blocks[0].relations()[0].csc().indptr(), [0, 2, 3, 3]);
        type Spoil = fn(&mut Vec<Vec<u32>>, &mut Vec<HopFound>, &mut Vec<Vec<u32>>);
        fn edges(hop: &mut HopFound) -> &mut HopEdges {
            hop.edges[0].as_mut().unwrap()
        }
        let spoils: &[(&str, Spoil)] = &[
            ("nodes", |nodes, _, _| nodes.clear()),
            ("nodes", |nodes, _, _| nodes[0][1] = 4),
            ("num_src", |nodes, _, _| nodes[0].truncate(2)),
            ("seeds", |_, _, seeds| seeds.clear()),
            ("seeds", |_, _, seeds| seeds[0][1] = 1),
            ("hops", |_, hops, _| hops.truncate(1)),
            ("edges", |_, hops, _| hops[0].edges.clear()),
            ("num_dst", |_, hops, _| hops[0].num_dst.clear()),
            ("num_src", |_, hops, _| hops[0].num_src.push(1)),
            ("num_src", |_, hops, _| hops[0].num_src[0] = 2),
            ("num_src", |_, hops, _| hops[0].num_dst[0] = 4),
            ("num_src", |_, hops, _| hops[1].num_src[0] = usize::MAX),
            // Positions left out: rows that no kernel would write.
            ("indptr", |_, hops, _| edges(&mut hops[0]).indptr[1] = 1),
            ("indptr", |_, hops, _| edges(&mut hops[0]).indptr[1] = 3),
            ("indptr", |_, hops, _| edges(&mut hops[0]).indptr[0] = 1),
            ("indptr", |_, hops, _| edges(&mut hops[0]).indptr.clear()),
            ("indptr", |_, hops, _| edges(&mut hops[1]).indptr[1] = u32::MAX),
            ("src", |_, hops, _| edges(&mut hops[0]).src[0] = 3),
            ("src", |_, hops, _| edges(&mut hops[1]).src[2] = u32::MAX),
            ("positions", |_, hops, _| edges(&mut hops[0]).src.push(0)),
            ("positions", |_, hops, _| edges(&mut hops[0]).positions[1] = 4),
            ("positions", |_, hops, _| edges(&mut hops[1]).positions.truncate(1)),
        ];
        for (i, (arg, spoil)) in spoils.iter().enumerate() {
            let (mut nodes, mut hops, mut seeds) = found();
            spoil(&mut nodes, &mut hops, &mut seeds);
            let e = make((nodes, hops, seeds)).map(|_| ()).unwrap_err().to_string();
            assert!(e.contains(arg), "{i}: {e}");
        }
    }
}
