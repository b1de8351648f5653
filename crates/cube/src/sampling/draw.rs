//! Kernels that draw the edges of each node, with one thread per node.
//!
//! Uniform draws equal those of the host: Floyd's algorithm (Bentley and Floyd, CACM 1987) with bounded integers by Lemire
//! (TOMACS 2019) from Philox words. Weighted draws have the same distribution as on the host: exponential keys (Efraimidis
//! and Spirakis, IPL 2006).
//!
//! ```text
//! for every node, in parallel:                      k = min(fan-out, candidates)
//!   k = candidates:  take all
//!   uniform:         for top in candidates - k .. candidates:
//!                      x = random below top + 1;  take x, or top if x is taken
//!   weighted:        key = -ln(1 - u) / weight per candidate;  take the k smallest keys
//!   TopK, Latest:    take the k smallest keys of a precomputed order
//! ```

use cubecl::prelude::*;

use crate::numeric::philox::{philox, pick};

/// Nodes, and the tests whether their edges are candidates.
#[derive(CubeType, CubeLaunch)]
pub(crate) struct Candidates {
    nodes: Box<[u32]>,
    indptr: Box<[u32]>,
    /// Weights by position; edges of weight 0 are not candidates.
    weights: ComptimeOption<Box<[f32]>>,
    /// A bit per position: whether an edge may be drawn.
    mask: ComptimeOption<Box<[u32]>>,
    /// A bit per edge id: whether an edge is excluded from the batch.
    excluded: ComptimeOption<Box<[u32]>>,
    /// Edge ids by position, if they differ from positions.
    edge_ids: ComptimeOption<Box<[u32]>>,
    /// Times by position, and time bounds by node: only edges with `time < bound` are candidates.
    times: ComptimeOption<Box<[u32]>>,
    bounds: ComptimeOption<Box<[u32]>>,
    n: usize,
    /// Whether there is any test other than the weight.
    #[cube(comptime)]
    filtered: bool,
}

/// The node of a thread.
#[derive(CubeType)]
pub(crate) struct DrawingNode {
    /// Index among the nodes.
    pub(crate) i: usize,
    /// Node id.
    pub(crate) v: usize,
    /// Positions of its edges.
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Exclusive time bound of its edges.
    until: u32,
}

/// Bit number `at`.
#[cube]
fn bit(bits: &[u32], at: u32) -> u32 {
    (bits[(at / 32u32) as usize] >> (at % 32u32)) & 1u32
}

#[cube]
impl Candidates {
    /// The node of this thread; threads after the last node terminate.
    pub(crate) fn own_node(&self) -> DrawingNode {
        let i = ABSOLUTE_POS;
        if i >= self.n {
            terminate!();
        }
        let v = self.nodes[i] as usize;
        let mut until = 0u32;
        #[comptime]
        if let ComptimeOption::Some(bounds) = &self.bounds {
            until = bounds[i];
        }
        DrawingNode { i, v, start: self.indptr[v], end: self.indptr[v + 1], until }
    }

    /// Whether the edge at a position is a candidate, apart from its weight.
    pub(crate) fn admits(&self, node: &DrawingNode, p: u32) -> bool {
        let mut barred = 0u32;
        #[comptime]
        if let ComptimeOption::Some(mask) = &self.mask {
            barred = 1u32 - bit(mask, p);
        }
        #[comptime]
        if let ComptimeOption::Some(excluded) = &self.excluded {
            let mut edge = p;
            #[comptime]
            if let ComptimeOption::Some(edge_ids) = &self.edge_ids {
                edge = edge_ids[p as usize];
            }
            barred += bit(excluded, edge);
        }
        #[comptime]
        if let ComptimeOption::Some(times) = &self.times {
            barred += select(times[p as usize] < node.until, 0u32, 1u32);
        }
        barred == 0u32
    }

    /// The weight of an edge.
    fn weight(&self, p: u32) -> f32 {
        #[comptime]
        match &self.weights {
            ComptimeOption::Some(weights) => weights[p as usize],
            ComptimeOption::None => 1.0_f32,
        }
    }

    /// Number of candidates of a node.
    fn count(&self, node: &DrawingNode) -> u32 {
        let mut candidates = node.end - node.start;
        if comptime!(self.filtered || self.weights.is_some()) {
            candidates = 0u32;
            for p in node.start..node.end {
                let mut counts = 1u32;
                if comptime!(self.weights.is_some()) {
                    counts = select(self.weight(p) > 0.0_f32, 1u32, 0u32);
                }
                if self.admits(node, p) {
                    candidates += counts;
                }
            }
        }
        candidates
    }
}

/// The source of the random words of nodes.
#[derive(CubeType, CubeLaunch)]
pub(crate) struct NodeWords {
    /// Original ids of nodes, if they differ from node ids.
    ids: ComptimeOption<Box<[u32]>>,
    /// For disjoint trees, the high words of ids by index of the node, so that trees draw independently.
    highs: ComptimeOption<Box<[u32]>>,
    key_0: u32,
    key_1: u32,
}

/// The random words of one node.
#[derive(CubeType)]
struct Words {
    id: u32,
    high: u32,
    key_0: u32,
    key_1: u32,
}

#[cube]
impl NodeWords {
    fn of(&self, node: &DrawingNode) -> Words {
        let mut id = node.v as u32;
        #[comptime]
        if let ComptimeOption::Some(ids) = &self.ids {
            id = ids[node.v];
        }
        let mut high = 0u32;
        #[comptime]
        if let ComptimeOption::Some(highs) = &self.highs {
            high = highs[node.i];
        }
        Words { id, high, key_0: self.key_0, key_1: self.key_1 }
    }
}

#[cube]
impl Words {
    /// Four words.
    fn block(&self, block: u32) -> Vector<u32, Const<4>> {
        philox(self.id, self.high, block, 0u32, self.key_0, self.key_1)
    }
}

/// Counts the edges that every node draws.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn count_kernel(
    candidates: &Candidates,
    counts: &mut [u32],
    fanout: u32,
    #[comptime] replace: bool,
) {
    let node = candidates.own_node();
    let candidates = candidates.count(&node);
    let mut count = fanout;
    if comptime!(replace) {
        if candidates == 0u32 {
            count = 0u32;
        }
    } else if candidates < count {
        count = candidates;
    }
    counts[node.i] = count;
}

/// Inserts `x` into `taken` ascending numbers that start at `from`.
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

/// Draws the positions of the edges of every node uniformly; they ascend.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn uniform_kernel(
    candidates: &Candidates,
    words: &NodeWords,
    starts: &[u32],
    out: &mut [u32],
    #[comptime] replace: bool,
) {
    let node = candidates.own_node();
    let start = node.start;
    let degree = candidates.count(&node);
    let from = starts[node.i] as usize;
    let k = starts[node.i + 1] - starts[node.i];
    let mut all = k >= degree;
    if comptime!(replace) {
        all = false;
    }
    if all {
        for j in 0..k {
            out[from + j as usize] = start + j;
        }
    } else {
        let source = words.of(&node);
        let mut words = Vector::<u32, Const<4>>::new(0u32);
        let mut block = 0u32;
        let mut at = 4u32;
        for taken in 0..k {
            let top = degree - k + taken;
            let mut bound = top + 1u32;
            if comptime!(replace) {
                bound = degree;
            }
            let mut x = 0u32;
            let mut drawn = false;
            while !drawn {
                if at == 4u32 {
                    words = source.block(block);
                    block += 1u32;
                    at = 0u32;
                }
                let word = pick(words, at);
                at += 1u32;
                let low = word * bound;
                x = word.mul_hi(bound);
                drawn = low >= bound || low >= (0u32 - bound) % bound;
            }
            if comptime!(!replace) {
                // If `x` is taken, take `top` instead, which no earlier step could draw.
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
    if comptime!(candidates.filtered) {
        // The draws are ranks among the candidates; replace them by positions, which are not smaller.
        let mut rank = start;
        let mut j = 0u32;
        for p in start..node.end {
            if candidates.admits(&node, p) {
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

/// [`uniform_kernel`] with probabilities in proportion to weights; `keys` has an entry per drawn edge.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn weighted_kernel(
    candidates: &Candidates,
    words: &NodeWords,
    starts: &[u32],
    out: &mut [u32],
    keys: &mut [f32],
    #[comptime] replace: bool,
) {
    let node = candidates.own_node();
    let from = starts[node.i] as usize;
    let k = (starts[node.i + 1] - starts[node.i]) as usize;
    let source = words.of(&node);
    if comptime!(replace) {
        let mut total = 0.0_f32;
        for p in node.start..node.end {
            if candidates.admits(&node, p) {
                total += candidates.weight(p);
            }
        }
        for taken in 0..k {
            let words = source.block((taken / 4) as u32);
            let x = unit(pick(words, (taken % 4) as u32)) * total;
            // If rounding puts the draw after the last edge, take the last edge with a weight.
            let mut found = node.start;
            let mut sum = 0.0_f32;
            let mut open = true;
            for p in node.start..node.end {
                let w = candidates.weight(p);
                if open && w > 0.0_f32 {
                    if candidates.admits(&node, p) {
                        found = p;
                        sum += w;
                        open = sum <= x;
                    }
                }
            }
            insert(out, from, taken, found);
        }
    } else if k == candidates.count(&node) as usize {
        // All candidates are drawn, so no keys are needed, whose insertion sort takes quadratic time.
        let mut taken = from;
        for p in node.start..node.end {
            if candidates.weight(p) > 0.0_f32 {
                if candidates.admits(&node, p) {
                    out[taken] = p;
                    taken += 1;
                }
            }
        }
    } else {
        let mut taken = 0usize;
        // Counts candidates only, so that other edges have no influence on the draws.
        let mut place = 0u32;
        for p in node.start..node.end {
            if candidates.admits(&node, p) {
                let w = candidates.weight(p);
                if w > 0.0_f32 {
                    let words = source.block(place / 4u32);
                    let key = (0.0_f32 - (1.0_f32 - unit(pick(words, place % 4u32))).ln()) / w;
                    taken = keep::<f32>(out, keys, from, taken, k, p, key);
                }
                place += 1u32;
            }
        }
        by_position(out, from, k);
    }
}

/// Inserts an edge into the at most `k` edges with the smallest keys; of equal keys the first edge is kept. Returns the
/// number of edges.
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

/// Sorts `k` positions that start at `from`.
#[cube]
fn by_position(out: &mut [u32], from: usize, k: usize) {
    for j in 1..k {
        let x = out[from + j];
        insert(out, from, j, x);
    }
}

/// Takes the candidates with the smallest keys; of equal keys the first edge is taken. `keys` has an entry per taken edge.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn smallest_kernel(
    candidates: &Candidates,
    order: &[u32],
    starts: &[u32],
    out: &mut [u32],
    keys: &mut [u32],
) {
    let node = candidates.own_node();
    let from = starts[node.i] as usize;
    let k = (starts[node.i + 1] - starts[node.i]) as usize;
    if k == candidates.count(&node) as usize {
        // All candidates are taken, so no keys are needed, whose insertion sort takes quadratic time.
        let mut taken = from;
        for p in node.start..node.end {
            if candidates.admits(&node, p) {
                out[taken] = p;
                taken += 1;
            }
        }
    } else {
        let mut taken = 0usize;
        for p in node.start..node.end {
            if candidates.admits(&node, p) {
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
