//! Which edges of a node are drawn: one unit for every node.
//!
//! Uniform draws are those of the host, word for word: Floyd's algorithm (Bentley and Floyd, CACM 1987) on integers of Lemire (TOMACS
//! 2019) from Philox. Weighted ones are of the same distribution: exponential keys (Efraimidis and Spirakis, IPL 2006).

use cubecl::prelude::*;

use crate::philox::{philox, pick};

/// How the edges of a node are drawn, when a kernel is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct How {
    /// Whether an edge may be drawn several times.
    pub(crate) replace: bool,
    /// Whether draws follow weights.
    pub(crate) weighted: bool,
    /// Whether draws belong to other ids than those of nodes.
    pub(crate) keyed: bool,
}

/// Edges of a node that can be drawn.
#[cube]
fn candidates(indptr: &[u32], weights: &[f32], v: usize, #[comptime] how: How) -> u32 {
    let mut candidates = indptr[v + 1] - indptr[v];
    if comptime!(how.weighted) {
        candidates = 0u32;
        for p in indptr[v]..indptr[v + 1] {
            candidates += select(weights[p as usize] > 0.0_f32, 1u32, 0u32);
        }
    }
    candidates
}

/// Edges that every node gets.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn count_kernel(
    nodes: &[u32],
    indptr: &[u32],
    weights: &[f32],
    counts: &mut [u32],
    n: usize,
    fanout: u32,
    #[comptime] how: How,
) {
    let i = ABSOLUTE_POS;
    if i >= n {
        terminate!();
    }
    let candidates = candidates(indptr, weights, nodes[i] as usize, how);
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
fn insert(out: &mut [u32], from: usize, taken: usize, x: u32) {
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
pub(crate) fn uniform_kernel(
    nodes: &[u32],
    indptr: &[u32],
    starts: &[u32],
    ids: &[u32],
    out: &mut [u32],
    n: usize,
    key_0: u32,
    key_1: u32,
    #[comptime] how: How,
) {
    let i = ABSOLUTE_POS;
    if i >= n {
        terminate!();
    }
    let v = nodes[i] as usize;
    let start = indptr[v];
    let degree = indptr[v + 1] - start;
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
                    words = philox(id, 0u32, block, 0u32, key_0, key_1);
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
    out: &mut [u32],
    keys: &mut [f32],
    n: usize,
    key_0: u32,
    key_1: u32,
    #[comptime] how: How,
) {
    let i = ABSOLUTE_POS;
    if i >= n {
        terminate!();
    }
    let v = nodes[i] as usize;
    let start = indptr[v];
    let end = indptr[v + 1];
    let from = starts[i] as usize;
    let k = (starts[i + 1] - starts[i]) as usize;
    let mut id = v as u32;
    if comptime!(how.keyed) {
        id = ids[v];
    }
    if comptime!(how.replace) {
        let mut total = 0.0_f32;
        for p in start..end {
            total += weights[p as usize];
        }
        for taken in 0..k {
            let words = philox(id, 0u32, (taken / 4) as u32, 0u32, key_0, key_1);
            let x = unit(pick(words, (taken % 4) as u32)) * total;
            // The last edge with a weight stands for a draw that rounding put at the end.
            let mut found = start;
            let mut sum = 0.0_f32;
            let mut open = true;
            for p in start..end {
                let w = weights[p as usize];
                if open && w > 0.0_f32 {
                    found = p;
                    sum += w;
                    open = sum <= x;
                }
            }
            insert(out, from, taken, found);
        }
    } else if k == candidates(indptr, weights, v, how) as usize {
        // All that have a weight, in their order: no keys, whose ordering takes the square of their number.
        let mut taken = from;
        for p in start..end {
            if weights[p as usize] > 0.0_f32 {
                out[taken] = p;
                taken += 1;
            }
        }
    } else {
        let mut taken = 0usize;
        for p in start..end {
            let w = weights[p as usize];
            if w > 0.0_f32 {
                let place = p - start;
                let words = philox(id, 0u32, place / 4u32, 0u32, key_0, key_1);
                let key = (0.0_f32 - (1.0_f32 - unit(pick(words, place % 4u32))).ln()) / w;
                let mut goes = taken < k;
                if !goes && k > 0 {
                    goes = key < keys[from + k - 1];
                }
                if goes {
                    let mut at = taken;
                    if taken == k {
                        at = k - 1;
                    } else {
                        taken += 1;
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
            }
        }
        // By position.
        for j in 1..k {
            let x = out[from + j];
            insert(out, from, j, x);
        }
    }
}
