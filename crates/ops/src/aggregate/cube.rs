//! Weighted aggregation on CubeCL backends.

use burn_cubecl::CubeBackend;

use super::backend::AggregateBackend;

/// No kernel of its own: GSpMM between element-wise operations of Burn.
impl AggregateBackend for CubeBackend {}
