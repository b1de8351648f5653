//! Numbers the nodes or the edges of all parts.

use std::ops::Range;

use burn_gnn_graph::{HomoId, TypedId};
use rayon::prelude::*;

use crate::error::DistError;

/// Ids of one type, ordered by part and ascending inside a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ByPart {
    /// Id at each position.
    pub(crate) ids: Vec<u32>,
    /// Number of ids of each part.
    pub(crate) counts: Vec<u64>,
}

impl ByPart {
    /// Groups `0..len` by `owner`, which is below `parts`. A stable, parallel counting sort: the result does not depend
    /// on the number of chunks.
    pub(crate) fn new(len: usize, parts: usize, owner: impl Fn(usize) -> u32 + Sync) -> Self {
        // Every chunk has a counter per part.
        let size = len.div_ceil(4 * rayon::current_num_threads()).max(1 << 14).max(parts);
        let chunk = |from: usize| {
            let of: Vec<u32> = (from..(from + size).min(len)).map(&owner).collect();
            let mut starts = vec![0u32; parts + 1];
            of.iter().for_each(|&p| starts[p as usize + 1] += 1);
            (0..parts).for_each(|p| starts[p + 1] += starts[p]);
            let (mut next, mut ids) = (starts.clone(), vec![0; of.len()]);
            for (i, p) in of.into_iter().enumerate() {
                let at = &mut next[p as usize];
                ids[*at as usize] = (from + i) as u32;
                *at += 1;
            }
            (starts, ids)
        };
        let chunks: Vec<(Vec<u32>, Vec<u32>)> =
            (0..len.div_ceil(size)).into_par_iter().map(|c| chunk(c * size)).collect();
        let (mut ids, mut counts) = (Vec::with_capacity(len), Vec::with_capacity(parts));
        for p in 0..parts {
            let before = ids.len();
            for (starts, sorted) in &chunks {
                ids.extend_from_slice(&sorted[starts[p] as usize..starts[p + 1] as usize]);
            }
            counts.push((ids.len() - before) as u64);
        }
        Self { ids, counts }
    }

    /// Position of each id.
    pub(crate) fn positions(&self) -> Vec<u32> {
        let mut out = vec![0; self.ids.len()];
        self.ids.iter().zip(0..).for_each(|(&id, position)| out[id as usize] = position);
        out
    }
}

/// Tables for ids that were not reshuffled, instead of ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    /// First global id of each type, then the total.
    offsets: Vec<u64>,
    /// Per type: id at each position, and position of each id.
    ids: Vec<Vec<u32>>,
    positions: Vec<Vec<u32>>,
}

/// Ids of one type that were not reshuffled, and their positions.
#[derive(Clone, Copy)]
pub(crate) struct KeptIds<'a> {
    /// Id at each position.
    pub(crate) ids: &'a [u32],
    /// Position of each id.
    pub(crate) positions: &'a [u32],
}

/// The numbering of nodes (or edges). Their *positions* are ordered by type and, inside a type, by part. If ids are
/// reshuffled, a type-wise id equals its position, and global ids are ordered by part and, inside a part, by type. If
/// ids are kept, type-wise ids are those of the input, and global ids are ordered by type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Numbering {
    what: &'static str,
    num_types: usize,
    /// Per type, `num_parts + 1` positions: part `p` owns `starts[t][p]..starts[t][p + 1]`.
    starts: Vec<Vec<u64>>,
    /// Number of ids before each (part, type), ordered by part, then the total.
    begins: Vec<u64>,
    kept: Option<Kept>,
}

impl Numbering {
    /// A reshuffled numbering of `counts[t][p]` ids of type `t` in part `p`; `None` if their sum overflows `u64`.
    pub(crate) fn ranges(
        what: &'static str,
        num_parts: usize,
        counts: &[Vec<u64>],
    ) -> Option<Self> {
        let sums = |c: &Vec<u64>| {
            let mut starts = vec![0u64];
            for &n in c {
                starts.push(starts.last()?.checked_add(n)?);
            }
            Some(starts)
        };
        let starts = counts.iter().map(sums).collect::<Option<Vec<_>>>()?;
        let (mut begins, mut at) = (vec![0u64], 0u64);
        for p in 0..num_parts {
            for c in counts {
                at = at.checked_add(c[p])?;
                begins.push(at);
            }
        }
        Some(Self { what, num_types: counts.len(), starts, begins, kept: None })
    }
    /// A numbering that keeps ids. `parts` groups the ids of each type by part.
    pub(crate) fn kept(what: &'static str, num_parts: usize, parts: Vec<ByPart>) -> Option<Self> {
        let counts: Vec<Vec<u64>> = parts.iter().map(|p| p.counts.clone()).collect();
        let positions = parts.iter().map(ByPart::positions).collect();
        let mut offsets = vec![0u64];
        for p in &parts {
            offsets.push(offsets.last()? + p.ids.len() as u64);
        }
        let kept = Kept { offsets, ids: parts.into_iter().map(|p| p.ids).collect(), positions };
        Some(Self { kept: Some(kept), ..Self::ranges(what, num_parts, &counts)? })
    }
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }
    /// Ids and positions of a type, if ids are kept; otherwise an id equals its position.
    #[inline]
    pub(crate) fn kept_ids(&self, ty: usize) -> Option<KeptIds<'_>> {
        self.kept.as_ref().map(|k| KeptIds { ids: &k.ids[ty], positions: &k.positions[ty] })
    }
    pub(crate) fn num_types(&self) -> usize {
        self.num_types
    }
    fn num_parts(&self) -> usize {
        self.starts.first().map_or(0, |s| s.len() - 1)
    }
    pub(crate) fn total(&self) -> u64 {
        self.begins.last().copied().unwrap_or(0)
    }
    fn out_of_range(&self, of: &str, id: u64, bound: u64) -> DistError {
        DistError::OutOfRange { what: format!("{} {of}", self.what), id, bound }
    }
    /// Per type, the first position of each part, and the number of positions.
    pub(crate) fn starts_of_parts(&self) -> &[Vec<u64>] {
        &self.starts
    }
    fn starts(&self, ty: usize) -> Result<&[u64], DistError> {
        self.starts
            .get(ty)
            .map(Vec::as_slice)
            .ok_or_else(|| self.out_of_range("type", ty as u64, self.num_types as u64))
    }
    fn check_part(&self, part: usize) -> Result<(), DistError> {
        let parts = self.num_parts();
        if part < parts {
            Ok(())
        } else {
            Err(self.out_of_range("partition", part as u64, parts as u64))
        }
    }
    pub(crate) fn count(&self, ty: usize) -> Result<u64, DistError> {
        Ok(self.starts(ty)?[self.num_parts()])
    }
    /// Places of a type that a part owns.
    pub(crate) fn positions(&self, part: usize, ty: usize) -> Result<Range<u64>, DistError> {
        let starts = self.starts(ty)?;
        self.check_part(part)?;
        Ok(starts[part]..starts[part + 1])
    }
    /// Number of ids of a type that a part owns.
    pub(crate) fn inner(&self, part: usize, ty: usize) -> Result<u64, DistError> {
        self.positions(part, ty).map(|r| r.end - r.start)
    }
    /// Number of ids that a part owns. The part is in range.
    pub(crate) fn part_total(&self, part: usize) -> u64 {
        self.begins[(part + 1) * self.num_types] - self.begins[part * self.num_types]
    }
    pub(crate) fn position(&self, id: TypedId) -> Result<u64, DistError> {
        let count = self.count(id.ty)?;
        if id.id >= count {
            return Err(self.out_of_range("id", id.id, count));
        }
        Ok(self.kept.as_ref().map_or(id.id, |k| u64::from(k.positions[id.ty][id.id as usize])))
    }
    pub(crate) fn owner_of_position(&self, ty: usize, position: u64) -> usize {
        self.starts[ty].partition_point(|&s| s <= position) - 1
    }
    pub(crate) fn owner(&self, id: TypedId) -> Result<usize, DistError> {
        let position = self.position(id)?;
        Ok(self.owner_of_position(id.ty, position))
    }
    /// Type-wise ids of a type that a part owns, if they are a range.
    pub(crate) fn range(&self, part: usize, ty: usize) -> Result<Range<u64>, DistError> {
        let positions = self.positions(part, ty)?;
        if self.kept.is_some() {
            return Err(DistError::KeptIds { what: self.what.into(), part });
        }
        Ok(positions)
    }
    /// Type-wise ids of a type that a part owns, ascending.
    pub(crate) fn ids(&self, part: usize, ty: usize) -> Result<Vec<u64>, DistError> {
        let positions = self.positions(part, ty)?;
        Ok(match &self.kept {
            None => positions.collect(),
            Some(k) => k.ids[ty][positions.start as usize..positions.end as usize]
                .iter()
                .map(|&i| u64::from(i))
                .collect(),
        })
    }
    pub(crate) fn to_global(&self, id: TypedId) -> Result<HomoId, DistError> {
        let position = self.position(id)?;
        Ok(self.global_id(self.owner_of_position(id.ty, position), id.ty, position))
    }
    /// Global id of a position of a part. Both are in range.
    pub(crate) fn global_id(&self, part: usize, ty: usize, position: u64) -> HomoId {
        HomoId(match &self.kept {
            None => self.begins[part * self.num_types + ty] + (position - self.starts[ty][part]),
            Some(k) => k.offsets[ty] + u64::from(k.ids[ty][position as usize]),
        })
    }
    /// Owner, type and type-wise id of a global id.
    pub(crate) fn locate(&self, id: HomoId) -> Result<(usize, TypedId), DistError> {
        if id.0 >= self.total() {
            return Err(self.out_of_range("global id", id.0, self.total()));
        }
        // An empty range starts where the next one does, so the last range that starts at or before `id` is not empty.
        let last = |begins: &[u64]| begins.partition_point(|&b| b <= id.0) - 1;
        Ok(match &self.kept {
            None => {
                let at = last(&self.begins);
                let (part, ty) = (at / self.num_types, at % self.num_types);
                (part, TypedId { ty, id: self.starts[ty][part] + (id.0 - self.begins[at]) })
            }
            Some(k) => {
                let ty = last(&k.offsets);
                let id = id.0 - k.offsets[ty];
                (
                    self.owner_of_position(ty, u64::from(k.positions[ty][id as usize])),
                    TypedId { ty, id },
                )
            }
        })
    }
    pub(crate) fn to_local(&self, id: TypedId, part: usize) -> Result<u64, DistError> {
        let (own, position) = (self.positions(part, id.ty)?, self.position(id)?);
        if !own.contains(&position) {
            let owner = self.owner_of_position(id.ty, position);
            return Err(DistError::NotOwned { what: self.what.into(), id: id.id, part, owner });
        }
        Ok(position - own.start)
    }
    pub(crate) fn local_to_typewise(
        &self,
        ty: usize,
        local: u64,
        part: usize,
    ) -> Result<u64, DistError> {
        let own = self.positions(part, ty)?;
        let count = own.end - own.start;
        if local >= count {
            return Err(self.out_of_range("local id", local, count));
        }
        let position = own.start + local;
        Ok(self.kept.as_ref().map_or(position, |k| u64::from(k.ids[ty][position as usize])))
    }
    /// Global ids that a part owns, ascending. The part is in range.
    pub(crate) fn global_ids(&self, part: usize) -> impl Iterator<Item = u64> + '_ {
        let positions = move |t: usize| self.starts[t][part]..self.starts[t][part + 1];
        (0..self.num_types)
            .flat_map(move |t| positions(t).map(move |i| self.global_id(part, t, i).0))
    }
    /// Range `[begin, end)` of global ids of each part, for the metadata file of reshuffled ids.
    pub(crate) fn global_ranges(&self, ty: usize) -> Vec<[u64; 2]> {
        let of = |p: usize| {
            let begin = self.begins[p * self.num_types + ty];
            [begin, begin + self.starts[ty][p + 1] - self.starts[ty][p]]
        };
        (0..self.num_parts()).map(of).collect()
    }
    /// Owner of each global id, for the owner file of kept ids.
    pub(crate) fn owners(&self) -> Vec<i32> {
        let mut out = vec![0; self.total() as usize];
        for (k, part) in self.kept.iter().flat_map(|k| (0..self.num_parts()).map(move |p| (k, p))) {
            for (t, starts) in self.starts.iter().enumerate() {
                let own = &k.ids[t][starts[part] as usize..starts[part + 1] as usize];
                // There are fewer than 2^31 parts.
                own.iter().for_each(|&id| out[k.offsets[t] as usize + id as usize] = part as i32);
            }
        }
        out
    }
}
