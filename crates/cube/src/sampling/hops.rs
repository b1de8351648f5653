//! Samples the hops of a batch: each hop draws edges, then assigns rows to new nodes.

use burn::tensor::{DType, Shape};
use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::{Derived, GraphError};
use burn_gnn_sampling::SampleKey;
use burn_gnn_sampling::internal::HopDraws;

use super::batch::{DeviceBatch, Found, Hop, pick};
use super::device_sampler::{DeviceSampler, Tables, arrays_of};
use super::draw::{
    CandidatesLaunch, NodeWordsLaunch, count_kernel, mark_kernel, smallest_kernel, uniform_kernel,
    weighted_kernel,
};
use super::ids::{Ids, copy, number_at};
use super::renumber::{first_kernel, offer_kernel, row_kernel, settle_kernel};
use super::trees::Trees;

use crate::device::launch::{address, arg, empty, grid};
use crate::device::upload::{check_arrays, upload};
use crate::message::layout::csc;
use crate::numeric::scan::exclusive_sums;

impl DeviceSampler {
    /// Marks edges as excluded, or removes the marks.
    pub(super) fn exclude(&self, edges: &[Ids], tables: &mut Tables, set: bool) {
        for ((t, ids), bits) in edges.iter().enumerate().zip(&mut tables.excluded) {
            if ids.len == 0 {
                continue;
            }
            let words = self.graph().relations()[t].num_edges().div_ceil(32);
            let bits =
                bits.get_or_insert_with(|| upload("excluded edges", &vec![0; words], &self.device));
            let (count, dim) = grid(&bits.client, ids.len);
            // SAFETY: ids are edges of the relation, for each of which there is a bit; threads beyond the ids return
            // early.
            unsafe {
                mark_kernel::launch_unchecked(
                    &bits.client,
                    count,
                    dim,
                    address([&ids.list, bits], ids.len),
                    arg(&ids.list),
                    arg(bits),
                    ids.len,
                    set,
                );
            }
        }
    }

    /// Clears the rows of a batch from the tables. Nodes of disjoint trees are not in the tables.
    pub(super) fn forget(&self, batch: &DeviceBatch, tables: &Tables) {
        for (nodes, table) in batch.nodes.iter().zip(&tables.rows).filter(|_| batch.roots.is_none())
        {
            settle(nodes, table, 0, false);
        }
    }

    /// Samples the batch around seeds. The rows of its nodes stay in `tables`, except for disjoint trees.
    pub(super) fn grow(
        &self,
        seeds: Vec<Ids>,
        mut trees: Option<Trees>,
        excluded: &[Ids],
        key: SampleKey,
        tables: &Tables,
    ) -> Result<DeviceBatch, GraphError> {
        let (mut nodes, rows_of_seeds): (Vec<Ids>, Vec<Ids>) = if trees.is_some() {
            // The first row of a tree is its seed.
            let rows = seeds.iter().map(|ids| (0..ids.len as u32).collect::<Vec<_>>());
            let rows = rows
                .map(|rows| Ids::upload("rows of seeds", &rows, &self.device))
                .collect::<Result<_, _>>()?;
            (seeds, rows)
        } else {
            let mut nodes: Vec<Ids> =
                seeds.iter().map(|_| Ids { list: self.ints(0), len: 0 }).collect();
            let of_type = |((ids, nodes), rows): ((&Ids, &mut Ids), &CubeTensor)| Ids {
                list: self.number(ids, None, nodes, rows),
                len: ids.len,
            };
            let rows = seeds.iter().zip(&mut nodes).zip(&tables.rows).map(of_type).collect();
            (nodes, rows)
        };
        let mut hops = vec![];
        for hop in 0..self.sampler.hops() {
            let counts = |nodes: &[Ids]| nodes.iter().map(|n| n.len).collect::<Vec<_>>();
            let num_dst = counts(&nodes);
            let draws = self.sampler.device_hop(hop, key);
            // In the order of relations, which determines the order of new rows of a type.
            let found: Vec<Found> = draws
                .iter()
                .map(|draw| self.draw(draw, &num_dst, excluded, &mut nodes, trees.as_mut(), tables))
                .collect::<Result<_, _>>()?;
            hops.push(Hop { found, num_dst, num_src: counts(&nodes) });
        }
        let ids = |(list, nodes): (CubeTensor, &Ids)| Ids { list, len: nodes.len };
        let roots = trees.map(|trees| trees.roots.into_iter().zip(&nodes).map(ids).collect());
        Ok(DeviceBatch {
            graph: self.graph().clone(),
            key,
            nodes,
            roots,
            times: None,
            seeds: rows_of_seeds,
            hops,
        })
    }

    /// Draws edges of one relation for the nodes that the previous hops found, and assigns rows to their sources.
    fn draw<'a>(
        &'a self,
        draw: &HopDraws<'_>,
        num_dst: &[usize],
        excluded: &[Ids],
        nodes: &mut [Ids],
        trees: Option<&mut Trees>,
        tables: &Tables,
    ) -> Result<Found, GraphError> {
        let (s, d) = self.graph().schema().endpoints(draw.etype);
        let num_dst = num_dst[d];
        // Kernels count nodes and edges together in 32 bits. Without replacement a node draws at most its own edges.
        let drawn = num_dst as u64 * u64::from(draw.fanout);
        let most = if draw.replace { drawn } else { drawn.min(draw.relation.num_edges() as u64) };
        let in_buffer =
            (self.device.client().properties().memory.max_page_size / 4).saturating_sub(1);
        let limit = if trees.is_some() {
            self.most_items()
        } else {
            in_buffer.min(u64::from(u32::MAX - 1))
        };
        let known = nodes[s].len as u64;
        let check = |edges: u64| {
            let (count, relation) =
                (known + edges, || self.graph().schema().etypes()[draw.etype].to_string());
            if count <= limit {
                Ok(())
            } else {
                Err(GraphError::TooLarge {
                    relation: relation(),
                    what: "nodes and edges of a batch",
                    count,
                    limit,
                })
            }
        };
        if trees.is_none() {
            check(most)?;
        }
        let layout = csc(draw.relation, &self.device);
        let dst = nodes[d].list.clone();
        let client = dst.client.clone();
        let weights = draw
            .weights
            .map(|w| self.weights[draw.etype].get_or_compute(|| upload_floats(w, &self.device)));
        let ids = self.original(d);
        let words =
            |cells: &'a [Derived<CubeTensor>], what, make: &dyn Fn() -> Option<Vec<u32>>| {
                cells[draw.etype]
                    .get_or_compute(|| upload(what, &make().unwrap_or_default(), &self.device))
            };
        let mask = draw
            .masked
            .then(|| words(&self.masks, "masks", &|| self.sampler.device_mask(draw.etype)));
        let order = draw
            .ordered
            .then(|| words(&self.orders, "keys", &|| self.sampler.device_order(draw.etype)));
        let left_out = tables.excluded(draw.etype, excluded);
        let edge_ids = left_out.and(layout.edge_ids.as_ref());
        // The trees of the destinations, which are the first entries of `roots`.
        let dst_roots = trees.as_deref().map(|trees| trees.roots[d].clone());
        let of_dst = |table: Option<&CubeTensor>| {
            Some(pick(&Ids { list: dst_roots.clone()?, len: num_dst }, table?).list)
        };
        let bounds = trees.as_deref().and_then(|trees| trees.bounds[draw.etype].as_ref());
        let times = bounds.and_then(|_| self.times(draw.etype)).map(|(_, list)| list);
        let (highs, bounds) = (of_dst(trees.as_deref().map(|trees| &trees.highs)), of_dst(bounds));
        let more = [left_out, edge_ids, times, bounds.as_ref(), highs.as_ref()]
            .into_iter()
            .flatten()
            .count();
        check_arrays_of_batch(arrays_of(draw) + more, &self.device)?;
        let candidates = || {
            CandidatesLaunch::new(
                arg(&dst),
                arg(&layout.indptr),
                weights.map(arg).into(),
                mask.map(arg).into(),
                left_out.map(arg).into(),
                edge_ids.map(arg).into(),
                times.map(arg).into(),
                bounds.as_ref().map(arg).into(),
                num_dst,
                mask.is_some() || left_out.is_some() || times.is_some(),
            )
        };
        let counts = self.ints(num_dst);
        let (count, dim) = grid(&client, num_dst.max(1));
        // SAFETY: nodes of a batch are nodes of the graph, for which the layout has offsets and they positions of
        // edges, for which there are ids, weights and bits; threads beyond `num_dst` return early.
        unsafe {
            count_kernel::launch_unchecked(
                &client,
                count,
                dim,
                address([&layout.indices], num_dst),
                candidates(),
                arg(&counts),
                draw.fanout,
                draw.replace,
            );
        }
        // Several trees may draw the same edge, so a hop may have more edges than the relation.
        if dst_roots.is_some() && check(drawn).is_err() {
            let counts = Ids { list: counts.clone(), len: num_dst };
            check(counts.read().into_iter().map(u64::from).sum())?;
        }
        let indptr = exclusive_sums(&counts, num_dst);
        let edges = number_at(&indptr, num_dst) as usize;
        let positions = self.ints(edges);
        if edges > 0 {
            let (count, dim) = grid(&client, num_dst);
            let addresses = address([&layout.indices, &positions], num_dst);
            let words = || {
                let (ids, highs) = (ids.map(arg).into(), highs.as_ref().map(arg).into());
                NodeWordsLaunch::new(ids, highs, draw.key[0], draw.key[1])
            };
            // SAFETY: as above; `positions` has room for the edges of every node from its offset on, of which there are
            // no more than its draws, and draws lie in the row of the node.
            unsafe {
                if let Some(order) = order {
                    let keys = self.ints(edges);
                    smallest_kernel::launch_unchecked(
                        &client,
                        count,
                        dim,
                        addresses,
                        candidates(),
                        arg(order),
                        arg(&indptr),
                        arg(&positions),
                        arg(&keys),
                    );
                } else if weights.is_some() {
                    let keys = empty(&positions, Shape::from([edges.max(4)]), DType::F32);
                    weighted_kernel::launch_unchecked(
                        &client,
                        count,
                        dim,
                        addresses,
                        candidates(),
                        words(),
                        arg(&indptr),
                        arg(&positions),
                        arg(&keys),
                        draw.replace,
                    );
                } else {
                    uniform_kernel::launch_unchecked(
                        &client,
                        count,
                        dim,
                        addresses,
                        candidates(),
                        words(),
                        arg(&indptr),
                        arg(&positions),
                        draw.replace,
                    );
                }
            }
        }
        let positions = Ids { list: positions, len: edges };
        let src = match (trees, &dst_roots) {
            (Some(trees), Some(roots)) => {
                let dst = (&indptr, roots, num_dst);
                self.number_rooted(
                    &positions,
                    &layout.indices,
                    dst,
                    &mut nodes[s],
                    &mut trees.roots[s],
                )
            }
            _ => self.number(&positions, Some(&layout.indices), &mut nodes[s], &tables.rows[s]),
        };
        Ok(Found { etype: draw.etype, num_dst, indptr, src, positions })
    }

    /// Returns the row of every node, and appends new nodes. The nodes are `ids` or, if `indices` is given, the sources of
    /// the edges at the positions `ids`.
    fn number(
        &self,
        ids: &Ids,
        indices: Option<&CubeTensor>,
        nodes: &mut Ids,
        rows: &CubeTensor,
    ) -> CubeTensor {
        let edges = ids.len;
        let (found, first, src) = (self.ints(edges), self.ints(edges), self.ints(edges));
        if edges == 0 {
            return src;
        }
        let client = found.client.clone();
        let (positions, indices) = (indices.is_some(), indices.unwrap_or(&ids.list));
        let next = nodes.len as u32;
        let launch = || grid(&client, edges);
        let addresses = || address([indices, rows, &found], edges);
        // SAFETY: positions are those of edges of the relation, their sources, or the ids, nodes for which `rows` has
        // an entry; all other arrays have one for every id, and threads beyond the ids return early.
        unsafe {
            let (count, dim) = launch();
            offer_kernel::launch_unchecked(
                &client,
                count,
                dim,
                addresses(),
                arg(&ids.list),
                arg(indices),
                arg(&found),
                arg(rows),
                edges,
                next,
                positions,
            );
            let (count, dim) = launch();
            first_kernel::launch_unchecked(
                &client,
                count,
                dim,
                addresses(),
                arg(&found),
                arg(rows),
                arg(&first),
                edges,
                next,
            );
        }
        let order = exclusive_sums(&first, edges);
        let new = number_at(&order, edges) as usize;
        let list = copy(&nodes.list, nodes.len, self.ints(nodes.len + new));
        // SAFETY: `list` has room for the nodes so far and the new ones, of which `order` counts the edges that met one
        // first; offers that stayed lie below `next + edges`, so that `order` has an entry for them.
        unsafe {
            let (count, dim) = launch();
            row_kernel::launch_unchecked(
                &client,
                count,
                dim,
                addresses(),
                arg(&found),
                arg(rows),
                arg(&order),
                arg(&src),
                arg(&list),
                edges,
                next,
            );
        }
        let from = nodes.len;
        *nodes = Ids { list, len: from + new };
        settle(nodes, rows, from, true);
        src
    }
}

/// [`check_arrays`] for the settings of a batch.
pub(super) fn check_arrays_of_batch(arrays: usize, device: &CubeDevice) -> Result<(), GraphError> {
    check_arrays(arrays, device).map_err(|e| {
        let expected =
            "one that binds the arrays of masks, weights, times, trees and excluded edges at once"
                .to_owned();
        GraphError::Setting { arg: "device", expected, found: e.to_string() }
    })
}

/// Uploads weights as f32.
fn upload_floats(values: &[f32], device: &CubeDevice) -> CubeTensor {
    let values: Vec<f64> = values.iter().map(|&w| f64::from(w)).collect();
    crate::device::upload::upload_floats(&values, device, DType::F32)
}

/// Writes the rows of the nodes from index `from` to the table, or clears them.
fn settle(nodes: &Ids, rows: &CubeTensor, from: usize, known: bool) {
    let n = nodes.len - from;
    if n == 0 {
        return;
    }
    let (count, dim) = grid(&rows.client, n);
    // SAFETY: nodes of a batch are nodes of the graph, for which `rows` has an entry; threads beyond the last return
    // early.
    unsafe {
        settle_kernel::launch_unchecked(
            &rows.client,
            count,
            dim,
            address([rows], n),
            arg(&nodes.list),
            arg(rows),
            from,
            n,
            known,
        );
    }
}
