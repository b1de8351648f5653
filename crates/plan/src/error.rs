//! Defines the errors of plans: invalid sizes, numbers and ids.

use rayon::prelude::*;

/// What is wrong with an argument of an operator, as far as sizes, numbers and ids show.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The first axis of an operand does not count what it must count.
    #[error("{op}: `{arg}` must have {expected} rows ({why}), got {actual}; give as many rows")]
    Rows {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// What the rows stand for.
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
    /// Rows of more entries than a kernel can number.
    #[error(
        "{op}: a row of feature shape {shape:?} (first axis left out) must have at most {limit} entries; split the features"
    )]
    TooWide {
        /// Operator.
        op: &'static str,
        /// Feature shape of an operand or of the result.
        shape: Vec<usize>,
        /// Most entries that a row may have.
        limit: usize,
    },
    /// The second axis of an operand does not count what it must count.
    #[error(
        "{op}: `{arg}` must have feature size {expected} ({why}), got {actual}; give as many features"
    )]
    Columns {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// What the features stand for.
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
    /// A parameter of an activation outside its range, in which the sign of the argument cannot be recovered from the
    /// result.
    #[error(
        "{op}: {arg} must be {range}, got {value}: its derivative would not follow from its result; \
         apply the activation as an operation of its own"
    )]
    Activation {
        /// Operator.
        op: &'static str,
        /// Parameter and activation.
        arg: &'static str,
        /// What it may be.
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
        /// What it may be.
        range: &'static str,
        /// The value found.
        value: f64,
    },
    /// An entry of a list of numbers (ids, types, targets) out of its range.
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
        /// The first number that is too large.
        bound: usize,
        /// What it counts.
        why: &'static str,
        /// The number found.
        value: u64,
    },
    /// Numbers that must ascend, each once.
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
    /// Segments that do not cut rows as they say.
    #[error("{op}: {what}")]
    Segments {
        /// Operator.
        op: &'static str,
        /// What is wrong, with the numbers.
        what: String,
    },
}

burn_gnn_structure::debug_is_message!(PlanError);

/// The panic that a function without `try_` makes of an error, at its caller's line.
#[track_caller]
pub fn accept<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

/// Whether an operand has the number of rows that it must have.
///
/// # Errors
/// Another number.
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

/// Whether an operand has the shape that it must have.
///
/// # Errors
/// Another shape.
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

/// Refuses more types than 32 bits can number, one number kept free as "no type".
///
/// # Errors
/// `u32::MAX` types or more.
pub fn check_types(op: &'static str, arg: &'static str, types: usize) -> Result<(), PlanError> {
    if types < u32::MAX as usize {
        return Ok(());
    }
    Err(PlanError::Parameter { op, arg, range: "at most 4294967294", value: types as f64 })
}

/// Refuses a number that is not below `bound`, the count of `why`.
///
/// # Errors
/// The first such number.
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
