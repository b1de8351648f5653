//! Assigns rows to the nodes of disjoint trees: one row per node and root.
//!
//! It is the algorithm of [`renumber`](super::renumber) with a hash table (open addressing) instead of a table of all
//! nodes. Items are the existing rows, followed by the drawn edges. Each item applies an atomic minimum to the slot of its
//! node and root.

use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::GraphError;
use cubecl::prelude::*;

use super::device_sampler::DeviceSampler;
use super::ids::{Ids, check_room, copy, number_at, ones};
use crate::device::launch::{address, arg, grid};
use crate::device::upload::upload;
use crate::numeric::scan::exclusive_sums;

/// The disjoint trees of a batch.
pub(super) struct Trees {
    /// Tree of each row, by node type.
    pub(super) roots: Vec<CubeTensor>,
    /// By tree: the high words of ids, with which trees draw independently.
    pub(super) highs: CubeTensor,
    /// By edge type and tree: the exclusive time bound of edges, if edges have times.
    pub(super) bounds: Vec<Option<CubeTensor>>,
}

/// Writes the high words of ids: the original ids of the roots plus 1, so that trees draw independently.
#[cube(launch_unchecked, address_type = "dynamic")]
fn root_kernel(
    seeds: &[u32],
    ids: &[u32],
    highs: &mut [u32],
    from: usize,
    n: usize,
    #[comptime] keyed: bool,
) {
    let pos = ABSOLUTE_POS;
    if pos >= n {
        terminate!();
    }
    let mut id = seeds[pos];
    if comptime!(keyed) {
        id = ids[seeds[pos] as usize];
    }
    highs[from + pos] = id + 1u32;
}

/// Writes source and root of the edges of every destination, starting at item `next`.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
fn item_kernel(
    indptr: &[u32],
    positions: &[u32],
    indices: &[u32],
    dst_roots: &[u32],
    nodes: &mut [u32],
    roots: &mut [u32],
    n: usize,
    next: usize,
) {
    let i = ABSOLUTE_POS;
    if i >= n {
        terminate!();
    }
    for e in indptr[i]..indptr[i + 1] {
        nodes[next + e as usize] = indices[positions[e as usize] as usize];
        roots[next + e as usize] = dst_roots[i];
    }
}

/// The first slot of the search for a node and a root.
#[cube]
fn hash(node: u32, root: u32, mask: u32) -> u32 {
    let mixed = (node * 0x9E37_79B1u32) ^ (root * 0x85EB_CA77u32);
    let spread = (mixed ^ (mixed >> 15u32)) * 0x2C1B_3C6Du32;
    (spread ^ (spread >> 13u32)) & mask
}

/// Inserts every item into the slot of its node and root, which keeps the smallest item.
#[cube(launch_unchecked, address_type = "dynamic")]
fn insert_kernel(nodes: &[u32], roots: &[u32], slots: &[Atomic<u32>], n: usize, mask: u32) {
    let pos = ABSOLUTE_POS;
    if pos >= n {
        terminate!();
    }
    let node = nodes[pos];
    let root = roots[pos];
    let mut at = hash(node, root, mask);
    let mut open = true;
    while open {
        let found = slots[at as usize].load();
        if found == 0xffff_ffffu32 {
            // The exchange may fail spuriously; the next iteration reads the slot again.
            slots[at as usize].compare_exchange_weak(0xffff_ffffu32, pos as u32);
        } else if nodes[found as usize] == node && roots[found as usize] == root {
            slots[at as usize].fetch_min(pos as u32);
            open = false;
        } else {
            at = (at + 1u32) & mask;
        }
    }
}

/// Finds the first item of the node and root of every edge, and whether that is the edge itself.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
fn find_kernel(
    nodes: &[u32],
    roots: &[u32],
    slots: &[u32],
    firsts: &mut [u32],
    is_first: &mut [u32],
    n: usize,
    next: usize,
    mask: u32,
) {
    let pos = ABSOLUTE_POS;
    if pos >= n {
        terminate!();
    }
    let node = nodes[next + pos];
    let root = roots[next + pos];
    let mut at = hash(node, root, mask);
    let mut found = slots[at as usize];
    let mut open = nodes[found as usize] != node || roots[found as usize] != root;
    while open {
        at = (at + 1u32) & mask;
        found = slots[at as usize];
        open = nodes[found as usize] != node || roots[found as usize] != root;
    }
    firsts[pos] = found;
    is_first[pos] = select(found == (next + pos) as u32, 1u32, 0u32);
}

/// Writes the row of the source of every edge, and appends new rows.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
fn row_kernel(
    item_nodes: &[u32],
    item_roots: &[u32],
    firsts: &[u32],
    order: &[u32],
    src: &mut [u32],
    nodes: &mut [u32],
    roots: &mut [u32],
    n: usize,
    next: u32,
) {
    let pos = ABSOLUTE_POS;
    if pos >= n {
        terminate!();
    }
    let mut row = firsts[pos];
    if row >= next {
        row = next + order[(row - next) as usize];
    }
    src[pos] = row;
    if order[pos + 1] > order[pos] {
        nodes[row as usize] = item_nodes[next as usize + pos];
        roots[row as usize] = item_roots[next as usize + pos];
    }
}

impl DeviceSampler {
    /// Creates one tree per seed, numbered over all types. If seeds have times, trees draw only edges before them.
    ///
    /// # Errors
    /// There are more seeds than fit in a buffer of the device.
    pub(super) fn trees(&self, seeds: &[Ids], times: Option<&[i64]>) -> Result<Trees, GraphError> {
        let total = seeds.iter().map(|ids| ids.len).sum();
        check_room("seeds", total, &self.device)?;
        let (highs, mut roots, mut from) = (self.ints(total), vec![], 0);
        for (t, ids) in seeds.iter().enumerate() {
            let tree: Vec<u32> = (from as u32..(from + ids.len) as u32).collect();
            roots.push(upload("trees", &tree, &self.device));
            if ids.len > 0 {
                let original = self.original(t);
                let (count, dim) = grid(&highs.client, ids.len);
                // SAFETY: seeds are nodes, which have original ids where there are any; `highs` has an entry for every
                // seed of all types; threads beyond the seeds return early.
                unsafe {
                    root_kernel::launch_unchecked(
                        &highs.client,
                        count,
                        dim,
                        address([&highs, original.unwrap_or(&ids.list)], ids.len),
                        arg(&ids.list),
                        arg(original.unwrap_or(&ids.list)),
                        arg(&highs),
                        from,
                        ids.len,
                        original.is_some(),
                    );
                }
            }
            from += ids.len;
        }
        let bound = |t: usize| {
            let (times, (ranks, _)) = (times?, self.times(t)?);
            let bounds: Vec<u32> = times.iter().map(|&time| ranks.before(time)).collect();
            Some(upload("times", &bounds, &self.device))
        };
        Ok(Trees { roots, highs, bounds: (0..self.graph().relations().len()).map(bound).collect() })
    }

    /// Largest number of items of a hash table.
    pub(super) fn most_items(&self) -> u64 {
        // There are at most four slots per item.
        (self.device.client().properties().memory.max_page_size / 16).min(1 << 30)
    }

    /// Returns the row of the source of every edge in the tree of its destination, and appends new rows.
    pub(super) fn number_rooted(
        &self,
        positions: &Ids,
        indices: &CubeTensor,
        (indptr, dst_roots, num_dst): (&CubeTensor, &CubeTensor, usize),
        nodes: &mut Ids,
        roots: &mut CubeTensor,
    ) -> CubeTensor {
        let (edges, next) = (positions.len, nodes.len);
        let src = self.ints(edges);
        if edges == 0 {
            return src;
        }
        let (client, items) = (src.client.clone(), next + edges);
        let slots = ones(&self.device, (2 * items).next_power_of_two());
        let mask = (slots.meta.num_elements() - 1) as u32;
        let [item_nodes, item_roots] =
            [&nodes.list, &*roots].map(|known| copy(known, next, self.ints(items)));
        let [firsts, is_first] = [(); 2].map(|()| self.ints(edges));
        let addresses = |n| address([&slots, &item_nodes, indices, &positions.list], n);
        // SAFETY: positions are those of edges of the relation, `indptr` their offsets by destination, each of which
        // has a root. There are more slots than items, a power of two of them, so that every search ends, at a slot
        // that has an item. All other arrays have an entry for every item, or every edge; threads beyond the last
        // return early.
        unsafe {
            let (count, dim) = grid(&client, num_dst);
            item_kernel::launch_unchecked(
                &client,
                count,
                dim,
                addresses(num_dst),
                arg(indptr),
                arg(&positions.list),
                arg(indices),
                arg(dst_roots),
                arg(&item_nodes),
                arg(&item_roots),
                num_dst,
                next,
            );
            let (count, dim) = grid(&client, items);
            insert_kernel::launch_unchecked(
                &client,
                count,
                dim,
                addresses(items),
                arg(&item_nodes),
                arg(&item_roots),
                arg(&slots),
                items,
                mask,
            );
            let (count, dim) = grid(&client, edges);
            find_kernel::launch_unchecked(
                &client,
                count,
                dim,
                addresses(edges),
                arg(&item_nodes),
                arg(&item_roots),
                arg(&slots),
                arg(&firsts),
                arg(&is_first),
                edges,
                next,
                mask,
            );
        }
        let order = exclusive_sums(&is_first, edges);
        let new = number_at(&order, edges) as usize;
        let [list, new_roots] =
            [&nodes.list, &*roots].map(|known| copy(known, next, self.ints(next + new)));
        let (count, dim) = grid(&client, edges);
        // SAFETY: `list` and `new_roots` have room for the rows so far and the new ones, of which `order` counts the
        // edges that met one first; first items lie below `next + edges`.
        unsafe {
            row_kernel::launch_unchecked(
                &client,
                count,
                dim,
                address([&item_nodes, &list, &src], edges),
                arg(&item_nodes),
                arg(&item_roots),
                arg(&firsts),
                arg(&order),
                arg(&src),
                arg(&list),
                arg(&new_roots),
                edges,
                next as u32,
            );
        }
        *nodes = Ids { list, len: next + new };
        *roots = new_roots;
        src
    }
}
