//! Samples one hop, and renumbers its nodes in the same pass.
//!
//! The destinations of a hop are cut into pieces. For each piece one thread draws positions, then reads what stands
//! there: the reads of a loop that does nothing else overlap in the processor. Then each source type numbers its new
//! nodes in the order of relations, destinations and edges, so that nothing depends on threads.

use std::sync::Arc;

use rayon::prelude::*;

use crate::batch::block::{Block, BlockParts, Bounds};
use crate::batch::mini_batch::MiniBatch;
use crate::choice::choose::Choice;
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

/// Writes the numbers of a piece's nodes, new ones among the nodes of their type.
type Number<'a> = Box<dyn FnMut(&Piece, &mut Vec<u32>, &mut [u32]) + Send + 'a>;
/// Rows of a type under the roots of their trees, and those roots.
type Rooted<'a> = (&'a mut RootedRows, &'a mut Vec<u32>);

/// Destinations of a piece where all draws are short.
const PIECE: usize = 256;
/// Edges of a hop for which no one asks whether there is room.
const FEW_EDGES: u64 = 1 << 24;
/// Edges of a piece where a node may have to look at all of its edges.
const PIECE_EDGES: usize = 4096;

/// Runs `f` on every item, on all threads or on this one.
fn each<T: Send>(parallel: bool, items: &mut [T], f: impl Fn(&mut T) + Send + Sync) {
    if parallel {
        items.par_iter_mut().with_max_len(1).for_each(f);
    } else {
        items.iter_mut().for_each(f);
    }
}

impl NeighborSampler {
    /// The batch around `seeds`, which are in range.
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
                // A tree begins with its seed.
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
        // After an error too nothing of the batch is left in memory.
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
        // Numbers of new nodes, and the relations, by source type.
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
        // Each edge type has one source type.
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

    /// Draws by destination of one relation at one hop.
    pub(crate) fn draw_stream(&self, hop: usize, t: usize, key: SampleKey) -> Stream {
        key.stream(&format!("neighbors/{}/{hop}", self.source.graph.schema().etypes()[t]))
    }

    /// How one relation is sampled at one hop.
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
        // CSC is built by the first one who asks: not for a relation that is never sampled.
        let csc = (fanout > 0 && relation.stored().is_none()).then(|| relation.csc());
        let shared = matches!(self.strategy, Strategy::Labor { layer_dependent: true });
        Choice {
            rule: &self.rules[t],
            strategy: self.strategy,
            replace: self.replace,
            fanout,
            stream: self.draw_stream(hop, t, key),
            // By the source's type alone, so that relations agree as well.
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

    /// Pieces of about equal work, in the order of relations and destinations; their number.
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

    /// Refuses more edges than memory holds, where every node with candidates gets as many as its fan-out.
    fn check_room(&self, t: usize, dst: &[u32], fanout: u32) -> Result<(), GraphError> {
        let name = || self.source.graph.schema().etypes()[t].to_string();
        let edges = dst.len() as u64 * u64::from(fanout);
        if edges <= FEW_EDGES {
            return Ok(());
        }
        check_limit("edges of a hop", edges).map_err(|e| e.in_relation(&name()))?;
        // Position and neighbour of each edge, here and in its block.
        let what = || format!("{edges} sampled edges of `{}`", name());
        let remedy = "choose a smaller fan-out, fewer seeds or draws without replacement";
        room::<[u32; 4]>(edges.into(), what, remedy).map(drop)
    }

    fn fill(
        &self,
        piece: &mut Piece,
        choice: &Choice<'_>,
        nodes: &[Vec<u32>],
        trees: Option<&Trees>,
    ) {
        // Several pieces of a batch may have failed, of which one was reported.
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

/// Offsets of all destinations and positions of all edges of one relation.
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
    // A relation that is not sampled has no piece.
    indptr.resize(num_dst + 1, sum);
    (indptr, positions)
}
