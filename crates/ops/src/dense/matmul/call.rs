//! Describes products with weights.

use burn_gnn_cpu::dense::matmul::Transposed;

/// `l · r`, where either operand may be transposed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Product(pub(crate) Transposed);

/// `sum + x · w`. Inputs: `x`, `w` and `sum`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProductOnto;
