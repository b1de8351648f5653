//! Checks arguments that several operators share.

use std::fmt::Debug;

use burn::tensor::{DType, Tensor};
use burn_gnn_graph::{Relation, RelationStack};
use burn_gnn_plan::{PlanError, Target};

pub(crate) use burn_gnn_plan::{accept, check_rows, check_shape, check_width};

use crate::error::OpsError;

/// Refuses element types that no kernel of this build knows.
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

/// The feature shape of `x`, the operand `arg`: a tensor of any rank with `expected` rows, of an element type with
/// kernels.
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
        // A tensor without axes has no rows at all.
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

/// The feature shapes of the operands `lhs` and `rhs` of an operator on edges, which are on `targets`; of a single one
/// its own, twice.
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
        (None, None) => unreachable!("an operator reads one operand at least"),
    }
}

/// Whether the output type of a call has the rank of its result, of feature shape `out`.
pub(crate) fn check_rank(op: &'static str, out: &[usize], actual: usize) -> Result<(), OpsError> {
    let expected = out.len() + 1;
    if actual == expected { Ok(()) } else { Err(OpsError::Rank { op, expected, actual }) }
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

/// What two things that must be alike differ in, what it must be and what it is.
pub(crate) struct Difference {
    pub(crate) what: &'static str,
    pub(crate) expected: String,
    pub(crate) actual: String,
}

impl Difference {
    /// `None` where they are equal: values are compared, never their texts.
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

/// Refuses ids that are not below `bound`, the count of `why`, and ids given twice: `repeated` is the error of a
/// position, of the first position of the same id, and of the id.
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

/// Whether the tensors of a list can be concatenated: one for each of `rows`, their numbers of
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
    let features = |x: &Tensor<D>| x.dims().get(1..).map(<[usize]>::to_vec).unwrap_or_default();
    for (position, (x, expected)) in x.iter().zip(rows).enumerate() {
        // A tensor without axes has no rows at all.
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

/// As [`check_list`], of one tensor for each relation of a stack, with a row per edge.
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
