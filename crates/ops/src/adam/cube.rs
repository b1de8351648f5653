//! Adam on CubeCL backends.

use burn_cubecl::CubeBackend;

use super::backend::AdamBackend;

/// No kernel: a step is a dozen element-wise operations of Burn, which `fusion` makes one.
impl AdamBackend for CubeBackend {}
