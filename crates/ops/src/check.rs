//! Validates arguments of operators.

use std::fmt::Debug;

use burn::tensor::{DType, Tensor};
use burn_gnn_graph::{Relation, RelationStack};
use burn_gnn_plan::{PlanError, Target};

pub(crate) use burn_gnn_plan::{accept, check_rows, check_shape, check_width};

use crate::error::OpsError;

/// Rejects element types without a kernel in this build.
pub(crate) fn check_dtype(
    op: &'static str,
    arg: &'static str,
    dtype: DType,
) -> Result<(), OpsError> {
    match dtype {
        DType::F16 | DType::BF16 if !cfg!(any(feature = "f16", feature = "cube")) => {
            Err(OpsError::HalfPrecision { op, arg, dtype })
        }
        DType::F32 | DType::F64 | DType::F16 | DType::BF16 => Ok(()),
        dtype => Err(OpsError::UnsupportedDtype { op, arg, dtype }),
    }
}

/// Checks that operand `x` has `expected` rows and an element type with kernels, and returns its feature shape.
pub(crate) fn check_operand<const D: usize>(
    op: &'static str,
    (arg, x): (&'static str, &Tensor<D>),
    why: &'static str,
    expected: usize,
) -> Result<Vec<usize>, OpsError> {
    let dims = x.dims();
    match dims.split_first() {
        Some((&actual, features)) if actual == expected => {
            check_dtype(op, arg, x.dtype())?;
            Ok(features.to_vec())
        }
        // A tensor without axes counts as having no rows.
        rows => Err(PlanError::Rows {
            op,
            arg,
            why,
            expected,
            actual: rows.map_or(0, |(&actual, _)| actual),
        }
        .into()),
    }
}

/// Checks operands on `targets` of a relation, and returns their feature shapes. For a single operand its shape is
/// returned twice.
pub(crate) fn check_operands<const L: usize, const R: usize>(
    op: &'static str,
    relation: &Relation,
    targets: [Target; 2],
    lhs: Option<&Tensor<L>>,
    rhs: Option<&Tensor<R>>,
) -> Result<[Vec<usize>; 2], OpsError> {
    let [l, r] = targets;
    let l = match lhs {
        Some(x) => Some(check_operand(op, ("lhs", x), l.why(), l.rows(relation))?),
        None => None,
    };
    let r = match rhs {
        Some(x) => Some(check_operand(op, ("rhs", x), r.why(), r.rows(relation))?),
        None => None,
    };
    if let (Some(x), Some(y)) = (lhs, rhs) {
        check_same(op, ("lhs", x), ("rhs", y))?;
    }
    match (l, r) {
        (Some(l), Some(r)) => Ok([l, r]),
        (Some(x), None) | (None, Some(x)) => Ok([x.clone(), x]),
        (None, None) => unreachable!("every operator reads an operand"),
    }
}

/// Checks that the rank of the caller's output type is the rank of the result, whose feature shape is `out`.
pub(crate) fn check_rank(op: &'static str, out: &[usize], actual: usize) -> Result<(), OpsError> {
    let expected = out.len() + 1;
    if actual == expected { Ok(()) } else { Err(OpsError::Rank { op, expected, actual }) }
}

/// Checks that `x` (argument `arg`) has the element type and the device of `y` (argument `like`).
pub(crate) fn check_same<const A: usize, const B: usize>(
    op: &'static str,
    (arg, x): (&'static str, &Tensor<A>),
    (like, y): (&'static str, &Tensor<B>),
) -> Result<(), OpsError> {
    if x.dtype() != y.dtype() {
        return Err(OpsError::Dtype { op, arg, actual: x.dtype(), like, expected: y.dtype() });
    }
    // Equality of devices ignores autodiff, so a constant may be combined with a tracked tensor.
    if x.device() != y.device() {
        return Err(OpsError::Device {
            op,
            arg,
            actual: Box::new(x.device()),
            like,
            expected: Box::new(y.device()),
        });
    }
    Ok(())
}

/// A property in which two values differ that must agree.
pub(crate) struct Difference {
    pub(crate) what: &'static str,
    pub(crate) expected: String,
    pub(crate) actual: String,
}

impl Difference {
    /// `None` if the values are equal. Values are compared, not their texts.
    pub(crate) fn of<T: PartialEq + Debug>(
        what: &'static str,
        expected: T,
        actual: T,
    ) -> Option<Self> {
        let text = |x: &T| format!("{x:?}");
        (expected != actual).then(|| Self {
            what,
            expected: text(&expected),
            actual: text(&actual),
        })
    }
}

/// Checks that ids are below `bound` and distinct. `why` is the meaning of the bound. `repeated` makes the error of a
/// repeated id from its position, the first position of the same id, and the id.
pub(crate) fn check_distinct(
    op: &'static str,
    (arg, ids): (&'static str, &[u32]),
    why: &'static str,
    bound: usize,
    repeated: impl FnOnce(usize, usize, u32) -> OpsError,
) -> Result<(), OpsError> {
    let mut seen = vec![false; bound];
    for (position, &id) in ids.iter().enumerate() {
        match seen.get_mut(id as usize) {
            None => {
                let value = u64::from(id);
                return Err(PlanError::OutOfRange { op, arg, position, bound, why, value }.into());
            }
            Some(seen) if *seen => {
                let first = ids.iter().position(|&other| other == id).unwrap_or(position);
                return Err(repeated(position, first, id));
            }
            Some(seen) => *seen = true,
        }
    }
    Ok(())
}

/// Checks that the tensors of a list can be concatenated: one per entry of `rows`, with this number of rows, and with
/// equal feature shapes, element types and devices.
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
    let features = |x: &Tensor<D>| x.dims().get(1..).map(<[usize]>::to_vec).unwrap_or_default();
    for (position, (x, expected)) in x.iter().zip(rows).enumerate() {
        // A tensor without axes counts as having no rows.
        let actual = x.dims().first().copied();
        let rows = || Difference {
            what,
            expected: expected.to_string(),
            actual: actual.map_or_else(|| "none".to_owned(), |rows| rows.to_string()),
        };
        let shape = "feature shape (first axis left out)";
        let difference = (actual != Some(expected))
            .then(rows)
            .or_else(|| Difference::of(shape, features(first), features(x)))
            .or_else(|| Difference::of("element type", first.dtype(), x.dtype()))
            .or_else(|| Difference::of("device", first.device(), x.device()));
        if let Some(Difference { what, expected, actual }) = difference {
            return Err(OpsError::Member { op, arg, position, what, expected, actual });
        }
    }
    Ok(())
}

/// As [`check_list`], for one tensor per relation of a stack with one row per edge.
pub(crate) fn check_edges<const D: usize>(
    op: &'static str,
    arg: &'static str,
    x: &[Tensor<D>],
    stack: &RelationStack,
) -> Result<(), OpsError> {
    let mut rows = (0..stack.len()).map(|r| stack.edge_range(r).len());
    let why = "one tensor per relation of the stack";
    check_list(op, arg, x, why, ("number of rows (edges of its relation)", &mut rows))
}
