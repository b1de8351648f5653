//! Selects mixed precision: operators run on 16-bit copies of their inputs and sum in f32.

mod operator;

use std::cell::Cell;
use std::marker::PhantomData;

use burn::tensor::{DType, FloatDType, Tensor};
use operator::Cast;

use crate::error::OpsError;
use crate::operator::tensor;

/// Element type to which message-passing operators cast their float inputs; see [`with_precision`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Inputs are not cast.
    #[default]
    Full,
    /// Inputs are cast to f16: 11 significant bits, magnitudes from 6e-8 to 65504.
    F16,
    /// Inputs are cast to bf16: 8 significant bits, the range of f32.
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

/// Restores the previous precision when the scope ends, also by a panic. It cannot be sent to another thread.
struct Scope(Precision, PhantomData<*const ()>);

impl Drop for Scope {
    fn drop(&mut self) {
        IN_FORCE.set(self.0);
    }
}

/// Runs `f` in mixed precision: every message-passing operator that it calls on this thread casts its f32, f16 and bf16
/// inputs to `precision`, sums in f32, and returns `precision`.
///
/// DGL's operators behave the same way under `torch.autocast`. f64 and integer inputs are not cast. Dropout, cross
/// entropy, Adam and Burn's products ignore the setting; bias and activation, which follow a sum, observe it.
/// `_reference` functions do not cast. The result has the same bits as with explicit casts.
///
/// # Scope
/// The setting is local to the calling thread and ends with `f`, also by a panic. Scopes nest, and the innermost one is
/// in effect; `with_precision(Precision::Full, ..)` disables an outer scope. Operators read the setting when they are
/// called, so backward may run outside of the scope and on another thread. Open scopes outside of rayon pools: while a
/// task in a scope waits, its thread may run other tasks, and they would run in the scope too.
///
/// # Gradients
/// The casts are differentiable. Cotangents and saved tensors are 16-bit, sums are in f32, and the gradient of an f32
/// input is f32. In f16, cotangents below 6e-8 become 0: scale the loss, or use bf16.
///
/// # What it saves
/// Results and saved tensors take half the memory. Rows are gathered and written in half the bytes as well, but on CPUs
/// every entry is converted, and the cast reads the input and writes half of it. As measured, bf16 saves little time on
/// CPUs and f16 is slower than f32, because of its conversions. Cast a tensor that several operators read once, by hand.
/// `benches/peers` has the figures (`precision`).
///
/// # Panics
/// An operator in the scope panics (its `try_` form returns an error) if the device does not support the element type.
/// Burn's ndarray backend supports floats of 32 and 64 bits only.
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

/// Casts an input of an operator to the precision in effect. Operators call it before they check element types.
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

/// As [`enter`], for an optional operand.
pub(crate) fn enter_if<const D: usize>(
    op: &'static str,
    arg: &'static str,
    x: Option<Tensor<D>>,
) -> Result<Option<Tensor<D>>, OpsError> {
    x.map(|x| enter(op, arg, x)).transpose()
}

/// Casts `x` to another float type, differentiably.
pub(crate) fn cast<const D: usize>(x: Tensor<D>, to: FloatDType) -> Tensor<D> {
    let from = FloatDType::from(x.dtype());
    tensor(Cast { from, to }, [x.into_dispatch()])
}
