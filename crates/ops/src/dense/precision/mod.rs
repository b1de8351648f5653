//! Selects mixed precision: operators on 16-bit copies of their inputs, summed in f32.

mod operator;

use std::cell::Cell;
use std::marker::PhantomData;

use burn::tensor::{DType, FloatDType, Tensor};
use operator::Cast;

use crate::error::OpsError;
use crate::operator::tensor;

/// What message-passing operators do with their float inputs; see [`with_precision`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Inputs are taken as they are.
    #[default]
    Full,
    /// Inputs become f16: 11 significant bits, magnitudes from 6e-8 to 65504.
    F16,
    /// Inputs become bf16: 8 significant bits, the range of f32.
    BF16,
}

impl Precision {
    fn dtype(self) -> Option<FloatDType> {
        match self {
            Self::Full => None,
            Self::F16 => Some(FloatDType::F16),
            Self::BF16 => Some(FloatDType::BF16),
        }
    }
}

thread_local! {
    static IN_FORCE: Cell<Precision> = const { Cell::new(Precision::Full) };
}

/// The precision in effect on this thread; [`Precision::Full`] outside of every [`with_precision`].
pub fn precision() -> Precision {
    IN_FORCE.get()
}

/// Puts back what was in effect before, however the scope is left. Stays on its thread.
struct Scope(Precision, PhantomData<*const ()>);

impl Drop for Scope {
    fn drop(&mut self) {
        IN_FORCE.set(self.0);
    }
}

/// Runs `f` with mixed precision: every message-passing operator that it calls on this thread casts its
/// f32, f16 and bf16 inputs to the type asked for, sums in f32, and returns that type.
///
/// It is what DGL's operators do under `torch.autocast`: f64 inputs stay as they are, so do integers, and
/// operators without messages (dropout, cross entropy, Adam, products of Burn) do not look at the setting; bias
/// and activation, which follow a sum, do. `_reference` functions take their inputs as they are.
/// The result is the same bits as that of a cast by hand.
///
/// # Scope
/// The setting belongs to the calling thread and ends with `f`, also by a panic. Scopes nest, the inner one
/// holds; `with_precision(Precision::Full, ..)` switches the outer one off for a while. It is read when an
/// operator is called: backward may run outside of the scope and on another thread. A task of a rayon pool that opens a
/// scope opens it for tasks too that its thread takes while it waits: open scopes outside of the pool.
///
/// # Gradients
/// The casts are differentiable: gradients are computed on 16-bit cotangents and what backward keeps is
/// 16-bit as well, sums are again in f32, and the gradient of an f32 input arrives in f32. Cotangents
/// below 6e-8 vanish in f16; scale the loss, or take bf16.
///
/// # What it saves
/// Memory: results and what is kept for backward take half the bytes. Rows are gathered and written in half the
/// bytes as well, but on CPU every entry is converted, and the cast itself reads the input once and writes
/// half of it: of the time, measured, bf16 saves little, and f16 is slower than f32 on machines of the kind it was
/// measured on, because of its conversions. What several operators read is best cast by hand, once.
/// `benches/peers` has the figures (`precision`).
///
/// # Panics
/// An operator inside panics (its `try_` form errs) if the device has no tensors of that type: Burn's
/// ndarray backend has floats of 32 and 64 bits only.
///
/// # Source
/// Micikevicius et al., "Mixed precision training", ICLR 2018.
///
/// ```
/// use burn::tensor::{DType, Device, Tensor};
/// use burn_gnn_graph::Relation;
/// use burn_gnn_ops::{Precision, copy_u_sum, with_precision};
/// let device = Device::flex().autodiff();
/// let rel = Relation::from_coo(2, 1, vec![0, 1], vec![0, 0])?;
/// let x = Tensor::<2>::from_data([[1.0f32, 2.0], [3.0, 4.0]], &device).require_grad();
/// let y = with_precision(Precision::BF16, || copy_u_sum(&rel, x.clone()));
/// assert_eq!(y.dtype(), DType::BF16);
/// let grads = y.sum().backward();
/// assert_eq!(x.grad(&grads).unwrap().dtype(), DType::F32);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[track_caller]
pub fn with_precision<T>(precision: Precision, f: impl FnOnce() -> T) -> T {
    let _scope = Scope(IN_FORCE.replace(precision), PhantomData);
    f()
}

/// An input of an operator in the precision in effect. Every operator calls it on its float inputs before it
/// looks at their types.
pub(crate) fn enter<const D: usize>(
    op: &'static str,
    arg: &'static str,
    x: Tensor<D>,
) -> Result<Tensor<D>, OpsError> {
    let Some(to) = precision().dtype() else {
        return Ok(x);
    };
    let own = x.dtype();
    if own == DType::from(to) || !matches!(own, DType::F32 | DType::F16 | DType::BF16) {
        return Ok(x);
    }
    if !x.device().supports_dtype(to) {
        return Err(OpsError::Precision {
            op,
            arg,
            dtype: to.into(),
            device: Box::new(x.device()),
        });
    }
    Ok(cast(x, to))
}

/// As [`enter`], for an operand that need not be there.
pub(crate) fn enter_if<const D: usize>(
    op: &'static str,
    arg: &'static str,
    x: Option<Tensor<D>>,
) -> Result<Option<Tensor<D>>, OpsError> {
    x.map(|x| enter(op, arg, x)).transpose()
}

/// `x` in another float type, differentiable.
pub(crate) fn cast<const D: usize>(x: Tensor<D>, to: FloatDType) -> Tensor<D> {
    let from = FloatDType::from(x.dtype());
    tensor(Cast { from, to }, [x.into_dispatch()])
}
