//! Checks of arguments that operators share.

use burn::tensor::Tensor;

use crate::OpsError;
use crate::gspmm::{MAX_COLUMNS, Misfit, broadcast, check_dtype};

/// Whether an operand has the number of rows that it must have.
pub(crate) fn check_rows(op: &'static str, arg: &'static str, why: &'static str, expected: usize, actual: usize) -> Result<(), OpsError> {
    if expected == actual { Ok(()) } else { Err(OpsError::Rows { op, arg, why, expected, actual }) }
}

/// Entries of a row of this feature shape; few enough that 32 bits number them.
pub(crate) fn check_width(op: &'static str, features: &[usize]) -> Result<usize, OpsError> {
    match broadcast(features, features, 0) {
        Ok((_, width, ..)) => Ok(width),
        Err(Misfit::Width(shape)) => Err(OpsError::TooWide { op, shape, limit: MAX_COLUMNS }),
        Err(Misfit::Axes) => unreachable!("a shape broadcasts with itself"),
    }
}

/// Whether `x`, the operand `arg`, has the element type and the device of `y`, the operand `like`.
pub(crate) fn check_same<const A: usize, const B: usize>(
    op: &'static str,
    (arg, x): (&'static str, &Tensor<A>),
    (like, y): (&'static str, &Tensor<B>),
) -> Result<(), OpsError> {
    if x.dtype() != y.dtype() {
        return Err(OpsError::Dtype { op, arg, actual: x.dtype(), like, expected: y.dtype() });
    }
    // Equality of devices is about hardware: a constant without autodiff goes with a tracked tensor.
    if x.device() != y.device() {
        return Err(OpsError::Device { op, arg, actual: Box::new(x.device()), like, expected: Box::new(y.device()) });
    }
    Ok(())
}

/// Whether the tensors of a list can go behind each other: one for each of `rows`, which tells their numbers of
/// rows, with equal feature shapes, element types and devices.
pub(crate) fn check_list<const D: usize>(
    op: &'static str,
    arg: &'static str,
    x: &[Tensor<D>],
    why: &'static str,
    (what, rows): (&'static str, &mut dyn ExactSizeIterator<Item = usize>),
) -> Result<(), OpsError> {
    if x.len() != rows.len() {
        return Err(OpsError::Count { op, arg, why, expected: rows.len(), actual: x.len() });
    }
    let Some(first) = x.first() else { return Ok(()) };
    check_dtype(op, arg, first.dtype())?;
    let features = |x: &Tensor<D>| x.dims().get(1..).map(<[usize]>::to_vec);
    for (position, (x, expected)) in x.iter().zip(rows).enumerate() {
        let member = |what, expected: String, actual: String| {
            if expected == actual { Ok(()) } else { Err(OpsError::Member { op, arg, position, what, expected, actual }) }
        };
        // A tensor without axes has no rows at all.
        let actual = x.dims().first().map_or_else(|| "none".to_owned(), usize::to_string);
        member(what, expected.to_string(), actual)?;
        let shape = "feature shape (first axis left out)";
        member(shape, format!("{:?}", features(first).unwrap_or_default()), format!("{:?}", features(x).unwrap_or_default()))?;
        member("element type", format!("{:?}", first.dtype()), format!("{:?}", x.dtype()))?;
        // Equality of devices is about hardware, their text is not.
        if x.device() != first.device() {
            member("device", format!("{:?}", first.device()), format!("{:?}", x.device()))?;
        }
    }
    Ok(())
}
