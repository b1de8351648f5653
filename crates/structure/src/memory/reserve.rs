//! Fallible allocation, for sizes that come from files and arguments.

use crate::error::GraphError;

/// An empty vector with capacity for `len` entries. `what` describes the allocation in the error, `remedy` the fix.
///
/// # Errors
/// [`GraphError::OutOfMemory`] if the allocator fails. A system that overcommits may succeed and run out of memory
/// later.
pub fn room<T>(
    len: u128,
    what: impl FnOnce() -> String,
    remedy: &'static str,
) -> Result<Vec<T>, GraphError> {
    let mut out = vec![];
    if usize::try_from(len).is_ok_and(|len| out.try_reserve_exact(len).is_ok()) {
        return Ok(out);
    }
    Err(GraphError::OutOfMemory {
        what: what(),
        bytes: len.saturating_mul(size_of::<T>() as u128),
        remedy,
    })
}

/// Reserves capacity for `more` entries at the end of a vector, with amortised growth.
///
/// # Errors
/// As [`room`].
pub fn reserve<T>(
    list: &mut Vec<T>,
    more: usize,
    what: impl FnOnce() -> String,
    remedy: &'static str,
) -> Result<(), GraphError> {
    let len = list.len() as u128 + more as u128;
    list.try_reserve(more).map_err(|_| GraphError::OutOfMemory {
        what: what(),
        bytes: len.saturating_mul(size_of::<T>() as u128),
        remedy,
    })
}

/// A vector of `len` copies of `value`.
///
/// # Errors
/// As [`room`].
pub fn filled<T: Clone>(
    value: T,
    len: u128,
    what: impl FnOnce() -> String,
    remedy: &'static str,
) -> Result<Vec<T>, GraphError> {
    let mut out = room(len, what, remedy)?;
    out.resize(len as usize, value);
    Ok(out)
}
