//! GSpMM and keyed dropout on CubeCL backends.

use burn_cubecl::CubeBackend;

use crate::backend::GnnBackend;

/// No kernels: operations of Burn, which make a message for every edge.
impl GnnBackend for CubeBackend {}
