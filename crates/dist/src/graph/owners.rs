//! Which rank owns an id: ranges, looked up many at a time.

use std::ops::Range;

use crate::{DistError, PartitionBook};

/// First type-wise id of each part, per type, and the total.
#[derive(Debug)]
pub(crate) struct Owners {
    what: &'static str,
    names: Vec<String>,
    starts: Vec<Vec<u64>>,
    part: usize,
}

impl Owners {
    pub(crate) fn nodes(book: &PartitionBook, part: usize) -> Result<Self, DistError> {
        let names = book.schema().ntypes().to_vec();
        Self::new("node", names, book.num_parts(), part, |p, t| Ok(book.partid2nids(p, t)?.end))
    }
    pub(crate) fn edges(book: &PartitionBook, part: usize) -> Result<Self, DistError> {
        let names = book.schema().etypes().iter().map(ToString::to_string).collect();
        Self::new("edge", names, book.num_parts(), part, |p, t| Ok(book.partid2eids(p, t)?.end))
    }
    fn new(
        what: &'static str,
        names: Vec<String>,
        parts: usize,
        part: usize,
        end: impl Fn(usize, usize) -> Result<u64, DistError>,
    ) -> Result<Self, DistError> {
        let of = |t: usize| std::iter::once(Ok(0)).chain((0..parts).map(|p| end(p, t))).collect::<Result<Vec<_>, _>>();
        let starts = (0..names.len()).map(of).collect::<Result<_, _>>()?;
        Ok(Self { what, names, starts, part })
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
    pub(crate) fn what(&self) -> &'static str {
        self.what
    }
    /// Ids of a type.
    pub(crate) fn total(&self, ty: usize) -> u64 {
        self.starts[ty].last().copied().unwrap_or(0)
    }
    /// First own id of a type.
    pub(crate) fn first(&self, ty: usize) -> u64 {
        self.starts[ty][self.part]
    }
    /// First id of a type in a part.
    pub(crate) fn first_of(&self, ty: usize, part: usize) -> u64 {
        self.starts[ty][part]
    }
    /// Own ids of a type.
    pub(crate) fn own(&self, ty: usize) -> Range<u64> {
        self.starts[ty][self.part]..self.starts[ty][self.part + 1]
    }
    /// Number of own ids of a type.
    pub(crate) fn count(&self, ty: usize) -> usize {
        (self.starts[ty][self.part + 1] - self.starts[ty][self.part]) as usize
    }
    /// Owner and row there of an id in range.
    #[inline]
    pub(crate) fn locate(&self, ty: usize, id: u64) -> (usize, u32) {
        let starts = &self.starts[ty];
        let own = starts[self.part];
        // Most ids that a rank meets are its own.
        if id >= own && id < starts[self.part + 1] {
            return (self.part, (id - own) as u32);
        }
        let part = starts.partition_point(|&s| s <= id) - 1;
        (part, (id - starts[part]) as u32)
    }
    /// Own row of an id, if it is one.
    #[inline]
    pub(crate) fn own_row(&self, ty: usize, id: u64) -> Option<u32> {
        let row = id.checked_sub(self.first(ty))?;
        (row < self.count(ty) as u64).then_some(row as u32)
    }
    /// Whether all ids are in range.
    pub(crate) fn check(&self, ty: usize, ids: &[u64]) -> Result<(), DistError> {
        let bound = self.total(ty);
        match ids.iter().find(|&&id| id >= bound) {
            None => Ok(()),
            Some(&id) => Err(DistError::OutOfRange { what: format!("{} id of `{}`", self.what, self.names[ty]), id, bound }),
        }
    }
}
