//! Samples one hop of a batch, and assigns rows to the nodes that it finds.
//!
//! # Algorithm
//! The destinations of a hop are all nodes found so far. The hop draws some in-edges of each, reads their sources, and
//! gives each new source the next row of its node type.
//!
//! ```text
//! nodes[type] = distinct seeds
//! for hop in hops:
//!     pieces = split the destinations of every relation into pieces of about equal work
//!     for piece in pieces, in parallel:
//!         for v in piece.destinations:                      # 1
//!             piece.positions += choose(row of v in CSC)    # draws keyed by hop, relation and original id of v
//!         piece.sources = indices[piece.positions]          # 2
//!     for each source type, in parallel:                    # 3
//!         for piece in its pieces, in order:
//!             for u in piece.sources:
//!                 if row[u] is unset: row[u] = nodes[type].len(); nodes[type].push(u)
//!                 edge.src = row[u]
//!     block = one relation per edge type, between rows
//! ```
//!
//! 1. Positions are drawn first and sources are read afterwards, in a loop of their own: the cache misses of a loop that
//!    only reads overlap, while a draw between two reads would wait for each.
//! 2. Pieces have at most 256 destinations if each draws few edges, and about 4096 edges if a choice must look at the
//!    whole row. So a node of high degree does not leave the other threads idle.
//! 3. Rows are assigned sequentially per node type, in the order of relations, destinations and edges. The numbering
//!    therefore does not depend on threads, and node types are numbered in parallel.
//! 4. `row[u]` is one array of 4 bytes per node that is kept from batch to batch. Entries of an older batch are below
//!    its first row number, so that it is never cleared (see `relabel`).
//! 5. All buffers are in `Memory`, and are reused by the next batch.

use std::sync::Arc;

use rayon::prelude::*;

use crate::batch::block::{Block, BlockParts, Bounds};
use crate::batch::mini_batch::MiniBatch;
use crate::choice::choose::Choice;
use crate::choice::edge_attributes::EdgeTimes;
use crate::choice::fanout::ALL;
use crate::choice::strategy::Strategy;
use crate::neighbor::memory::{Memory, Piece};
use crate::neighbor::relabel::{RootedRows, Rows};
use crate::neighbor::sampler::NeighborSampler;
use crate::neighbor::stored_relation;
use crate::neighbor::trees::Trees;
use crate::random::key::SampleKey;
use burn_gnn_graph::internal::{OrPanic, check_limit, room};
use burn_gnn_graph::{GraphError, Relation, Stream};

/// Writes the row of each source of a piece; appends new sources to the nodes of their type.
type Number<'a> = Box<dyn FnMut(&Piece, &mut Vec<u32>, &mut [u32]) + Send + 'a>;
/// Rows of a node type by tree and id, and the tree of each row.
type Rooted<'a> = (&'a mut RootedRows, &'a mut Vec<u32>);

/// Destinations per piece if a choice costs `O(fan-out)`.
const PIECE: usize = 256;
/// Up to this number of edges a hop does not check for free memory.
const FEW_EDGES: u64 = 1 << 24;
/// Edges per piece if a choice looks at the whole row.
const PIECE_EDGES: usize = 4096;

/// Runs `f` on every item, on all threads or on the calling one.
fn each<T: Send>(parallel: bool, items: &mut [T], f: impl Fn(&mut T) + Send + Sync) {
    if parallel {
        items.par_iter_mut().with_max_len(1).for_each(f);
    } else {
        items.iter_mut().for_each(f);
    }
}

impl NeighborSampler {
    /// Samples the batch around `seeds`, which are validated.
    pub(crate) fn grow(
        &self,
        seeds: &[Vec<u32>],
        mut trees: Option<Trees>,
        excluded: &[Vec<(u32, u32)>],
        key: SampleKey,
        memory: &mut Memory,
    ) -> Result<MiniBatch, GraphError> {
        let mut nodes: Vec<Vec<u32>> = vec![vec![]; seeds.len()];
        let mut rows = vec![];
        for (t, ids) in seeds.iter().enumerate() {
            let mut of = vec![0; ids.len()];
            match &mut trees {
                None => memory.rows[t].relabel(ids, &mut nodes[t], &mut of),
                // The first row of a tree is its seed.
                Some(Trees { known, roots }) => {
                    for ((&v, row), &root) in ids.iter().zip(&mut of).zip(&known.of_seeds[t]) {
                        *row = memory.rooted[t].relabel(root, v, &mut nodes[t], &mut roots[t]);
                    }
                }
            }
            rows.push(of);
        }
        let hops = self.first..self.fanouts.len();
        let parts: Result<Vec<BlockParts>, GraphError> = hops
            .map(|hop| self.hop(hop, &mut nodes, trees.as_mut(), excluded, key, memory))
            .collect();
        memory
            .rows
            .iter_mut()
            .zip(&nodes)
            .filter(|_| trees.is_none())
            .for_each(|(rows, nodes)| rows.next_batch(nodes.len()));
        memory.rooted.iter_mut().for_each(RootedRows::clear);
        // The error is returned only now, so that the buffers are clean for the next batch.
        let mut parts = parts?;
        parts.reverse();
        let nodes: Arc<[Vec<u32>]> = nodes.into();
        let bounds = trees
            .as_ref()
            .and_then(|t| Some(Bounds::new(&self.rules, &t.roots, t.known.times.as_deref()?)));
        let blocks = parts
            .into_iter()
            .map(|parts| Block::new(&self.source, &nodes, parts, bounds.as_ref()).with_key(key))
            .collect();
        Ok(MiniBatch { blocks, seeds: rows, roots: trees.map(|t| t.roots) })
    }

    fn hop(
        &self,
        hop: usize,
        nodes: &mut [Vec<u32>],
        trees: Option<&mut Trees>,
        excluded: &[Vec<(u32, u32)>],
        key: SampleKey,
        memory: &mut Memory,
    ) -> Result<BlockParts, GraphError> {
        let (g, parallel) = (&self.source.graph, self.is_parallel());
        let choices: Vec<Choice<'_>> =
            (0..g.relations().len()).map(|t| self.choice(hop, t, excluded, key)).collect();
        let num_dst: Vec<usize> = nodes.iter().map(Vec::len).collect();
        let used = self.cut(&choices, nodes, &mut memory.pieces)?;
        let pieces = &mut memory.pieces[..used];
        {
            let (nodes, trees) = (&*nodes, trees.as_deref());
            each(parallel, pieces, |piece| self.fill(piece, &choices[piece.etype], nodes, trees));
        }
        if let Some(e) = pieces.iter_mut().find_map(|piece| piece.failed.take()) {
            return Err(e);
        }
        // Assigns rows to new nodes and builds the relations, per source type.
        let pieces = &*pieces;
        let of_type = |t: usize, nodes: &mut Vec<u32>, mut number: Number<'_>| {
            let lists = g.schema().etypes_from(t).map(|e| {
                let first = pieces.partition_point(|p| p.etype < e);
                let pieces = &pieces[first..pieces.partition_point(|p| p.etype <= e)];
                let total = pieces.iter().map(|p| p.found.len()).sum();
                let mut src = vec![0; total];
                let mut relabel = || {
                    let mut left = &mut src[..];
                    for piece in pieces {
                        let (out, rest) = std::mem::take(&mut left).split_at_mut(piece.found.len());
                        number(piece, nodes, out);
                        left = rest;
                    }
                };
                let collect = || rows_of(pieces, num_dst[g.schema().endpoints(e).1], total);
                let (indptr, edges) = if parallel {
                    rayon::join(relabel, collect).1
                } else {
                    (relabel(), collect()).1
                };
                (e, src, indptr, edges)
            });
            let lists: Vec<_> = lists.collect();
            let num_src = nodes.len();
            let valid =
                |r: Result<Relation, _>| r.map_err(|e| format!("edges of a block: {e}")).or_panic();
            lists
                .into_iter()
                .map(|(e, src, indptr, edges)| {
                    (e, valid(Relation::from_rows(num_src, indptr, src)), edges)
                })
                .collect::<Vec<_>>()
        };
        let lists: Vec<Vec<(usize, Relation, Vec<u32>)>> = match trees {
            None => {
                let one = |(t, (rows, nodes)): (usize, (&mut Rows, &mut Vec<u32>))| {
                    of_type(
                        t,
                        nodes,
                        Box::new(|piece, nodes, out| rows.relabel(&piece.found, nodes, out)),
                    )
                };
                let rows = &mut memory.rows[..];
                if parallel && nodes.len() > 1 {
                    rows.par_iter_mut()
                        .zip(nodes.par_iter_mut())
                        .enumerate()
                        .with_max_len(1)
                        .map(one)
                        .collect()
                } else {
                    rows.iter_mut().zip(nodes.iter_mut()).enumerate().map(one).collect()
                }
            }
            Some(trees) => {
                let known = trees.roots.clone();
                let types = memory
                    .rooted
                    .iter_mut()
                    .zip(&mut trees.roots)
                    .zip(nodes.iter_mut())
                    .enumerate();
                let one = |(t, ((rows, roots), nodes)): (usize, (Rooted<'_>, &mut Vec<u32>))| {
                    let number = |piece: &Piece, nodes: &mut Vec<u32>, out: &mut [u32]| {
                        let of_dst = &known[g.schema().endpoints(piece.etype).1][piece.dst.clone()];
                        let root_of = of_dst
                            .iter()
                            .zip(&piece.counts)
                            .flat_map(|(&r, &n)| std::iter::repeat_n(r, n as usize));
                        for ((&v, root), out) in piece.found.iter().zip(root_of).zip(out) {
                            *out = rows.relabel(root, v, nodes, roots);
                        }
                    };
                    of_type(t, nodes, Box::new(number))
                };
                types.map(one).collect()
            }
        };
        // Back into schema order: the lists are grouped by source type.
        let mut made: Vec<_> = lists.into_iter().flatten().collect();
        made.sort_unstable_by_key(|of_type| of_type.0);
        let (relations, positions) = made.into_iter().map(|(_, r, edges)| (r, edges)).unzip();
        Ok(BlockParts {
            relations,
            positions,
            num_src: nodes.iter().map(Vec::len).collect(),
            num_dst,
        })
    }

    /// Random stream of one relation at one hop, keyed by destination.
    pub(crate) fn draw_stream(&self, hop: usize, t: usize, key: SampleKey) -> Stream {
        key.stream(&format!("neighbors/{}/{hop}", self.source.graph.schema().etypes()[t]))
    }

    /// Describes how one relation is sampled at one hop.
    fn choice<'a>(
        &'a self,
        hop: usize,
        t: usize,
        excluded: &'a [Vec<(u32, u32)>],
        key: SampleKey,
    ) -> Choice<'a> {
        let (schema, relation) = (self.source.graph.schema(), &self.source.graph.relations()[t]);
        let (s, _) = schema.endpoints(t);
        let fanout = self.fanouts[hop][t];
        // CSC is built on first use: a relation that is never sampled does not need it.
        let csc = (fanout > 0 && relation.stored().is_none()).then(|| relation.csc());
        let shared = matches!(self.strategy, Strategy::Labor { layer_dependent: true });
        Choice {
            rule: &self.rules[t],
            times: self.rules[t].times.as_ref().and_then(EdgeTimes::by_position).map(|of| &**of),
            strategy: self.strategy,
            replace: self.replace,
            fanout,
            stream: self.draw_stream(hop, t, key),
            // Keyed by node type and not by relation, so that all relations draw the same number for a source.
            by_source: key.stream(&format!(
                "labor/{}/{}",
                schema.ntypes()[s],
                if shared { 0 } else { hop }
            )),
            source_ids: &self.source.node_ids[s],
            excluded: excluded.get(t).map_or(&[], |e| e),
            indices: csc.map_or(&[], |c| c.indices()),
            edge_ids: csc.and_then(|c| c.edge_ids()),
        }
    }

    /// Splits the destinations into pieces of about equal work, in the order of relations and destinations. Returns the
    /// number of pieces.
    fn cut(
        &self,
        choices: &[Choice<'_>],
        nodes: &[Vec<u32>],
        pieces: &mut Vec<Piece>,
    ) -> Result<usize, GraphError> {
        let g = &self.source.graph;
        let mut used = 0;
        let mut push = |etype, dst| {
            if used == pieces.len() {
                pieces.push(Piece::default());
            }
            (pieces[used].etype, pieces[used].dst) = (etype, dst);
            used += 1;
        };
        for (t, choice) in choices.iter().enumerate().filter(|(_, c)| c.fanout > 0) {
            let dst = &nodes[g.schema().endpoints(t).1];
            if choice.replace && choice.fanout != ALL {
                self.check_room(t, dst, choice.fanout)?;
            }
            let (all, rule) = (choice.fanout == ALL, choice.rule);
            let looks_at_all = all
                || choice.strategy != Strategy::Uniform
                || rule.mask.is_some()
                || rule.times.is_some();
            if !looks_at_all {
                (0..dst.len()).step_by(PIECE).for_each(|i| push(t, i..(i + PIECE).min(dst.len())));
                continue;
            }
            let (relation, mut from, mut edges) = (&g.relations()[t], 0, 0);
            let stored = stored_relation::degrees(relation, dst)?;
            for (i, &v) in dst.iter().enumerate() {
                edges += stored
                    .as_ref()
                    .map_or_else(|| relation.csc().row(v as usize).len(), |of| of[i] as usize)
                    + 1;
                if edges >= PIECE_EDGES {
                    push(t, from..i + 1);
                    (from, edges) = (i + 1, 0);
                }
            }
            if from < dst.len() {
                push(t, from..dst.len());
            }
        }
        Ok(used)
    }

    /// Checks that the edges of a hop fit into memory, when every node gets exactly `fanout` edges.
    fn check_room(&self, t: usize, dst: &[u32], fanout: u32) -> Result<(), GraphError> {
        let name = || self.source.graph.schema().etypes()[t].to_string();
        let edges = dst.len() as u64 * u64::from(fanout);
        if edges <= FEW_EDGES {
            return Ok(());
        }
        check_limit("edges of a hop", edges).map_err(|e| e.in_relation(&name()))?;
        // Position and neighbour of each edge, here and in its block.
        let what = || format!("{edges} sampled edges of `{}`", name());
        let remedy = "use a smaller fan-out, fewer seeds, or sampling without replacement";
        room::<[u32; 4]>(edges.into(), what, remedy).map(drop)
    }

    fn fill(
        &self,
        piece: &mut Piece,
        choice: &Choice<'_>,
        nodes: &[Vec<u32>],
        trees: Option<&Trees>,
    ) {
        // A previous batch may have left an error: it reported only the first of its failed pieces.
        piece.failed = None;
        if let Some(reader) = self.source.graph.relations()[piece.etype].stored() {
            piece.failed = self.fill_stored(piece, choice, &**reader, nodes, trees).err();
            return;
        }
        let csc = self.source.graph.relations()[piece.etype].csc();
        let (_, d) = self.source.graph.schema().endpoints(piece.etype);
        let dst = &nodes[d][piece.dst.clone()];
        let original = self.source.node_ids[d].as_slice();
        let Piece { layout, counts, found, positions, memory, .. } = piece;
        layout.clear();
        layout
            .extend(dst.iter().map(|&v| (csc.indptr()[v as usize], csc.indptr()[v as usize + 1])));
        counts.clear();
        found.clear();
        for (i, (&v, &(start, end))) in dst.iter().zip(&*layout).enumerate() {
            let before = found.len();
            let id = u64::from(original.map_or(v, |ids| ids[v as usize]));
            let (id, time) =
                trees.map_or((id, None), |trees| trees.draw_id(d, piece.dst.start + i, id));
            choice.row(v, id, time, start as usize..end as usize, memory, found);
            counts.push((found.len() - before) as u32);
        }
        positions.clear();
        positions.extend_from_slice(found);
        let indices = csc.indices();
        found.iter_mut().for_each(|p| *p = indices[*p as usize]);
    }
}

/// Concatenates the offsets and edge positions of the pieces of one relation.
fn rows_of(pieces: &[Piece], num_dst: usize, total: usize) -> (Vec<u32>, Vec<u32>) {
    let (mut indptr, mut positions, mut sum) =
        (Vec::with_capacity(num_dst + 1), Vec::with_capacity(total), 0);
    indptr.push(0);
    for piece in pieces {
        indptr.extend(piece.counts.iter().map(|n| {
            sum += n;
            sum
        }));
        positions.extend_from_slice(&piece.positions);
    }
    // A relation with fan-out 0 has no pieces.
    indptr.resize(num_dst + 1, sum);
    (indptr, positions)
}
