//! Reserves memory of a size that a caller chooses, and reports failure as an error.

use crate::error::GraphError;

/// An empty list with room for `len` entries.
///
/// # Errors
/// [`GraphError::OutOfMemory`] if the allocator does not give it (a system that overcommits may give it and run out of
/// memory later).
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

/// Makes room for `more` entries at the end of a list, which grows as `extend` makes it grow.
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

/// A list of `len` times `value`.
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
