//! Describes a sampler for a GPU, and assembles and validates the batch that the GPU sampled.

use std::sync::Arc;

use crate::batch::block::{Block, BlockParts, Bounds};
use crate::batch::mini_batch::MiniBatch;
use crate::choice::edge_attributes::EdgeAttributes;
use crate::choice::fanout::ALL;
use crate::choice::strategy::Strategy;
use crate::neighbor::sampler::NeighborSampler;
use crate::random::key::SampleKey;
use burn_gnn_graph::internal::{check_ids, check_len, setting};
use burn_gnn_graph::{GraphError, KHop, Relation};

/// How a GPU samples one relation at one hop.
#[doc(hidden)]
#[derive(Debug)]
pub struct HopDraws<'a> {
    /// The edge type.
    pub etype: usize,
    /// Edges of the type.
    pub relation: &'a Relation,
    /// Number of edges per node; `u32::MAX` means all.
    pub fanout: u32,
    /// Whether an edge may be drawn several times.
    pub replace: bool,
    /// Key of the draws.
    pub key: [u32; 2],
    /// Original id of each destination, which keys its draws; `None` if original ids equal ids.
    pub ids: Option<&'a [u32]>,
    /// Weight of each edge by position in CSC, for weighted draws.
    pub weights: Option<&'a [f32]>,
    /// Whether there is a mask ([`NeighborSampler::device_mask`]).
    pub masked: bool,
    /// Whether the edges with the smallest keys are taken, instead of random ones ([`NeighborSampler::device_order`]).
    pub ordered: bool,
}

/// Times of the edges of a relation as 32-bit ranks among the distinct times.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeRanks {
    /// Distinct times, ascending.
    pub distinct: Vec<i64>,
    /// Rank of the time of each edge, by position in CSC.
    pub of_edges: Vec<u32>,
}

impl TimeRanks {
    /// Edges are before `time` if their rank is below this number.
    pub fn before(&self, time: i64) -> u32 {
        self.distinct.partition_point(|&t| t < time) as u32
    }
}

/// Tree of each row of a batch with disjoint trees.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct FoundTrees {
    /// Tree of each row per node type: the position of its seed in the concatenated list of seeds.
    pub roots: Vec<Vec<u32>>,
    /// Time of each tree.
    pub times: Option<Vec<i64>>,
}

/// Sampled edges of one relation at one hop.
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

/// Sampled edges and counts of one hop.
#[doc(hidden)]
#[derive(Debug)]
pub struct HopFound {
    /// Edges per edge type; `None` for a relation that was not sampled.
    pub edges: Vec<Option<HopEdges>>,
    /// Number of nodes of each type before the hop.
    pub num_dst: Vec<usize>,
    /// Number of nodes of each type after the hop.
    pub num_src: Vec<usize>,
}

#[doc(hidden)]
impl NeighborSampler {
    /// Validates the arguments of a batch: seeds, their times and excluded edges, per type in schema order.
    ///
    /// # Errors
    /// Lists without exactly one entry per type or seed; ids out of range; seeds with times if edges have none, or without
    /// if edges have times.
    #[allow(clippy::type_complexity)] // The arguments, checked.
    pub fn batch_request(
        &self,
        seeds: &[Vec<u32>],
        times: Option<&[Vec<i64>]>,
        excluded: &[Vec<u32>],
    ) -> Result<(Vec<Vec<u32>>, Option<Vec<Vec<i64>>>, Vec<Vec<u32>>), GraphError> {
        let ntypes = self.graph().schema().ntypes();
        check_len("seeds", "one list per node type", ntypes.len(), seeds.len())?;
        let excluded = self.graph().edge_selection("excluded", excluded.iter().enumerate())?;
        let named = ntypes.iter().zip(seeds);
        let Some(times) = times else {
            self.check_untimed()?;
            return Ok((self.graph().node_selection("seeds", named)?, None, excluded));
        };
        check_len("times", "one list per node type", ntypes.len(), times.len())?;
        let (seeds, times) =
            self.seeds_before(named.zip(times).map(|((name, ids), times)| (name, ids, times)))?;
        Ok((seeds, Some(times), excluded))
    }

    /// A setting of this sampler that GPU sampling does not support, if any.
    pub fn device_lacks(&self) -> Option<&'static str> {
        let stored = |rule: &EdgeAttributes| {
            rule.times.as_ref().is_some_and(|times| times.in_memory().is_none())
        };
        if self.rules.iter().any(stored) {
            return Some("times in a file (`with_stored_times`)");
        }
        matches!(self.strategy, Strategy::Labor { .. })
            .then_some("`Strategy::Labor`, whose keys are 64-bit floats")
    }

    /// Original ids of the nodes of a type, if they differ from ids.
    pub fn device_node_ids(&self, ntype: usize) -> Option<&[u32]> {
        self.source.node_ids[ntype].as_slice()
    }

    /// Whether every seed has a separate tree.
    pub fn is_disjoint(&self) -> bool {
        self.disjoint
    }

    /// Weights that only decide whether an edge may be taken.
    fn device_weights(&self, etype: usize) -> Option<&[f32]> {
        self.rules[etype].weights.as_deref().filter(|_| self.strategy == Strategy::TopK)
    }

    fn is_masked(&self, etype: usize) -> bool {
        self.rules[etype].mask.is_some() || self.device_weights(etype).is_some()
    }

    /// Mask of the edges of a type: one bit per position in CSC, lowest bit first; `None` if all edges may be taken.
    pub fn device_mask(&self, etype: usize) -> Option<Vec<u32>> {
        if !self.is_masked(etype) {
            return None;
        }
        let (mask, weights) = (self.rules[etype].mask.as_deref(), self.device_weights(etype));
        let is_open = |&p: &usize| {
            mask.is_none_or(|mask| mask[p]) && weights.is_none_or(|weights| weights[p] > 0.0)
        };
        let edges = self.graph().relations()[etype].num_edges();
        let word = |from: usize| {
            (from..edges.min(from + 32)).filter(is_open).fold(0, |bits, p| bits | 1 << (p - from))
        };
        Some((0..edges).step_by(32).map(word).collect())
    }

    /// Key of each edge of a type by position in CSC, for strategies that take the smallest keys.
    pub fn device_order(&self, etype: usize) -> Option<Vec<u32>> {
        match self.strategy {
            // Positive floats have the order of their bits.
            Strategy::TopK => self.rules[etype]
                .weights
                .as_ref()
                .map(|weights| weights.iter().map(|w| !w.to_bits()).collect()),
            // Among equal times the later edge gets the smaller key, so that all keys are distinct.
            Strategy::Latest => self.rules[etype].times.as_ref()?.by_position().map(|times| {
                let mut order: Vec<u32> = (0..times.len() as u32).collect();
                order.sort_unstable_by_key(|&p| (times[p as usize], p));
                let mut keys = vec![0; order.len()];
                order.iter().zip(0u32..).for_each(|(&p, rank)| keys[p as usize] = !rank);
                keys
            }),
            Strategy::Uniform
            | Strategy::Weighted
            | Strategy::InDegree
            | Strategy::Labor { .. } => None,
        }
    }

    /// Times of the edges of a type as 32-bit ranks.
    pub fn device_times(&self, etype: usize) -> Option<TimeRanks> {
        let times = self.rules[etype].times.as_ref()?.by_position()?;
        let mut distinct = times.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let of_edges =
            times.iter().map(|time| distinct.partition_point(|t| t < time) as u32).collect();
        Some(TimeRanks { distinct, of_edges })
    }

    /// How hop `hop` is sampled, per relation with a fan-out above 0; hop 0 is the hop of the seeds.
    pub fn device_hop(&self, hop: usize, key: SampleKey) -> Vec<HopDraws<'_>> {
        let (g, hop) = (self.graph(), self.first + hop);
        let weighs = matches!(self.strategy, Strategy::Weighted | Strategy::InDegree);
        let one = |etype: usize| {
            let d = g.schema().endpoints(etype).1;
            let fanout = self.fanouts[hop][etype];
            HopDraws {
                etype,
                relation: &g.relations()[etype],
                fanout,
                replace: self.replace && fanout != ALL,
                key: self.draw_stream(hop, etype, key).key(),
                ids: self.source.node_ids[d].as_slice(),
                weights: self.rules[etype].weights.as_deref().filter(|_| weighs),
                masked: self.is_masked(etype),
                ordered: matches!(self.strategy, Strategy::TopK | Strategy::Latest),
            }
        };
        (0..g.relations().len()).map(one).filter(|draws| draws.fanout > 0).collect()
    }

    /// Assembles the batch from all hops, starting with the hop of the seeds. `nodes` are the nodes of each type in the
    /// order in which they were found, `seeds` is the row of each seed, and `trees` the tree of each node, if disjoint.
    ///
    /// # Errors
    /// Lists without exactly one entry per hop or type; counts that do not continue those of the previous hop; nodes, rows
    /// or positions out of range; offsets that do not run from 0 to the number of edges.
    ///
    /// # Cost
    /// Validates every number: `O(nodes + edges)` of the batch.
    pub fn device_batch(
        &self,
        nodes: Vec<Vec<u32>>,
        hops: Vec<HopFound>,
        seeds: Vec<Vec<u32>>,
        trees: Option<FoundTrees>,
    ) -> Result<MiniBatch, GraphError> {
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
                    let expected = format!(
                        "counts that grow from hop to hop up to the {all} nodes of type `{}`",
                        schema.ntypes()[t]
                    );
                    return Err(setting("num_src", &expected, &format!("{src} after {dst}")));
                }
            }
            known = Some(&found.num_src);
        }
        let of_seeds = hops
            .first()
            .map_or_else(|| nodes.iter().map(Vec::len).collect(), |found| found.num_dst.clone());
        for ((rows, name), bound) in seeds.iter().zip(schema.ntypes()).zip(of_seeds) {
            check_ids("seeds", name, rows, bound)?;
        }
        if let Some(trees) = &trees {
            let all = seeds.iter().map(Vec::len).sum();
            check_len("roots", "one list per node type", ntypes, trees.roots.len())?;
            for ((roots, nodes), name) in trees.roots.iter().zip(&nodes).zip(schema.ntypes()) {
                check_len("roots", "one per node", nodes.len(), roots.len())
                    .map_err(|e| e.in_relation(name))?;
                check_ids("roots", name, roots, all)?;
            }
            if let Some(times) = &trees.times {
                check_len("times", "one per seed", all, times.len())?;
            }
        }
        let bounds = trees.as_ref().and_then(|trees| {
            Some(Bounds::new(&self.rules, &trees.roots, trees.times.as_deref()?))
        });
        let nodes: Arc<[Vec<u32>]> = nodes.into();
        let block = |found: HopFound| {
            let one = |(t, edges): (usize, Option<HopEdges>)| {
                let ((s, d), name) = (schema.endpoints(t), schema.etypes()[t].to_string());
                let empty =
                    || HopEdges { indptr: vec![0; found.num_dst[d] + 1], ..HopEdges::default() };
                let edges = edges.unwrap_or_else(empty);
                let check = || {
                    check_len(
                        "indptr",
                        "number of destinations + 1",
                        found.num_dst[d] + 1,
                        edges.indptr.len(),
                    )?;
                    check_len("positions", "one per edge", edges.src.len(), edges.positions.len())
                };
                check().map_err(|e| e.in_relation(&name))?;
                check_ids("positions", &name, &edges.positions, graph.relations()[t].num_edges())?;
                let relation = Relation::from_rows(found.num_src[s], edges.indptr, edges.src)
                    .map_err(|e| e.in_relation(&name))?;
                Ok((relation, edges.positions))
            };
            let made: Result<Vec<_>, GraphError> =
                found.edges.into_iter().enumerate().map(one).collect();
            let (relations, positions) = made?.into_iter().unzip();
            let parts =
                BlockParts { relations, positions, num_src: found.num_src, num_dst: found.num_dst };
            Ok(Block::new(&self.source, &nodes, parts, bounds.as_ref()))
        };
        let blocks = hops.into_iter().rev().map(block).collect::<Result<_, GraphError>>()?;
        Ok(MiniBatch { blocks, seeds, roots: trees.map(|trees| trees.roots) })
    }

    /// Makes the subgraph of these nodes and edges per type, as [`induced`](Self::induced) does; `seeds` are rows of
    /// `nodes`.
    ///
    /// # Errors
    /// Lists without exactly one entry per type; ids or rows out of range; an edge between nodes that are not in `nodes`.
    pub fn device_induced(
        &self,
        nodes: Vec<Vec<u32>>,
        mut edges: Vec<Vec<u32>>,
        seeds: Vec<Vec<u32>>,
    ) -> Result<KHop, GraphError> {
        let (g, schema) = (self.graph(), self.graph().schema());
        let (ntypes, etypes) = (schema.ntypes(), schema.etypes());
        check_len("nodes", "one list per node type", ntypes.len(), nodes.len())?;
        check_len("edges", "one list per edge type", etypes.len(), edges.len())?;
        check_len("seeds", "one list per node type", ntypes.len(), seeds.len())?;
        for (t, name) in ntypes.iter().enumerate() {
            check_ids("nodes", name, &nodes[t], g.node_counts()[t])?;
            check_ids("seeds", name, &seeds[t], nodes[t].len())?;
        }
        for ((ids, name), relation) in edges.iter_mut().zip(etypes).zip(g.relations()) {
            check_ids("edges", &name.to_string(), ids, relation.num_edges())?;
            ids.sort_unstable();
        }
        Ok(KHop { subgraph: g.restrict(g.nodes_at(nodes), g.edges_at(edges))?, seeds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_gnn_graph::Graph;

    fn found() -> (Vec<Vec<u32>>, Vec<HopFound>, Vec<Vec<u32>>) {
        let edges = |indptr: &[u32], src: &[u32], positions: &[u32]| HopEdges {
            indptr: indptr.to_vec(),
            src: src.to_vec(),
            positions: positions.to_vec(),
        };
        // Of edges 0 -> 1, 1 -> 2, 2 -> 3, 0 -> 2, around node 2.
        let near = HopFound {
            edges: vec![Some(edges(&[0, 2], &[1, 2], &[1, 2]))],
            num_dst: vec![1],
            num_src: vec![3],
        };
        let far = HopFound {
            edges: vec![Some(edges(&[0, 2, 3, 3], &[1, 2, 2], &[1, 2, 0]))],
            num_dst: vec![3],
            num_src: vec![3],
        };
        (vec![vec![2, 1, 0]], vec![near, far], vec![vec![0, 0]])
    }

    #[test]
    fn wrong_trees_are_errors() {
        let g = Graph::homogeneous(4, vec![0, 1, 2, 0], vec![1, 2, 3, 2]).unwrap();
        let sampler = NeighborSampler::new(&g, [-1, -1]).unwrap();
        let make = |roots: Vec<Vec<u32>>, times: Option<Vec<i64>>| {
            let (nodes, hops, seeds) = found();
            sampler.device_batch(nodes, hops, seeds, Some(FoundTrees { roots, times }))
        };
        assert_eq!(
            make(vec![vec![0, 1, 1]], Some(vec![5, 6])).unwrap().roots,
            Some(vec![vec![0, 1, 1]])
        );
        for (roots, times, arg) in [
            (vec![], None, "roots"),
            (vec![vec![0, 1]], None, "roots"),
            (vec![vec![0, 1, 2]], None, "roots"),
            (vec![vec![0, 1, 1]], Some(vec![5]), "times"),
        ] {
            let e = make(roots, times).map(|_| ()).unwrap_err().to_string();
            assert!(e.contains(arg), "{e}");
        }
    }

    /// Edges 0 to 3 end in node 0, edge 4 in node 1, so positions are edge ids.
    #[test]
    fn masks_and_keys_by_position() {
        let g = Graph::homogeneous(5, vec![1, 2, 3, 4, 0], vec![0, 0, 0, 0, 1]).unwrap();
        let plain = || NeighborSampler::new(&g, [2]).unwrap();
        assert_eq!(
            (plain().device_mask(0), plain().device_order(0), plain().device_times(0)),
            (None, None, None)
        );
        let masked = plain().with_mask(0, &[true, false, true, true, false]).unwrap();
        assert_eq!(masked.device_mask(0), Some(vec![0b01101]));
        let weights = [1.0, 0.0, 2.0, 0.5, 3.0];
        let top = plain().with_weights(0, &weights).unwrap().with_strategy(Strategy::TopK).unwrap();
        assert_eq!(top.device_mask(0), Some(vec![0b11101]), "an edge of weight 0 is never taken");
        let keys = top.device_order(0).unwrap();
        assert!(keys[2] < keys[0] && keys[0] < keys[3], "{keys:?}");
        let timed = plain().with_times(0, &[7, -3, 7, i64::MAX, i64::MIN]).unwrap();
        let ranks = timed.device_times(0).unwrap();
        assert_eq!(
            (&ranks.of_edges[..], ranks.before(7), ranks.before(8)),
            (&[2, 1, 2, 3, 0][..], 2, 3)
        );
        let latest = timed.with_strategy(Strategy::Latest).unwrap();
        assert_eq!(latest.device_order(0), Some(vec![!2, !1, !3, !4, !0]));
        let long = Graph::homogeneous(1, vec![0; 33], vec![0; 33]).unwrap();
        let last = NeighborSampler::new(&long, [1])
            .unwrap()
            .with_mask(0, &[[false; 32].as_slice(), &[true]].concat())
            .unwrap();
        assert_eq!(last.device_mask(0), Some(vec![0, 1]));
    }

    /// Results of a GPU are untrusted input: kernels must not see an invalid number.
    #[test]
    fn every_wrong_array_is_an_error() {
        let g = Graph::homogeneous(4, vec![0, 1, 2, 0], vec![1, 2, 3, 2]).unwrap();
        let sampler = NeighborSampler::new(&g, [-1, -1]).unwrap();
        let make = |(nodes, hops, seeds)| sampler.device_batch(nodes, hops, seeds, None);
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
