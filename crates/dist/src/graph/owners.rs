//! Looks up the owner ranks of many ids at a time.

use std::ops::Range;
use std::sync::Arc;

use burn_gnn_graph::GraphError;

use crate::comm::Failure;
use crate::error::DistError;
use crate::exchange::Unpack;
use crate::partition_book::{Numbering, PartitionBook};
use crate::trainer_rank::TrainerRank;

/// Who has the rows of each type. Ids have places (see [`Numbering`]), and who has rows has a range of places per type.
#[derive(Debug)]
pub(crate) struct Owners {
    what: &'static str,
    names: Vec<String>,
    book: Arc<PartitionBook>,
    is_node: bool,
    /// First place of each holder, per type, and the total.
    starts: Vec<Vec<u64>>,
    /// This rank among the holders.
    own: usize,
    /// Holder `h` is rank `h * step + shift`.
    step: usize,
    shift: usize,
}

impl Owners {
    /// Of what parts hold, structure and features: every trainer of a part has all of its rows.
    pub(crate) fn of_parts(book: &Arc<PartitionBook>, is_node: bool, trainer: TrainerRank) -> Self {
        let (what, names) = if is_node {
            ("node", book.ntypes().to_vec())
        } else {
            ("edge", book.etypes().iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        Self {
            what,
            names,
            book: book.clone(),
            is_node,
            starts: numbering(book, is_node).starts_of_parts().to_vec(),
            own: trainer.part,
            step: trainer.trainers,
            shift: trainer.trainer,
        }
    }
    /// Of rows that change: each has one holder, so the trainers of a part share its rows out, in runs of ascending id.
    pub(crate) fn of_ranks(parts: &Self) -> Self {
        let k = parts.step as u64;
        let split = |starts: &Vec<u64>| {
            let shares =
                starts.windows(2).flat_map(|w| (0..k).map(move |t| w[0] + (w[1] - w[0]) * t / k));
            shares.chain(starts.last().copied()).collect()
        };
        Self {
            what: parts.what,
            names: parts.names.clone(),
            book: parts.book.clone(),
            is_node: parts.is_node,
            starts: parts.starts.iter().map(split).collect(),
            own: parts.own * parts.step + parts.shift,
            step: 1,
            shift: 0,
        }
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
    /// Places of a type that this rank holds.
    pub(crate) fn places(&self, ty: usize) -> Range<u64> {
        self.starts[ty][self.own]..self.starts[ty][self.own + 1]
    }
    /// Ids of a type that this rank holds, ascending: one per row.
    pub(crate) fn own(&self, ty: usize) -> impl DoubleEndedIterator<Item = u64> + '_ {
        let kept = numbering(&self.book, self.is_node).kept_ids(ty);
        self.places(ty).map(move |place| kept.map_or(place, |k| u64::from(k.ids[place as usize])))
    }
    /// Number of own ids of a type.
    pub(crate) fn count(&self, ty: usize) -> usize {
        let own = self.places(ty);
        (own.end - own.start) as usize
    }
    /// Place of an id in range.
    #[inline]
    pub(crate) fn place(&self, ty: usize, id: u64) -> u64 {
        numbering(&self.book, self.is_node)
            .kept_ids(ty)
            .map_or(id, |k| u64::from(k.places[id as usize]))
    }
    /// The id of an own row.
    #[inline]
    pub(crate) fn id(&self, ty: usize, row: u64) -> u64 {
        self.id_at(ty, self.starts[ty][self.own] + row)
    }
    /// The id of a row that `rank` holds, which is one of those that [`locate`](Self::locate) names.
    #[inline]
    pub(crate) fn id_on(&self, ty: usize, rank: usize, row: u64) -> u64 {
        self.id_at(ty, self.starts[ty][rank / self.step] + row)
    }
    #[inline]
    fn id_at(&self, ty: usize, place: u64) -> u64 {
        numbering(&self.book, self.is_node)
            .kept_ids(ty)
            .map_or(place, |k| u64::from(k.ids[place as usize]))
    }
    /// Rank that is asked for an id in range, and row there.
    #[inline]
    pub(crate) fn locate(&self, ty: usize, id: u64) -> (usize, u32) {
        let (starts, place) = (&self.starts[ty], self.place(ty, id));
        let own = starts[self.own];
        // Most ids that a rank meets are its own.
        if place >= own && place < starts[self.own + 1] {
            return (self.own * self.step + self.shift, (place - own) as u32);
        }
        let holder = starts.partition_point(|&s| s <= place) - 1;
        (holder * self.step + self.shift, (place - starts[holder]) as u32)
    }
    /// Own row of an id in range, if it is one.
    #[inline]
    pub(crate) fn own_row(&self, ty: usize, id: u64) -> Option<u32> {
        let own = self.places(ty);
        let place = self.place(ty, id);
        own.contains(&place).then(|| (place - own.start) as u32)
    }
    /// Own rows of a type, as a peer names them.
    pub(crate) fn read_rows(&self, ty: usize, message: &mut Unpack) -> Result<Vec<u32>, Failure> {
        let (rows, count) = (message.list::<u32>()?, self.count(ty));
        if rows.iter().all(|&row| (row as usize) < count) {
            Ok(rows)
        } else {
            Err(message.broken())
        }
    }
    /// Refuses other than one time per seed of a type.
    pub(crate) fn check_times(
        &self,
        ty: usize,
        seeds: &[u64],
        times: &[i64],
    ) -> Result<(), GraphError> {
        let (expected, actual) = (seeds.len(), times.len());
        if expected == actual {
            return Ok(());
        }
        let (relation, arg) = (self.names[ty].clone(), "times".into());
        Err(GraphError::Length { relation, arg, why: "one per seed", expected, actual })
    }
    /// The error of a type that is given twice.
    pub(crate) fn named_twice(&self, ty: usize) -> GraphError {
        let what = if self.is_node { "node type" } else { "edge type" };
        GraphError::Duplicate { what, name: self.names[ty].clone() }
    }
    /// Whether all ids are in range.
    pub(crate) fn check(&self, ty: usize, ids: &[u64]) -> Result<(), DistError> {
        let bound = self.total(ty);
        match ids.iter().find(|&&id| id >= bound) {
            None => Ok(()),
            Some(&id) => Err(DistError::OutOfRange {
                what: format!("{} id of `{}`", self.what, self.names[ty]),
                id,
                bound,
            }),
        }
    }
}

fn numbering(book: &PartitionBook, is_node: bool) -> &Numbering {
    if is_node { &book.nodes } else { &book.edges }
}
