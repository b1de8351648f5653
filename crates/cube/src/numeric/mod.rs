//! Scalar functions and reductions that do not depend on a graph.

#[expect(unsafe_code, reason = "launches kernels")]
pub(crate) mod activation;
#[expect(unsafe_code, reason = "launches kernels")]
pub(crate) mod column_sums;
pub(crate) mod dropout;
pub(crate) mod philox;
#[expect(unsafe_code, reason = "launches kernels")]
pub(crate) mod scan;
