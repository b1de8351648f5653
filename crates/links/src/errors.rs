//! Constructs errors of arguments.

use burn_gnn_models::ModelError;

pub(crate) fn out_of_range(
    arg: impl Into<String>,
    range: impl Into<String>,
    value: impl ToString,
) -> ModelError {
    ModelError::OutOfRange { arg: arg.into(), range: range.into(), value: value.to_string() }
}

/// Returns [`ModelError::OutOfRange`] unless `ok`.
pub(crate) fn check_range(
    arg: &str,
    range: &str,
    value: impl ToString,
    ok: bool,
) -> Result<(), ModelError> {
    if ok { Ok(()) } else { Err(out_of_range(arg, range, value)) }
}

/// Returns [`ModelError::Length`] if lengths differ; `why` is the reason for the expected length.
pub(crate) fn check_length(
    arg: &str,
    why: &str,
    expected: usize,
    actual: usize,
) -> Result<(), ModelError> {
    if expected == actual {
        return Ok(());
    }
    Err(ModelError::Length { arg: arg.into(), why: why.into(), expected, actual })
}
