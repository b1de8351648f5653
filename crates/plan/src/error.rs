//! Defines the errors of plans: invalid sizes, numbers and ids.

use rayon::prelude::*;

/// Invalid argument of an operator: a size, a number or an id.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// An operand with a wrong number of rows.
    #[error("{op}: `{arg}` must have {expected} rows ({why}), got {actual}; give as many rows")]
    Rows {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// Meaning of the expected number.
        why: &'static str,
        /// Rows expected.
        expected: usize,
        /// Rows found.
        actual: usize,
    },
    /// The feature shapes (without the first axis) do not broadcast.
    #[error(
        "{op}: feature shapes {lhs:?} of `lhs` and {rhs:?} of `rhs` (first axis left out) do not broadcast: \
         aligned at the end, axes must be equal or 1; reshape one of them"
    )]
    Broadcast {
        /// Operator.
        op: &'static str,
        /// Feature shape of the left operand.
        lhs: Vec<usize>,
        /// Feature shape of the right operand.
        rhs: Vec<usize>,
    },
    /// Rows with more entries than kernels can index.
    #[error(
        "{op}: a row of feature shape {shape:?} (first axis left out) must have at most {limit} entries; split the features"
    )]
    TooWide {
        /// Operator.
        op: &'static str,
        /// Feature shape of an operand or of the result.
        shape: Vec<usize>,
        /// Largest number of entries of a row.
        limit: usize,
    },
    /// An operand with a wrong feature size.
    #[error(
        "{op}: `{arg}` must have feature size {expected} ({why}), got {actual}; give as many features"
    )]
    Columns {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// Meaning of the expected size.
        why: &'static str,
        /// Feature size expected.
        expected: usize,
        /// Feature size found.
        actual: usize,
    },
    /// An operand of the wrong shape.
    #[error(
        "{op}: `{arg}` must have shape {expected:?}, got {actual:?}; transpose or reshape it, or correct the other operands"
    )]
    Shape {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// Shape expected.
        expected: Vec<usize>,
        /// Shape found.
        actual: Vec<usize>,
    },
    /// A probability outside its range.
    #[error("{op}: `{arg}` must lie in [0, 1), got {value}; give 0 for no dropout")]
    Probability {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// The value found.
        value: f64,
    },
    /// A parameter of an activation outside the range in which the derivative is a function of the result.
    #[error(
        "{op}: {arg} must be {range}, got {value}: otherwise its derivative is not a function of its result; \
         apply the activation as a separate operation"
    )]
    Activation {
        /// Operator.
        op: &'static str,
        /// Parameter and activation.
        arg: &'static str,
        /// Range of valid values.
        range: &'static str,
        /// The value found.
        value: f64,
    },
    /// A number outside its range.
    #[error("{op}: `{arg}` must be {range}, got {value}")]
    Parameter {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// Range of valid values.
        range: &'static str,
        /// The value found.
        value: f64,
    },
    /// An id, type or target out of range.
    #[error(
        "{op}: `{arg}[{position}]` must lie in 0..{bound} ({why}), got {value}; number them from 0"
    )]
    OutOfRange {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// Position in the list.
        position: usize,
        /// Exclusive upper bound.
        bound: usize,
        /// Meaning of the bound.
        why: &'static str,
        /// The number found.
        value: u64,
    },
    /// Numbers that are not strictly ascending.
    #[error(
        "{op}: `{arg}[{position}]` must be above {before} (they ascend, each once), got {value}; sort them and remove repeats"
    )]
    Ascending {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// Position in the list.
        position: usize,
        /// The number before.
        before: u32,
        /// The number found.
        value: u32,
    },
    /// Lengths or offsets that do not define segments.
    #[error("{op}: {what}")]
    Segments {
        /// Operator.
        op: &'static str,
        /// Description of the fault with its numbers.
        what: String,
    },
}

burn_gnn_structure::debug_is_message!(PlanError);

/// Returns the value, or panics with the text of the error at the line of the caller: how functions without `try_`
/// report errors.
#[track_caller]
pub fn accept<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

/// Checks the number of rows of an operand. `why` is the meaning of the expected number.
///
/// # Errors
/// `actual` differs from `expected`.
pub fn check_rows(
    op: &'static str,
    arg: &'static str,
    why: &'static str,
    expected: usize,
    actual: usize,
) -> Result<(), PlanError> {
    if expected == actual {
        Ok(())
    } else {
        Err(PlanError::Rows { op, arg, why, expected, actual })
    }
}

/// Checks the shape of an operand.
///
/// # Errors
/// `actual` differs from `expected`.
pub fn check_shape(
    op: &'static str,
    arg: &'static str,
    expected: &[usize],
    actual: &[usize],
) -> Result<(), PlanError> {
    if expected == actual {
        return Ok(());
    }
    Err(PlanError::Shape { op, arg, expected: expected.to_vec(), actual: actual.to_vec() })
}

/// Checks that `u32` can number the types; `u32::MAX` is reserved for "no type".
///
/// # Errors
/// `u32::MAX` types or more.
pub fn check_types(op: &'static str, arg: &'static str, types: usize) -> Result<(), PlanError> {
    if types < u32::MAX as usize {
        return Ok(());
    }
    Err(PlanError::Parameter { op, arg, range: "at most 4294967294", value: types as f64 })
}

/// Checks that all values are below `bound`. `why` is the meaning of the bound.
///
/// # Errors
/// A value is not below `bound`; the error has the first one.
pub fn check_below<I: Copy + Sync + Into<u32>>(
    op: &'static str,
    arg: &'static str,
    why: &'static str,
    bound: usize,
    values: &[I],
) -> Result<(), PlanError> {
    let beyond = |&v: &I| v.into() as usize >= bound;
    match values.par_iter().with_min_len(1 << 14).position_first(beyond) {
        None => Ok(()),
        Some(position) => {
            let value = u64::from(values[position].into());
            Err(PlanError::OutOfRange { op, arg, position, bound, why, value })
        }
    }
}
