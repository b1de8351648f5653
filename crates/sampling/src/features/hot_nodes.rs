//! Index of the cached rows of a source.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use burn_gnn_graph::GraphError;
use burn_gnn_graph::internal::{check_ids, setting};

/// Index entry of a row that is not cached.
const COLD: u32 = u32::MAX;

/// The first `round(split_ratio · rows)` ids of `hot_order`.
///
/// # Errors
/// A ratio outside `0.0..=1.0`; too few ids.
pub(super) fn share(
    hot_order: &[u32],
    split_ratio: f64,
    rows: usize,
) -> Result<&[u32], GraphError> {
    if !(0.0..=1.0).contains(&split_ratio) {
        return Err(setting("split_ratio", "a share in 0.0..=1.0", &split_ratio.to_string()));
    }
    let count = (split_ratio * rows as f64).round() as usize;
    if hot_order.len() < count {
        return Err(setting(
            "hot_order",
            &format!("at least {count} ids"),
            &hot_order.len().to_string(),
        ));
    }
    Ok(&hot_order[..count])
}

/// As many of the first ids of `hot_order` as rows of `width` numbers fit into `budget` bytes on each of `devices`
/// devices.
pub(super) fn within(hot_order: &[u32], budget: usize, width: usize, devices: usize) -> &[u32] {
    let count = budget.checked_div(width * 4).unwrap_or(usize::MAX).saturating_mul(devices);
    &hot_order[..count.min(hot_order.len())]
}

/// Number of rows read from each tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hits {
    /// Rows read from the cache.
    pub hot: u64,
    /// Rows read from the source.
    pub cold: u64,
}

impl Hits {
    /// Cache hit rate, in `0.0..=1.0`; 0 if no row was read.
    pub fn rate(&self) -> f64 {
        self.hot as f64 / (self.hot + self.cold).max(1) as f64
    }
}

impl fmt::Display for Hits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} rows from memory ({:.1} %)",
            self.hot,
            self.hot + self.cold,
            100.0 * self.rate()
        )
    }
}

/// Which rows of a source are cached, and how many cached and other rows were read.
#[derive(Debug)]
pub(super) struct HotNodes {
    /// Position of each row in the cache, or [`COLD`].
    place: Vec<u32>,
    from_hot: AtomicU64,
    from_cold: AtomicU64,
}

impl HotNodes {
    /// Indexes the cached rows `hot` of a source of `rows` rows.
    ///
    /// # Errors
    /// An id out of range or repeated.
    pub(super) fn new(hot: &[u32], rows: usize) -> Result<Self, GraphError> {
        check_ids("hot_order", "the features", hot, rows)?;
        let mut place = vec![COLD; rows];
        for (position, &id) in hot.iter().enumerate() {
            if std::mem::replace(&mut place[id as usize], position as u32) != COLD {
                let (what, id) = ("`hot_order`:".into(), u64::from(id));
                return Err(GraphError::RepeatedId { what, position, id });
            }
        }
        Ok(Self { place, from_hot: AtomicU64::new(0), from_cold: AtomicU64::new(0) })
    }
    /// Number of rows of the source.
    pub(super) fn num_rows(&self) -> usize {
        self.place.len()
    }
    /// Position of a row in the cache, if it is cached.
    #[inline]
    pub(super) fn place(&self, id: u32) -> Option<u32> {
        Some(self.place[id as usize]).filter(|&place| place != COLD)
    }
    /// Adds to the counts of read rows.
    pub(super) fn count(&self, hot: usize, cold: usize) {
        self.from_hot.fetch_add(hot as u64, Ordering::Relaxed);
        self.from_cold.fetch_add(cold as u64, Ordering::Relaxed);
    }
    pub(super) fn hits(&self) -> Hits {
        Hits {
            hot: self.from_hot.load(Ordering::Relaxed),
            cold: self.from_cold.load(Ordering::Relaxed),
        }
    }
}
