//! Builds compressed layouts: sorts edges by one endpoint.

use rayon::prelude::*;

use super::checks::offsets;
use super::compressed::Compressed;
use crate::error::or_panic::OrPanic;

/// Number of edges from which the sort runs in parallel. It is smaller for Miri, which is slow and should see both paths.
pub(super) const PARALLEL_FROM: usize = if cfg!(miri) { 1 << 10 } else { 1 << 16 };

/// Stable counting sort of edges by `key`.
///
/// In parallel: edges are split into equal chunks, and each chunk counts its keys. An exclusive scan over (key, chunk)
/// gives every chunk disjoint output positions per key. Then all chunks scatter their edges. The sort is stable, so the
/// result does not depend on the number of chunks.
///
/// If there are many more rows than edges, counters per chunk would take more memory than the edges. Then edges are sorted
/// by comparison, and the offsets, whose allocation [`check_counts`](super::checks::check_counts) has tried, are the only
/// array that grows with the rows.
///
/// # Panics
/// If the offsets cannot be allocated.
#[expect(unsafe_code, reason = "chunks scatter to disjoint positions")]
pub(super) fn compress(rows: usize, key: &[u32], other: &[u32]) -> Compressed {
    let e = key.len();
    let mut indptr = offsets(rows).or_panic();
    indptr.resize(rows + 1, 0u32);
    let is_sorted = key.is_sorted();
    if is_sorted || rows > 4 * e {
        for &k in key {
            indptr[k as usize + 1] += 1;
        }
        scan(&mut indptr);
        if is_sorted {
            // Every edge id equals its position, so no permutation is stored.
            return Compressed::new(indptr, other.to_vec().into(), None);
        }
        let mut edge_ids: Vec<u32> = (0..e as u32).collect();
        edge_ids.par_sort_unstable_by_key(|&id| (key[id as usize], id));
        let indices: Vec<u32> = edge_ids.iter().map(|&id| other[id as usize]).collect();
        return Compressed::new(indptr, indices.into(), Some(edge_ids));
    }
    // The counters of a chunk take `rows` words, so the number of chunks is limited by the number of edges.
    let chunks = if e < PARALLEL_FROM {
        1
    } else {
        rayon::current_num_threads().min(e / rows.max(1) + 1).max(1)
    };
    let size = e.div_ceil(chunks).max(1);
    let mut counts: Vec<Vec<u32>> = key
        .par_chunks(size)
        .map(|part| {
            let mut c = vec![0u32; rows];
            part.iter().for_each(|&k| c[k as usize] += 1);
            c
        })
        .collect();
    let mut at = 0u32;
    for r in 0..rows {
        indptr[r] = at;
        for c in &mut counts {
            at += std::mem::replace(&mut c[r], at);
        }
    }
    indptr[rows] = at;
    let (mut indices, mut edge_ids) = (vec![0u32; e], vec![0u32; e]);
    if counts.len() == 1 {
        let next = &mut counts[0];
        for (id, (&k, &o)) in key.iter().zip(other).enumerate() {
            let p = &mut next[k as usize];
            indices[*p as usize] = o;
            edge_ids[*p as usize] = id as u32;
            *p += 1;
        }
    } else {
        let (out_i, out_e) = (Scatter(indices.as_mut_ptr()), Scatter(edge_ids.as_mut_ptr()));
        counts.par_iter_mut().enumerate().for_each(|(c, next)| {
            let (out_i, out_e) = (&out_i, &out_e);
            let from = c * size;
            for id in from..(from + size).min(e) {
                let p = &mut next[key[id] as usize];
                // SAFETY: the scan over `counts` gave each (key, chunk) a range of positions below `e`, with one position
                // per edge of this key in the chunk; ranges are disjoint. `key` cannot change between counting and
                // scattering: relations of mapped files are constructed with both layouts and never sorted.
                unsafe {
                    *out_i.0.add(*p as usize) = other[id];
                    *out_e.0.add(*p as usize) = id as u32;
                }
                *p += 1;
            }
        });
    }
    Compressed::new(indptr, indices.into(), Some(edge_ids))
}

struct Scatter(*mut u32);
// SAFETY: the chunks of `compress` share the pointer and write disjoint positions (see there).
#[expect(unsafe_code, reason = "see `compress`")]
unsafe impl Sync for Scatter {}

/// Stable counting sort by group: element `i` has the group `groups[i]`, below `count`. Returns `count + 1` offsets, and
/// `member(i)` of the elements of each group.
#[inline]
pub fn by_group(
    groups: &[u32],
    count: usize,
    member: impl Fn(usize) -> u32,
) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0u32; count + 1];
    groups.iter().for_each(|&group| starts[group as usize + 1] += 1);
    scan(&mut starts);
    let (mut next, mut members) = (starts.clone(), vec![0; groups.len()]);
    for (i, &group) in groups.iter().enumerate() {
        let at = &mut next[group as usize];
        members[*at as usize] = member(i);
        *at += 1;
    }
    (starts, members)
}

/// Inclusive prefix sum, in place: turns counts into row offsets.
pub fn scan(indptr: &mut [u32]) {
    let mut sum = 0;
    for x in indptr {
        sum += *x;
        *x = sum;
    }
}
