//! Draws the edges of each node, one thread per node.
//!
//! Uniform draws are those of the host, word for word: Floyd's algorithm (Bentley and Floyd, CACM 1987) on integers of
//! Lemire (TOMACS 2019) from Philox. Weighted ones are of the same distribution: exponential keys (Efraimidis and
//! Spirakis, IPL 2006).

use cubecl::prelude::*;

use crate::philox::{philox, pick};

/// How the edges of a node are drawn, fixed when a kernel is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DrawOptions {
    /// Whether an edge may be drawn several times.
    pub(crate) replace: bool,
    /// Whether draws follow weights.
    pub(crate) weighted: bool,
    /// Whether draws belong to other ids than those of nodes.
    pub(crate) keyed: bool,
    /// Whether nodes are in trees, which draw apart from one another.
    pub(crate) rooted: bool,
    /// Which edges are candidates.
    pub(crate) filter: Filter,
}

/// Which edges of a node are candidates, when a kernel is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Filter {
    /// Whether a bit per position says which edges may be drawn.
    pub(crate) masked: bool,
    /// Whether a bit per edge id says which edges are left out of the batch.
    pub(crate) excluded: bool,
    /// Whether edge ids differ from positions.
    pub(crate) permuted: bool,
    /// Whether nodes see edges before a time of theirs alone.
    pub(crate) timed: bool,
}

impl Filter {
    /// Whether some edges may be no candidates.
    pub(crate) fn is_any(self) -> bool {
        self.masked || self.excluded || self.timed
    }
}

/// Bit number `at`.
#[cube]
fn bit(bits: &[u32], at: u32) -> u32 {
    (bits[(at / 32u32) as usize] >> (at % 32u32)) & 1u32
}

/// Whether the edge at a position is a candidate.
#[cube]
pub(crate) fn admits(
    p: u32,
    until: u32,
    mask: &[u32],
    excluded: &[u32],
    edge_ids: &[u32],
    times: &[u32],
    #[comptime] filter: Filter,
) -> bool {
    let mut barred = 0u32;
    if comptime!(filter.masked) {
        barred = 1u32 - bit(mask, p);
    }
    if comptime!(filter.excluded) {
        let mut edge = p;
        if comptime!(filter.permuted) {
            edge = edge_ids[p as usize];
        }
        barred += bit(excluded, edge);
    }
    if comptime!(filter.timed) {
        barred += select(times[p as usize] < until, 0u32, 1u32);
    }
    barred == 0u32
}

/// Candidates among positions `start..end`; with weights those that have one.
#[cube]
#[allow(clippy::too_many_arguments)]
fn candidates(
    start: u32,
    end: u32,
    until: u32,
    weights: &[f32],
    mask: &[u32],
    excluded: &[u32],
    edge_ids: &[u32],
    times: &[u32],
    #[comptime] how: DrawOptions,
) -> u32 {
    let mut candidates = end - start;
    if comptime!(how.weighted || how.filter.is_any()) {
        candidates = 0u32;
        for p in start..end {
            let mut counts = 1u32;
            if comptime!(how.weighted) {
                counts = select(weights[p as usize] > 0.0_f32, 1u32, 0u32);
            }
            if admits(p, until, mask, excluded, edge_ids, times, how.filter) {
                candidates += counts;
            }
        }
    }
    candidates
}

/// Edges that every node gets.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
pub(crate) fn count_kernel(
    nodes: &[u32],
    indptr: &[u32],
    weights: &[f32],
    mask: &[u32],
    excluded: &[u32],
    edge_ids: &[u32],
    times: &[u32],
    bounds: &[u32],
    counts: &mut [u32],
    n: usize,
    fanout: u32,
    #[comptime] how: DrawOptions,
) {
    let i = ABSOLUTE_POS;
    if i >= n {
        terminate!();
    }
    let v = nodes[i] as usize;
    let mut until = 0u32;
    if comptime!(how.filter.timed) {
        until = bounds[i];
    }
    let candidates =
        candidates(indptr[v], indptr[v + 1], until, weights, mask, excluded, edge_ids, times, how);
    let mut count = fanout;
    if comptime!(how.replace) {
        if candidates == 0u32 {
            count = 0u32;
        }
    } else if candidates < count {
        count = candidates;
    }
    counts[i] = count;
}

/// Puts `x` among `taken` ascending numbers from `from` on.
#[cube]
pub(crate) fn insert(out: &mut [u32], from: usize, taken: usize, x: u32) {
    let mut place = taken;
    let mut moving = taken > 0;
    while moving {
        let before = out[from + place - 1];
        if before > x {
            out[from + place] = before;
            place -= 1;
            moving = place > 0;
        } else {
            moving = false;
        }
    }
    out[from + place] = x;
}

/// Positions of the edges of every node, ascending.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
pub(crate) fn uniform_kernel(
    nodes: &[u32],
    indptr: &[u32],
    starts: &[u32],
    ids: &[u32],
    mask: &[u32],
    excluded: &[u32],
    edge_ids: &[u32],
    times: &[u32],
    bounds: &[u32],
    highs: &[u32],
    out: &mut [u32],
    n: usize,
    key_0: u32,
    key_1: u32,
    #[comptime] how: DrawOptions,
) {
    let i = ABSOLUTE_POS;
    if i >= n {
        terminate!();
    }
    let v = nodes[i] as usize;
    let mut until = 0u32;
    if comptime!(how.filter.timed) {
        until = bounds[i];
    }
    let start = indptr[v];
    let end = indptr[v + 1];
    let mut degree = end - start;
    if comptime!(how.filter.is_any()) {
        degree = 0u32;
        for p in start..end {
            degree +=
                select(admits(p, until, mask, excluded, edge_ids, times, how.filter), 1u32, 0u32);
        }
    }
    let from = starts[i] as usize;
    let k = starts[i + 1] - starts[i];
    let mut all = k >= degree;
    if comptime!(how.replace) {
        all = false;
    }
    if all {
        for j in 0..k {
            out[from + j as usize] = start + j;
        }
    } else {
        let mut id = v as u32;
        if comptime!(how.keyed) {
            id = ids[v];
        }
        let mut high = 0u32;
        if comptime!(how.rooted) {
            high = highs[i];
        }
        let mut words = Vector::<u32, Const<4>>::new(0u32);
        let mut block = 0u32;
        let mut at = 4u32;
        for taken in 0..k {
            let top = degree - k + taken;
            let mut bound = top + 1u32;
            if comptime!(how.replace) {
                bound = degree;
            }
            let mut x = 0u32;
            let mut drawn = false;
            while !drawn {
                if at == 4u32 {
                    words = philox(id, high, block, 0u32, key_0, key_1);
                    block += 1u32;
                    at = 0u32;
                }
                let word = pick(words, at);
                at += 1u32;
                let low = word * bound;
                x = word.mul_hi(bound);
                drawn = low >= bound || low >= (0u32 - bound) % bound;
            }
            if comptime!(!how.replace) {
                // Taken before: the largest number that may be drawn now stands for it, and was never drawn.
                let mut known = false;
                for j in 0..taken {
                    if out[from + j as usize] == start + x {
                        known = true;
                    }
                }
                if known {
                    x = top;
                }
            }
            insert(out, from, taken as usize, start + x);
        }
    }
    if comptime!(how.filter.is_any()) {
        // Drawn were ranks among the candidates, which lie at their positions or behind.
        let mut rank = start;
        let mut j = 0u32;
        for p in start..end {
            if admits(p, until, mask, excluded, edge_ids, times, how.filter) {
                let mut here = j < k;
                if here {
                    here = out[from + j as usize] == rank;
                }
                while here {
                    out[from + j as usize] = p;
                    j += 1u32;
                    here = j < k;
                    if here {
                        here = out[from + j as usize] == rank;
                    }
                }
                rank += 1u32;
            }
        }
    }
}

/// Uniform in `[0, 1)` with 24 bits.
#[cube]
fn unit(word: u32) -> f32 {
    f32::cast_from(word >> 8u32) * 5.960_464_5e-8_f32
}

/// As [`uniform_kernel`], in proportion to weights; `keys` has a place for every edge drawn.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
pub(crate) fn weighted_kernel(
    nodes: &[u32],
    indptr: &[u32],
    starts: &[u32],
    ids: &[u32],
    weights: &[f32],
    mask: &[u32],
    excluded: &[u32],
    edge_ids: &[u32],
    times: &[u32],
    bounds: &[u32],
    highs: &[u32],
    out: &mut [u32],
    keys: &mut [f32],
    n: usize,
    key_0: u32,
    key_1: u32,
    #[comptime] how: DrawOptions,
) {
    let i = ABSOLUTE_POS;
    if i >= n {
        terminate!();
    }
    let v = nodes[i] as usize;
    let mut until = 0u32;
    if comptime!(how.filter.timed) {
        until = bounds[i];
    }
    let start = indptr[v];
    let end = indptr[v + 1];
    let from = starts[i] as usize;
    let k = (starts[i + 1] - starts[i]) as usize;
    let mut id = v as u32;
    if comptime!(how.keyed) {
        id = ids[v];
    }
    let mut high = 0u32;
    if comptime!(how.rooted) {
        high = highs[i];
    }
    if comptime!(how.replace) {
        let mut total = 0.0_f32;
        for p in start..end {
            if admits(p, until, mask, excluded, edge_ids, times, how.filter) {
                total += weights[p as usize];
            }
        }
        for taken in 0..k {
            let words = philox(id, high, (taken / 4) as u32, 0u32, key_0, key_1);
            let x = unit(pick(words, (taken % 4) as u32)) * total;
            // The last edge with a weight stands for a draw that rounding put at the end.
            let mut found = start;
            let mut sum = 0.0_f32;
            let mut open = true;
            for p in start..end {
                let w = weights[p as usize];
                if open && w > 0.0_f32 {
                    if admits(p, until, mask, excluded, edge_ids, times, how.filter) {
                        found = p;
                        sum += w;
                        open = sum <= x;
                    }
                }
            }
            insert(out, from, taken, found);
        }
    } else if k
        == candidates(start, end, until, weights, mask, excluded, edge_ids, times, how) as usize
    {
        // All that have a weight, in their order: no keys, whose ordering takes the square of their number.
        let mut taken = from;
        for p in start..end {
            if weights[p as usize] > 0.0_f32 {
                if admits(p, until, mask, excluded, edge_ids, times, how.filter) {
                    out[taken] = p;
                    taken += 1;
                }
            }
        }
    } else {
        let mut taken = 0usize;
        // Among the candidates, so that other edges have no influence.
        let mut place = 0u32;
        for p in start..end {
            if admits(p, until, mask, excluded, edge_ids, times, how.filter) {
                let w = weights[p as usize];
                if w > 0.0_f32 {
                    let words = philox(id, high, place / 4u32, 0u32, key_0, key_1);
                    let key = (0.0_f32 - (1.0_f32 - unit(pick(words, place % 4u32))).ln()) / w;
                    taken = keep::<f32>(out, keys, from, taken, k, p, key);
                }
                place += 1u32;
            }
        }
        by_position(out, from, k);
    }
}

/// Puts an edge among the `taken` ones of the smallest keys, of which `k` stay, the first of equal ones; their number.
#[cube]
fn keep<K: Numeric>(
    out: &mut [u32],
    keys: &mut [K],
    from: usize,
    taken: usize,
    k: usize,
    p: u32,
    key: K,
) -> usize {
    let mut kept = taken;
    let mut goes = taken < k;
    if !goes && k > 0 {
        goes = key < keys[from + k - 1];
    }
    if goes {
        let mut at = taken;
        if taken == k {
            at = k - 1;
        } else {
            kept += 1;
        }
        let mut moving = at > 0;
        while moving {
            let before = keys[from + at - 1];
            if before > key {
                keys[from + at] = before;
                out[from + at] = out[from + at - 1];
                at -= 1;
                moving = at > 0;
            } else {
                moving = false;
            }
        }
        keys[from + at] = key;
        out[from + at] = p;
    }
    kept
}

/// Sorts `k` positions from `from` on.
#[cube]
fn by_position(out: &mut [u32], from: usize, k: usize) {
    for j in 1..k {
        let x = out[from + j];
        insert(out, from, j, x);
    }
}

/// The candidates of the smallest keys, the first of equal ones; `keys` has a place for every edge taken.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
pub(crate) fn smallest_kernel(
    nodes: &[u32],
    indptr: &[u32],
    starts: &[u32],
    order: &[u32],
    mask: &[u32],
    excluded: &[u32],
    edge_ids: &[u32],
    times: &[u32],
    bounds: &[u32],
    out: &mut [u32],
    keys: &mut [u32],
    n: usize,
    #[comptime] filter: Filter,
) {
    let i = ABSOLUTE_POS;
    if i >= n {
        terminate!();
    }
    let v = nodes[i] as usize;
    let mut until = 0u32;
    if comptime!(filter.timed) {
        until = bounds[i];
    }
    let from = starts[i] as usize;
    let k = (starts[i + 1] - starts[i]) as usize;
    let mut candidates = 0usize;
    for p in indptr[v]..indptr[v + 1] {
        candidates +=
            select(admits(p, until, mask, excluded, edge_ids, times, filter), 1usize, 0usize);
    }
    if k == candidates {
        // All of them: no keys, whose ordering takes the square of their number.
        let mut taken = from;
        for p in indptr[v]..indptr[v + 1] {
            if admits(p, until, mask, excluded, edge_ids, times, filter) {
                out[taken] = p;
                taken += 1;
            }
        }
    } else {
        let mut taken = 0usize;
        for p in indptr[v]..indptr[v + 1] {
            if admits(p, until, mask, excluded, edge_ids, times, filter) {
                taken = keep::<u32>(out, keys, from, taken, k, p, order[p as usize]);
            }
        }
        by_position(out, from, k);
    }
}

/// Sets the bits of edges, or clears them.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn mark_kernel(edges: &[u32], bits: &[Atomic<u32>], n: usize, #[comptime] set: bool) {
    let pos = ABSOLUTE_POS;
    if pos >= n {
        terminate!();
    }
    let edge = edges[pos];
    let one = 1u32 << (edge % 32u32);
    if comptime!(set) {
        bits[(edge / 32u32) as usize].fetch_or(one);
    } else {
        bits[(edge / 32u32) as usize].fetch_and(0xffff_ffffu32 - one);
    }
}
