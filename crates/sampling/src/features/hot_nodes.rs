//! Indexes the hot nodes of a source.

use burn_gnn_graph::GraphError;
use burn_gnn_graph::internal::{check_ids, setting};

/// Stands for a row that is not hot.
pub(super) const COLD: u32 = u32::MAX;

/// The first `round(split_ratio · rows)` of `hot_order`, the ids in descending order of hotness.
///
/// # Errors
/// A ratio outside `0.0..=1.0`, too few ids.
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

/// As many of the first ids of `hot_order` as there are rows of `width` numbers in `budget` bytes, times `devices` that
/// divide them.
pub(super) fn within(hot_order: &[u32], budget: usize, width: usize, devices: usize) -> &[u32] {
    let count = budget.checked_div(width * 4).unwrap_or(usize::MAX).saturating_mul(devices);
    &hot_order[..count.min(hot_order.len())]
}

/// The number of each of `rows` rows among the hot ones, [`COLD`] for the others.
///
/// # Errors
/// An id out of range or repeated.
pub(super) fn places(hot: &[u32], rows: usize) -> Result<Vec<u32>, GraphError> {
    check_ids("hot_order", "the features", hot, rows)?;
    let mut place = vec![COLD; rows];
    for (i, &id) in hot.iter().enumerate() {
        if std::mem::replace(&mut place[id as usize], i as u32) != COLD {
            return Err(GraphError::RepeatedId {
                what: "`hot_order`:".into(),
                position: i,
                id: u64::from(id),
            });
        }
    }
    Ok(place)
}
