//! Converts offsets and node ids of any integer type, with range checks.

use rayon::prelude::*;

use super::checks::check_len;
use crate::error::graph_error::{GraphError, UNNAMED};

/// Integers that offsets and node ids of [`Relation::from_csr`](crate::Relation::from_csr) and [`Relation::from_csc`](crate::Relation::from_csc) may be: u32, u64, usize, i32
/// and i64.
pub trait WholeNumber: Copy + Send + Sync + sealed::Sealed {
    /// Converts to `i128`, which holds all values of these types.
    #[doc(hidden)]
    fn wide(self) -> i128;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! whole_number {
    ($($t:ty),*) => {$(
        impl sealed::Sealed for $t {}
        impl WholeNumber for $t {
            #[inline(always)]
            fn wide(self) -> i128 {
                self as i128
            }
        }
    )*};
}
whole_number!(u32, u64, usize, i32, i64);

/// Returns an error unless `indptr` ascends from 0 to `edges` and has `rows + 1` entries.
pub(super) fn check_indptr<P: WholeNumber>(
    rows: usize,
    indptr: &[P],
    edges: usize,
) -> Result<(), GraphError> {
    check_len("indptr", "number of rows + 1", rows + 1, indptr.len())?;
    let bad = |position: usize, expected: String| GraphError::Indptr {
        relation: UNNAMED.into(),
        position,
        expected,
        value: indptr[position].wide(),
    };
    if indptr[0].wide() != 0 {
        return Err(bad(0, "0".into()));
    }
    if let Some(p) = indptr.windows(2).position(|w| w[0].wide() > w[1].wide()) {
        return Err(bad(p + 1, format!("at least {} (it must never decrease)", indptr[p].wide())));
    }
    if indptr[rows].wide() != edges as i128 {
        return Err(bad(rows, format!("{edges} (the length of `indices`)")));
    }
    Ok(())
}

/// Narrows node ids to `u32`. Returns an error for the first id that is not below `bound`.
pub(super) fn narrow<I: WholeNumber>(
    arg: &'static str,
    ids: &[I],
    bound: usize,
) -> Result<Vec<u32>, GraphError> {
    match ids.par_iter().position_first(|v| !(0..bound as i128).contains(&v.wide())) {
        None => Ok(ids.par_iter().map(|v| v.wide() as u32).collect()),
        Some(position) => Err(GraphError::NodeOutOfRange {
            relation: UNNAMED.into(),
            arg,
            position,
            bound,
            value: ids[position].wide(),
        }),
    }
}
