//! Scalar functions that kernels share: activations, derivatives, softmax terms, random numbers.

pub(crate) mod activation;
pub(crate) mod derivatives;
pub(crate) mod philox;
pub(crate) mod softmax_shift;
