//! Looks up the owner ranks of many ids at a time.

use std::ops::Range;
use std::sync::Arc;

use burn_gnn_graph::GraphError;

use crate::comm::Failure;
use crate::error::DistError;
use crate::exchange::Unpack;
use crate::partition_book::{Numbering, PartitionBook};
use crate::trainer_rank::TrainerRank;

/// The holder of each row, per type. Ids have positions (see [`Numbering`]), and a holder has one range of positions
/// per type.
#[derive(Debug)]
pub(crate) struct Owners {
    what: &'static str,
    names: Vec<String>,
    book: Arc<PartitionBook>,
    is_node: bool,
    /// Start of the positions of each holder, per type, then the total.
    starts: Vec<Vec<u64>>,
    /// This rank among the holders.
    own: usize,
    /// Holder `h` is rank `h * step + shift`.
    step: usize,
    shift: usize,
}

impl Owners {
    /// Holders of the immutable rows (structure and features): every trainer of a part has all rows of the part.
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
    /// Holders of mutable rows: each row has one holder, so the rows of a part are divided into one range of ids for
    /// each of its trainers.
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
    /// Number of ids of a type.
    pub(crate) fn total(&self, ty: usize) -> u64 {
        self.starts[ty].last().copied().unwrap_or(0)
    }
    /// Range of positions of a type that this rank holds.
    pub(crate) fn positions(&self, ty: usize) -> Range<u64> {
        self.starts[ty][self.own]..self.starts[ty][self.own + 1]
    }
    /// Ids of a type that this rank holds, ascending, one per row.
    pub(crate) fn own(&self, ty: usize) -> impl DoubleEndedIterator<Item = u64> + '_ {
        let kept = numbering(&self.book, self.is_node).kept_ids(ty);
        self.positions(ty)
            .map(move |position| kept.map_or(position, |k| u64::from(k.ids[position as usize])))
    }
    /// Number of own ids of a type.
    pub(crate) fn count(&self, ty: usize) -> usize {
        let own = self.positions(ty);
        (own.end - own.start) as usize
    }
    /// Position of an id that is in range.
    #[inline]
    pub(crate) fn position(&self, ty: usize, id: u64) -> u64 {
        numbering(&self.book, self.is_node)
            .kept_ids(ty)
            .map_or(id, |k| u64::from(k.positions[id as usize]))
    }
    /// Id of an own row.
    #[inline]
    pub(crate) fn id(&self, ty: usize, row: u64) -> u64 {
        self.id_at(ty, self.starts[ty][self.own] + row)
    }
    /// Id of a row that `rank` holds. `rank` must be a result of [`locate`](Self::locate).
    #[inline]
    pub(crate) fn id_on(&self, ty: usize, rank: usize, row: u64) -> u64 {
        self.id_at(ty, self.starts[ty][rank / self.step] + row)
    }
    #[inline]
    fn id_at(&self, ty: usize, position: u64) -> u64 {
        numbering(&self.book, self.is_node)
            .kept_ids(ty)
            .map_or(position, |k| u64::from(k.ids[position as usize]))
    }
    /// The rank that serves an id in range, and the row on that rank.
    #[inline]
    pub(crate) fn locate(&self, ty: usize, id: u64) -> (usize, u32) {
        let (starts, position) = (&self.starts[ty], self.position(ty, id));
        let own = starts[self.own];
        // Fast path: most ids belong to this rank.
        if position >= own && position < starts[self.own + 1] {
            return (self.own * self.step + self.shift, (position - own) as u32);
        }
        let holder = starts.partition_point(|&s| s <= position) - 1;
        (holder * self.step + self.shift, (position - starts[holder]) as u32)
    }
    /// Own row of an id in range; `None` if another rank holds it.
    #[inline]
    pub(crate) fn own_row(&self, ty: usize, id: u64) -> Option<u32> {
        let own = self.positions(ty);
        let position = self.position(ty, id);
        own.contains(&position).then(|| (position - own.start) as u32)
    }
    /// Reads the numbers of own rows from a request of a peer.
    pub(crate) fn read_rows(&self, ty: usize, message: &mut Unpack) -> Result<Vec<u32>, Failure> {
        let (rows, count) = (message.list::<u32>()?, self.count(ty));
        if rows.iter().all(|&row| (row as usize) < count) {
            Ok(rows)
        } else {
            Err(message.malformed())
        }
    }
    /// Returns an error unless there is one time per seed of a type.
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
    /// The error of a type that occurs twice in the arguments.
    pub(crate) fn named_twice(&self, ty: usize) -> GraphError {
        let what = if self.is_node { "node type" } else { "edge type" };
        GraphError::Duplicate { what, name: self.names[ty].clone() }
    }
    /// Returns an error if an id is out of range.
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
